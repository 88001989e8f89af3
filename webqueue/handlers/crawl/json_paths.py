"""Where values stand in a JSON document: `data.list[0].title`, and templates that are filled from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator

from webqueue.handlers.crawl.pages import one_line
from webqueue.sentences import say

_LONGEST: Final = 500
_PATH: Final = re.compile(r"(?:[^.\[\]\s{}][^.\[\]{}]*|\[\d{1,6}\])(?:\.[^.\[\]{}]+|\[\d{1,6}\])*")
_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_LARGEST_NUMBER: Final = 10**18


def checked_path(value: str) -> str:
    """`value`, when it is a path.

    Raises:
        ValueError: it is not; the text shows how one looks.
    """
    value = value.strip()
    if len(value) > _LONGEST:
        raise ValueError(say("is longer than %(most)s characters", most=_LONGEST))
    if not _PATH.fullmatch(value):
        raise ValueError(
            say(
                "%(value)s is no path; write names with dots and [n] for list items: data.list[0].title",
                value=repr(value),
            )
        )
    return value


def _nothing_for_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


JsonPath = Annotated[str, AfterValidator(checked_path)]
OptionalPath = Annotated[JsonPath | None, BeforeValidator(_nothing_for_blank)]


def find(data: Any, path: str | None) -> Any:
    """The value at `path`, the whole of `data` for no path; None where there is nothing."""
    for index, name in _PART.findall(path or ""):
        if index:
            number = int(index)
            data = data[number] if isinstance(data, list) and number < len(data) else None
        else:
            data = data.get(name) if isinstance(data, Mapping) else None
        if data is None:
            return None
    return data


def as_line(value: Any) -> str:
    """A text or number as one line; "" for everything else."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def as_count(value: Any) -> int | None:
    """A number of things, also as text; None for what is none."""
    if (
        isinstance(value, str)
        and value.strip().isascii()
        and value.strip().isdigit()
        and len(value.strip()) < 19
    ):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_NUMBER else None


def placeholders(template: str) -> list[str]:
    """The paths that stand in braces in `template`."""
    return [path.strip() for path in _PLACEHOLDER.findall(template)]


def fill(template: str, item: Any, named: Mapping[str, str | None]) -> str | None:
    """`template` with each `{path}` replaced by its value in `item`, percent-encoded; None when one is missing.

    Args:
        template: of a URL.
        item: of the list.
        named: placeholders that stand for a path of another name, e.g. `id`.
    """
    missing = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal missing
        path = match.group(1).strip()
        value = as_line(find(item, named.get(path) or path))
        missing = missing or not value
        return quote(value, safe="/")

    filled = _PLACEHOLDER.sub(value_of, template)
    return None if missing else filled
