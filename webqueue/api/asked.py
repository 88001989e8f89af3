"""What a request says: its body and its query parameters, read strictly."""

from __future__ import annotations

import json
import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from flask import request
from werkzeug.exceptions import UnsupportedMediaType

from webqueue.api.problems import MalformedError, field_problem
from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.numbers import whole

MAX_BODY: Final = 1_000_000
MAX_DEPTH: Final = 50
_MAX_TEXT: Final = 2000
_MAX_DIGITS: Final = 18
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]{1,500}")
# A + that was not escaped arrives as a space.
_SPACE_FOR_PLUS: Final = re.compile(r" (?=\d\d:?\d\d$)")


def body() -> dict[str, Any]:
    """The JSON object of the request; empty when it has no body.

    Raises:
        MalformedError: it is no JSON object.
        UnsupportedMediaType: it does not say that it is JSON.
        RequestEntityTooLarge: it is larger than MAX_BODY.
    """
    request.max_content_length = MAX_BODY
    raw = request.get_data()
    if not raw:
        return {}
    if not request.is_json:
        raise UnsupportedMediaType("Send JSON, with Content-Type: application/json.")
    try:
        data = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_finite,
        )
        _check(data, 0)
    except RecursionError:
        raise MalformedError("The body is nested too deep.") from None
    except ValueError as error:
        raise MalformedError(f"The body is no JSON that can be read: {error}.") from None
    if not isinstance(data, dict):
        raise MalformedError("The body must be a JSON object.")
    return data


def refuse_unknown(data: dict[str, Any], known: Sequence[str]) -> None:
    """Raises InvalidInputError for every field that is not `known`."""
    problems = [
        Problem(name, f"is no field here; there are {', '.join(known) or 'none'}")
        for name in data
        if name not in known
    ]
    if problems:
        raise InvalidInputError(problems)


class Query:
    """The query parameters of a request; what is wrong with any of them is told together.

    Args:
        known: the parameters that the view has; others are refused, so that a misspelt filter does not show everything.
    """

    def __init__(self, *known: str) -> None:
        self._problems = [
            Problem(name, f"is no parameter here; there are {', '.join(known) or 'none'}")
            for name in request.args
            if name not in known
        ]
        self._problems += [
            Problem(name, "stands more than once") for name in known if len(request.args.getlist(name)) > 1
        ]

    def text(self, name: str) -> str | None:
        """A text; None when it is left out or empty."""
        value = request.args.get(name) or None
        if value is not None and (len(value) > _MAX_TEXT or _UNSTORABLE.search(value)):
            self._refuse(name, "is too long, or contains what is no character")
            return None
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds."""
        value = self.text(name)
        if value is None:
            return default
        number = whole(value, low, high)
        if number is None:
            self._refuse(name, f"must be a whole number from {low} to {high}, not {value[:40]!r}")
            return default
        return number

    def moment(self, name: str) -> datetime | None:
        """A time with a zone, or a date, which means its beginning in UTC."""
        value = self.text(name)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(_SPACE_FOR_PLUS.sub("+", value))
        except ValueError:
            self._refuse(name, f"{value[:40]!r} is no time; write 2026-01-31T03:00:00Z")
            return None
        if moment.tzinfo is None and len(value) <= len("2026-01-31"):
            moment = moment.replace(tzinfo=UTC)
        if moment.tzinfo is None or not 1970 <= moment.year <= 9000:
            self._refuse(name, f"{value[:40]!r} has no zone (such as Z or +08:00), or lies too far away")
            return None
        return moment.astimezone(UTC)

    def cursor(self) -> str | None:
        """What the `next_cursor` of an earlier answer stands for."""
        value = self.text("cursor")
        if value is None:
            return None
        try:
            return _opened(value)
        except ValueError:
            self._refuse("cursor", "is no cursor; send the next_cursor of the last answer")
            return None

    def done(self) -> None:
        """Raises InvalidInputError when anything was wrong."""
        if self._problems:
            raise InvalidInputError(self._problems)

    def _refuse(self, name: str, message: str) -> None:
        self._problems.append(Problem(name, message))


def opaque(cursor: str | None) -> str | None:
    """A cursor as it is sent: what it holds is nobody's business, and may change."""
    return None if cursor is None else urlsafe_b64encode(cursor.encode()).decode("ascii").rstrip("=")


def _opened(cursor: str) -> str:
    if _CURSOR.fullmatch(cursor) is None:
        raise ValueError(cursor)
    return urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()


def flag(data: dict[str, Any], name: str, *, default: bool = False) -> bool:
    """A field that is true or false."""
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise field_problem(name, "must be true or false")
    return value


def number(data: dict[str, Any], name: str, *, default: int = 0) -> int:
    """A field that is a whole number."""
    value = data.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise field_problem(name, "must be a whole number")
    return value


def text(data: dict[str, Any], name: str, *, longest: int) -> str:
    """A field that is a text."""
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > longest:
        raise field_problem(name, f"must be a text of up to {longest} characters")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(digits)


def _finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written[:20]} is no number of JSON, or too large")
    return value


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        for name, item in value.items():
            _check(name, depth + 1)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, str) and _UNSTORABLE.search(value):
        raise ValueError("a text contains what is no character")
