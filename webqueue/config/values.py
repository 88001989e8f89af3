"""The single values of sites and targets: types that say what is wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from webqueue import cron
from webqueue.errors import InvalidInputError
from webqueue.models.base import CODE_LENGTH, KEY_LENGTH
from webqueue.politeness.hours import parse_hours
from webqueue.politeness.rate_key import RateGroup, host_of
from webqueue.sentences import say

_CODE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_LINE_BREAKING = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2, token
_MAX_HEADER = 8000
_MAX_TEXT = 10_000
_MAX_LINE = 500


def is_code(value: str) -> bool:
    """Whether `value` can be the code of a site or target."""
    return _CODE.fullmatch(value) is not None


def _code(value: str) -> str:
    if not is_code(value):
        raise ValueError(
            say(
                "%(value)s is no code: 1 to %(code_length)s small letters, digits, _ . and -, and the first "
                "a letter or digit",
                value=_shown(value),
                code_length=CODE_LENGTH,
            )
        )
    return value


def _timezone(value: str) -> str:
    try:
        cron.parse("@daily", value)
    except InvalidInputError as error:
        raise ValueError(error.problems[0].message) from None
    return value


def _base_url(value: str) -> str:
    try:
        host_of(value)
    except InvalidInputError as error:
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value):
            raise ValueError(
                say("%(value)s has no scheme; write http:// or https:// in front of it", value=_shown(value))
            ) from None
        raise ValueError(error.problems[0].message) from None
    return value


def _proxy(value: str) -> str:
    # The text may hold a password, so no message repeats it.
    try:
        parts = urlsplit(value)
        host_of(f"http://{value.partition('://')[2]}")
    except (ValueError, InvalidInputError):
        raise ValueError(say("is no address of a proxy; write http://host:port")) from None
    if parts.scheme != "http":  # as the transport, which would refuse every fetch
        raise ValueError(say("must be http://host:port; https targets go through it by CONNECT"))
    return value


def _key(value: str) -> str:
    if len(value) > KEY_LENGTH or _KEY.fullmatch(value) is None:
        raise ValueError(
            say(
                "%(value)s is no rate key: up to %(key_length)s letters, digits, _ . : and -, as in a host "
                "name",
                value=_shown(value),
                key_length=KEY_LENGTH,
            )
        )
    return value


def host_suffix(value: str) -> str:
    """The one form of a host suffix: lower case, punycode, no dot in front. ValueError where it is none."""
    try:
        return RateGroup(key="x", adapter=None, host_suffix=value).host_suffix
    except InvalidInputError as error:
        raise ValueError(error.problems[0].message) from None


def _line(value: str) -> str:
    if _LINE_BREAKING.search(value):
        raise ValueError(say("must be one line, without control characters"))
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError(say("must not be empty"))
    return value


def _header_name(value: str) -> str:
    if _HEADER_NAME.fullmatch(value) is None:
        raise ValueError(say("%(value)s is no name of an HTTP header", value=_shown(value)))
    return value


def _header_value(value: str) -> str:
    if _LINE_BREAKING.search(value) or value != value.strip():
        raise ValueError(say("must be one line, without spaces around it"))
    if not value.isascii():
        raise ValueError(say("must be ASCII, as HTTP headers are"))
    return value


def _time(value: Any) -> Any:
    """A time in the file is text: YAML's own times lose their zone too easily."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(
            say("%(value)s is no time; write 2026-01-31T03:00:00+08:00", value=_shown(value))
        ) from None
    if moment.tzinfo is None:
        raise ValueError(
            say("%(value)s has no zone; write it behind the time, such as +08:00 or Z", value=_shown(value))
        )
    if not 1970 <= moment.year <= 9000:
        raise ValueError(say("%(value)s is not between the years 1970 and 9000", value=_shown(value)))
    return moment.astimezone(UTC)


def _hours(value: str) -> str:
    """In its one form: `8:00 - 18:00` is stored as `08:00-18:00`."""
    return str(parse_hours(value, "UTC"))


def _unique(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError(say("names a tag twice"))
    return values


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else f"{value[:80]}…")


Code = Annotated[str, AfterValidator(_code)]
Timezone = Annotated[str, AfterValidator(_timezone)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Proxy = Annotated[str, AfterValidator(_line), AfterValidator(_proxy)]
Key = Annotated[str, AfterValidator(_key)]
HostSuffix = Annotated[str, AfterValidator(host_suffix)]
Line = Annotated[str, Field(max_length=_MAX_LINE), AfterValidator(_line)]
FilledLine = Annotated[Line, AfterValidator(_filled)]
Note = Annotated[str, Field(max_length=_MAX_TEXT)]
HeaderName = Annotated[str, Field(max_length=200), AfterValidator(_header_name)]
HeaderValue = Annotated[str, Field(max_length=_MAX_HEADER), AfterValidator(_header_value)]
Time = Annotated[datetime, BeforeValidator(_time)]
Hours = Annotated[str, AfterValidator(_hours)]
Tag = Annotated[str, Field(max_length=64), AfterValidator(_line), AfterValidator(_filled)]
Tags = Annotated[list[Tag], Field(max_length=50), AfterValidator(_unique)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
