"""The witness: a file outside the database that everybody appends whole lines to; its order is what happened."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from webqueue import clock

VARIABLE: Final = "CHAOS_WITNESS"


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        what: `start`, `step`, `end` of a run; `killed`, `stopped`, `continued` of a process; `database_down` and
            `database_up`.
        at: seconds of `clock.boot_seconds`, which is the same in all processes of a machine.
        pid: the process it is about.
        run: unique for each call of a handler.
        token: of the run's lease.
        claimed_at: the time of the claim, as the database tells it (seconds since 1970).
        step: its number, from 1.
        outcome: of an `end`.
        position: its place in the file.
    """

    what: str
    at: float
    pid: int
    run: str = ""
    job: str = ""
    key: str = ""
    token: int = 0
    claimed_at: float = 0.0
    step: int = 0
    outcome: str = ""
    position: int = field(default=0, compare=False)


def note(what: str, *, path: str | None = None, pid: int | None = None, **facts: Any) -> None:
    """Append a line, whole or not at all: one write to a file opened with O_APPEND."""
    line = {"what": what, "at": clock.boot_seconds(), "pid": os.getpid() if pid is None else pid, **facts}
    file = os.open(path or os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


@dataclass
class Witness:
    """The file, as the test reads it."""

    path: Path
    _read: int = 0
    _ends: int = 0

    def note(self, what: str, *, pid: int = 0) -> None:
        """Add what the test does to a process or to the database."""
        note(what, path=str(self.path), pid=pid)

    def lines(self) -> list[Line]:
        """Everything so far."""
        return list(self._parsed())

    def ends(self) -> int:
        """How many runs have ended so far; cheap, it reads only what is new."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            whole = new.rfind(b"\n") + 1
            self._read += whole
            self._ends += new[:whole].count(b'"what": "end"')
        return self._ends

    def _parsed(self) -> Iterator[Line]:
        if self.path.exists():
            for position, text in enumerate(self.path.read_text().splitlines()):
                yield Line(**json.loads(text), position=position)
