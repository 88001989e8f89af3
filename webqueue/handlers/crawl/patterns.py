"""Shell patterns by which targets choose among URLs: `/news/*` for everything below /news/."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from webqueue.sentences import say


def checked_pattern(value: str) -> str:
    """`value`, when it is a shell pattern of URLs or paths.

    Raises:
        ValueError: it can match none.
    """
    value = value.strip()
    if not value.startswith(("/", "*", "http://", "https://")):
        raise ValueError(
            say(
                "%(value)s begins with neither /, * nor http; write /news/* for everything below /news/",
                value=repr(value),
            )
        )
    return value


Pattern = Annotated[str, Field(max_length=500), AfterValidator(checked_pattern)]
Patterns = Annotated[tuple[Pattern, ...], Field(max_length=100)]


class Chooser:
    """Which URLs a target wants.

    Args:
        include: a URL matches one of them; empty: any does.
        exclude: a URL matches none of them.
    """

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...] = ()) -> None:
        self._include = [re.compile(translate(pattern)) for pattern in include]
        self._exclude = [re.compile(translate(pattern)) for pattern in exclude]

    def wants(self, url: str) -> bool:
        """Whether a URL is wanted; patterns match it as a whole, or its path with its query."""
        parts = urlsplit(url)
        names = (url, f"{parts.path}?{parts.query}" if parts.query else parts.path)
        included = not self._include or _matches(self._include, names)
        return included and not _matches(self._exclude, names)


def _matches(patterns: list[re.Pattern[str]], names: tuple[str, ...]) -> bool:
    return any(pattern.match(name) for pattern in patterns for name in names)
