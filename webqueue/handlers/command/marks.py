"""What a program's marks do to its job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from webqueue.handlers.command.markers import (
    BlockedMark,
    CheckpointMark,
    DocumentMark,
    MalformedError,
    Mark,
    ProgressMark,
    parse,
)
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.lines import LONGEST_SHOWN, Line, shown
from webqueue.handlers.protocol import Context, DocumentDraft
from webqueue.sentences import stored

# A program that reports each of thousands of steps must not make a transaction of each.
_BETWEEN_CHECKPOINTS_SEC: Final = 1.0
_MOST_WARNINGS: Final = 100
_LARGEST_FILE: Final = 100_000_000


class Marks:
    """Heeds the marks of one run.

    Args:
        ctx: of the job.
        folder: the one that the target names, for the files of `::document`; None where it names none.
        page: the last completed page when it started.

    Attributes:
        blocked: what it said of a block, the last time; `blocked_at` is when it first did, monotonic.
        malformed: marks that could not be read.
    """

    def __init__(self, ctx: Context, folder: Path | None, page: int) -> None:
        self.blocked: BlockedMark | None = None
        self.blocked_at: float | None = None
        self.malformed = 0
        self._ctx = ctx
        self._folder = folder
        self._page = page
        self._pending: Mapping[str, Any] | None = None
        self._written_at = float("-inf")

    def take(self, line: Line) -> bool:
        """Heed a line; False when it is one for the log."""
        if not line.data.startswith(b"::"):
            return False
        try:
            mark = _parsed(line)
            if isinstance(mark, DocumentMark):
                self._store(mark)
        except MalformedError as error:
            self._warn(stored("Not understood: %(line)s (%(why)s)", line=shown(line), why=str(error)))
            return True
        match mark:
            case None:
                return False
            case ProgressMark():
                self._ctx.progress(mark.current, mark.total, mark.message)
            case CheckpointMark():
                self._page = self._page if mark.page is None else mark.page
                self._pending = mark.data
            case BlockedMark():
                if self.blocked is None:
                    self._ctx.log(
                        stored("The command says that it is blocked: %(line)s", line=shown(line)), "warning"
                    )
                    self.blocked_at = time.monotonic()
                self.blocked = mark
        return True

    def write(self, *, now: bool = False) -> None:
        """Commit the last checkpoint, at most once a second unless it is to be `now`.

        Raises:
            LeaseLostError: the job is no longer this worker's.
        """
        if self._pending is None or not self._ctx.target.track_checkpoint:
            return
        if now or time.monotonic() - self._written_at >= _BETWEEN_CHECKPOINTS_SEC:
            pending, self._pending = self._pending, None
            self._ctx.checkpoint(self._page, pending)
            self._ctx.page(self._page)
            self._written_at = time.monotonic()

    def _store(self, mark: DocumentMark) -> None:
        url = join(self._ctx.site.base_url, mark.url)
        if url is None:
            raise MalformedError(stored("%(url)s is no http address", url=repr(mark.url[:200])))
        self._ctx.store(
            DocumentDraft(
                url=url,
                title=mark.title,
                text=mark.text,
                published_at=mark.published_at,
                original=None if mark.file is None else self._read(mark.file),
                content_type=mark.content_type,
            )
        )

    def _read(self, name: str) -> bytes:
        """A file below the target's folder, and no other.

        The program could read others itself; but it may print what strangers wrote, who could begin a line with a mark
        and so have a file of this machine shown as a document.
        """
        if self._folder is None:
            raise MalformedError(stored("a file can only be kept when the target names its folder (cwd)"))
        try:
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder.resolve()):
                raise MalformedError(
                    stored("the file %(name)s is not below the target's folder", name=repr(name))
                )
            if path.stat().st_size > _LARGEST_FILE:
                raise MalformedError(
                    stored(
                        "the file %(name)s is larger than %(most)s bytes",
                        name=repr(name),
                        most=f"{_LARGEST_FILE:,}",
                    )
                )
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise MalformedError(
                stored(
                    "the file %(name)s cannot be read: %(why)s",
                    name=repr(name[:LONGEST_SHOWN]),
                    why=str(error),
                )
            ) from None

    def _warn(self, message: str) -> None:
        self.malformed += 1
        if self.malformed <= _MOST_WARNINGS:
            self._ctx.log(message, "warning")
        if self.malformed == _MOST_WARNINGS:
            self._ctx.log(stored("Further marks that are not understood are only counted."), "warning")


def _parsed(line: Line) -> Mark | None:
    if line.cut:
        raise MalformedError(stored("it is too long"))
    return parse(line.text.rstrip("\r"))
