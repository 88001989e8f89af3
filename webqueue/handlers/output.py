"""The output of a program, while it runs, as lines of its job's log."""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final

from webqueue.handlers.lines import Line, LineSplitter, Thinning, shown
from webqueue.sentences import stored

_PIECE: Final = 65_536
_LAST_LINES: Final = 40
_LONGEST_LAST_LINE: Final = 500
_LONGEST_LAST_WORDS: Final = 4_000


@dataclass
class _Stream:
    """One of the two outputs."""

    level: str
    of_errors: bool = False
    splitter: LineSplitter = field(default_factory=LineSplitter)


class Output:
    """Reads standard output and error of a program, and tells them line by line.

    All of it is read, so that the program never waits for its reader; a flood is thinned, and what was left out is counted.

    Args:
        stdout: told with the level `info`.
        stderr: told with the level `errors_level`; its last lines are kept for the error.
        tell: takes a line, as it is to be shown, and its level.
        heed: takes each line first; what it answers True to is not for the log.
        errors_level: of standard error.

    Attributes:
        lines: how many there were, those that were heeded or left out included.
    """

    def __init__(
        self,
        stdout: IO[bytes],
        stderr: IO[bytes],
        tell: Callable[[str, str], None],
        *,
        heed: Callable[[Line], bool] = lambda _line: False,
        errors_level: str = "warning",
    ) -> None:
        self.lines = 0
        self._tell = tell
        self._heed = heed
        self._thinning = Thinning(time.monotonic())
        self._last_errors: deque[str] = deque(maxlen=_LAST_LINES)
        self._streams = (_Stream("info"), _Stream(errors_level, of_errors=True))
        self._selector = selectors.DefaultSelector()
        for pipe, stream in zip((stdout, stderr), self._streams, strict=True):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, stream)

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return bool(self._selector.get_map())

    @property
    def left_out(self) -> int:
        """How many lines came too fast, and are not in the log."""
        return self._thinning.left_out

    @property
    def last_errors(self) -> list[str]:
        """The last lines of standard error, at most 40 and 4,000 characters."""
        found: list[str] = []
        room = _LONGEST_LAST_WORDS
        for line in reversed(self._last_errors):
            room -= len(line)
            if room < 0:
                break
            found.append(line)
        return found[::-1]

    def read(self, timeout: float) -> bool:
        """Wait for output, at most `timeout` seconds, and take a piece of each stream; False when there was none."""
        ready = self._selector.select(timeout)
        for key, _events in ready:
            try:
                piece = os.read(key.fd, _PIECE)
            except BlockingIOError:
                continue
            if not piece:
                self._selector.unregister(key.fileobj)
            for line in key.data.splitter.feed(piece):
                self._take(line, key.data)
        return bool(ready)

    def end(self) -> None:
        """Take the lines whose end is missing, and tell how many were left out last: nothing more is read."""
        for stream in self._streams:
            for line in stream.splitter.rest():
                self._take(line, stream)
        self._tell_gap(self._thinning.end())

    def close(self) -> None:
        """Stop looking at the pipes, which are closed by whoever has opened them."""
        self._selector.close()

    def _take(self, line: Line, stream: _Stream) -> None:
        self.lines += 1
        if self._heed(line):
            return
        text = shown(line)
        if not text:
            return
        if stream.of_errors:
            self._last_errors.append(text[:_LONGEST_LAST_LINE])
        written, gap = self._thinning.take(time.monotonic())
        if written:
            self._tell_gap(gap)
            self._tell(text, stream.level)

    def _tell_gap(self, lines: int) -> None:
        if lines:
            self._tell(
                stored("%(count)s lines were left out here: they came too fast.", count=f"{lines:,}"),
                "warning",
            )
