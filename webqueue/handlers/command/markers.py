"""Lines by which a program tells webqueue something: `::progress`, `::checkpoint`, `::blocked`, `::document`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from webqueue.sentences import part, stored

_PROGRESS: Final = re.compile(
    r"(?:(?P<current>\d{1,9})(?:/(?P<total>\d{1,9}))?)(?:\s+(?P<message>.*))?", re.DOTALL
)
_RETRY_AFTER: Final = re.compile(r"(?:^|\s)retry_after=(?P<value>\S*)\s*$")
_DAY: Final = 86_400  # the most that a server may ask for (DESIGN section 6)
_LARGEST_PAGE: Final = 2**31 - 1  # what the column takes


@dataclass(frozen=True)
class ProgressMark:
    """`::progress 3/40 text`: how far the program is."""

    current: int
    total: int | None = None
    message: str = ""


@dataclass(frozen=True)
class CheckpointMark:
    """`::checkpoint {"page": 3}`: from where another run goes on; `page` is None where it names none."""

    page: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockedMark:
    """`::blocked reason retry_after=60`: the server said "too much"; `retry_after` in seconds."""

    reason: str
    retry_after: int | None = None


class DocumentMark(BaseModel):
    """`::document {"url": …}`: a page or file to store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(min_length=1, max_length=8_000)]
    title: str = ""
    text: str = ""
    published_at: AwareDatetime | None = None
    content_type: Annotated[str, Field(max_length=255)] = "text/html"
    file: str | None = None


Mark = ProgressMark | CheckpointMark | BlockedMark | DocumentMark


class MalformedError(Exception):
    """A line that begins like one of these and cannot be read; the text says why."""


def parse(line: str) -> Mark | None:
    """What a line says; None for a line of the log.

    Raises:
        MalformedError: it begins with one of the four words, and cannot be read.
    """
    if not line.startswith("::"):
        return None
    word, _, rest = line.partition(" ")
    reader = _READERS.get(word.strip())
    return None if reader is None else reader(rest.strip())


def _progress(rest: str) -> ProgressMark:
    match = _PROGRESS.fullmatch(rest)
    if match is None:
        raise MalformedError(stored("write ::progress 3/40 text, or ::progress 3 text"))
    total = match["total"]
    return ProgressMark(int(match["current"]), int(total) if total else None, match["message"] or "")


def _checkpoint(rest: str) -> CheckpointMark:
    data = _object(rest, part('write ::checkpoint {"page": 3}'))
    page = data.pop("page", None)
    if page is not None and (
        not isinstance(page, int) or isinstance(page, bool) or not 0 <= page <= _LARGEST_PAGE
    ):
        raise MalformedError(stored("page must be the number of the last completed page"))
    return CheckpointMark(page, data)


def _blocked(rest: str) -> BlockedMark:
    match = _RETRY_AFTER.search(rest)
    if match is None:
        return BlockedMark(rest or "blocked")
    value = match["value"]
    if not re.fullmatch(r"\d{1,15}", value, re.ASCII):
        raise MalformedError(stored("retry_after=%(value)s is no number of seconds", value=value))
    return BlockedMark(rest[: match.start()].strip() or "blocked", min(int(value), _DAY))


def _document(rest: str) -> DocumentMark:
    try:
        return DocumentMark.model_validate(
            _object(rest, part('write ::document {"url": "…", "title": "…", "text": "…"}'))
        )
    except ValidationError as error:
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
        raise MalformedError("; ".join(told)) from None


def _object(text: str, advice: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError(
            stored("it is no JSON (%(why)s); %(advice)s", why=str(error), advice=advice)
        ) from None
    if not isinstance(found, dict):
        raise MalformedError(stored("it is no JSON object; %(advice)s", advice=advice))
    return found


_READERS: Final[Mapping[str, Callable[[str], Mark]]] = {
    "::progress": _progress,
    "::checkpoint": _checkpoint,
    "::blocked": _blocked,
    "::document": _document,
}
