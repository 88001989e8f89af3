"""What a process prints, as lines of its job's log: bounded, however much it is."""

from __future__ import annotations

import os
import selectors
from collections import deque
from collections.abc import Callable
from typing import IO, Final

# In all; a job's log is read by people, and kept in the database.
MOST_LINES: Final = 1_000
MOST_BYTES: Final = 500_000
_LONGEST_LINE: Final = 4_000
_TAIL_LINES: Final = 40
_LONGEST_TAIL: Final = 4_000
_CHUNK: Final = 1 << 16


class Output:
    """Reads standard output and error of a process, and tells them line by line.

    All of it is read, so that the process never waits; what is beyond the bounds is counted.

    Args:
        stdout: told with the level `info`.
        stderr: told with the level `warning`; its last lines are kept for the error.
        tell: takes a line and its level.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._lines = 0
        self._bytes = 0
        self._dropped_lines = 0
        self._dropped_bytes = 0
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._rest: dict[str, bytes] = {"info": b"", "warning": b""}
        self._selector = selectors.DefaultSelector()
        for stream, level in ((stdout, "info"), (stderr, "warning")):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, level)

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return bool(self._selector.get_map())

    @property
    def tail(self) -> str:
        """The last lines of standard error."""
        text = "\n".join(self._tail)
        return text if len(text) <= _LONGEST_TAIL else f"…{text[-_LONGEST_TAIL:]}"

    def read(self, timeout: float) -> bool:
        """Wait for output, at most `timeout` seconds, and tell it; False when there was none."""
        ready = self._selector.select(timeout)
        for key, _events in ready:
            chunk = os.read(key.fd, _CHUNK)
            if not chunk:
                self._selector.unregister(key.fileobj)
            self._take(chunk, key.data)
        return bool(ready)

    def close(self) -> None:
        """Tell the lines that have no end, and how much was left out."""
        for level, rest in self._rest.items():
            if rest:
                self._add(rest, level)
        self._selector.close()
        if self._dropped_lines:
            self._tell(
                f"{self._dropped_lines} lines more ({self._dropped_bytes} bytes) were printed; they are not kept",
                "warning",
            )

    def _take(self, chunk: bytes, level: str) -> None:
        *lines, rest = (self._rest[level] + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._rest[level] = rest
        for line in lines:
            self._add(line, level)

    def _add(self, line: bytes, level: str) -> None:
        text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
        if level == "warning":
            self._tail.append(text)
        if self._lines >= MOST_LINES or self._bytes >= MOST_BYTES:
            self._dropped_lines += 1
            self._dropped_bytes += len(line) + 1
            return
        self._lines += 1
        self._bytes += len(line) + 1
        self._tell(text, level)
