"""Lines of a job's log, whatever a program writes or a handler tells: bounded in length and number, harmless to look at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

# Of a line that is no text but data (`::document`); what goes beyond it is dropped and counted.
LONGEST_LINE: Final = 4_000_000
LONGEST_SHOWN: Final = 2_000
# Of what a handler tells in one go, in characters and in lines: a traceback, and no page.
LONGEST_TOLD: Final = 10_000
MOST_TOLD: Final = 100
# Colours and cursor movements (ECMA-48 §5.4), and strings for the terminal such as its title (§5.6).
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
# Control characters but tab, half characters, further line ends, and marks that turn the direction of writing (Unicode UAX #9).
_NOT_SHOWN: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True)
class Line:
    """One line; `cut` are the bytes that were dropped from its end."""

    data: bytes
    cut: int = 0

    @property
    def text(self) -> str:
        """The whole of it; bytes that are no UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass
class LineSplitter:
    """Splits what comes in pieces; a line without an end is kept up to `longest` bytes."""

    longest: int = LONGEST_LINE
    _kept: bytearray = field(default_factory=bytearray)
    _cut: int = 0

    def feed(self, data: bytes) -> list[Line]:
        """The lines that are complete with this piece."""
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            self._keep(piece)
            lines.append(self._take())
        self._keep(rest)
        return lines

    def rest(self) -> list[Line]:
        """The last line, where its end is missing."""
        return [self._take()] if self._kept else []

    def _keep(self, piece: bytes) -> None:
        room = self.longest - len(self._kept)
        self._kept += piece[:room]
        self._cut += max(0, len(piece) - room)

    def _take(self) -> Line:
        line = Line(bytes(self._kept), self._cut)
        self._kept.clear()
        self._cut = 0
        return line


def shown(line: Line) -> str:
    """A line as the log shows it; empty where there is nothing to see.

    Of a progress bar, which goes back to the start of its line, the last state. What steers a terminal, or turns the
    direction of writing around it, is taken out: the log is read in browsers and terminals.
    """
    text = Line(line.data[: 4 * LONGEST_SHOWN]).text if len(line.data) > 4 * LONGEST_SHOWN else line.text
    states = [state for state in text.split("\r") if state.strip()]
    text = harmless(states[-1]) if states else ""
    total = len(line.data) + line.cut
    if len(text) > LONGEST_SHOWN or total > 4 * LONGEST_SHOWN:
        return f"{text[:LONGEST_SHOWN]}… (a line of {total:,} bytes, cut)"
    return text


def harmless(text: str) -> str:
    """`text` without what is not seen but does something."""
    return _NOT_SHOWN.sub("\ufffd", _ESCAPES.sub("", text)).rstrip()


def told(message: str) -> list[str]:
    """What a handler tells, as lines of its log: one, or more where the message has line ends; never none."""
    cut = len(message) > LONGEST_TOLD
    lines = [line for line in map(harmless, message[:LONGEST_TOLD].splitlines()) if line] or [""]
    if len(lines) > MOST_TOLD:
        lines[MOST_TOLD - 1 :] = [f"… ({len(lines) - MOST_TOLD + 1:,} lines more)"]
    elif cut:
        lines[-1] += f"… (a message of {len(message):,} characters, cut)"
    return lines


class Thinning:
    """Decides which lines of a flood are written: a burst, then so many a second, and few once there are very many.

    Args:
        now: seconds on a clock that never goes back.
        burst: lines that may come at once.
        per_sec: lines a second from then on.
        many: lines after which only one a second is written.
    """

    def __init__(self, now: float, *, burst: int = 200, per_sec: float = 50.0, many: int = 20_000) -> None:
        self.left_out = 0
        self._burst = burst
        self._per_sec = per_sec
        self._many = many
        self._written = 0
        self._room = float(burst)
        self._at = now
        self._gap = 0

    def take(self, now: float) -> tuple[bool, int]:
        """Whether the next line is written, and how many were left out right before it."""
        rate = self._per_sec if self._written < self._many else 1.0
        self._room = min(float(self._burst), self._room + (now - self._at) * rate)
        self._at = now
        if self._room < 1:
            self.left_out += 1
            self._gap += 1
            return False, 0
        self._room -= 1
        self._written += 1
        gap, self._gap = self._gap, 0
        return True, gap

    def end(self) -> int:
        """How many were left out since the last line that was written."""
        gap, self._gap = self._gap, 0
        return gap
