"""The command line within the test's process: everything but the two seconds that a new process takes to start."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from webqueue.cli import main


@dataclass(frozen=True)
class Said:
    """What a command came to: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, read as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Its output by lines."""
        return self.out.splitlines()

    @property
    def complaint(self) -> str:
        """The one line of a refusal."""
        assert self.code != 0, self
        assert self.out == "", "a refusal has no output"
        line, *more = self.err.splitlines()
        assert more == [], "a refusal is one line"
        assert line.startswith("webqueue: ")
        return line.removeprefix("webqueue: ")


@dataclass(frozen=True)
class CommandLine:
    """Runs `webqueue ARGUMENTS` as the installed script does, on one database."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path, stdin: str = "") -> Said:
        """Run a command to its end."""
        self.capsys.readouterr()
        with self.monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["webqueue", *map(str, arguments)])
            patched.setattr(sys, "stdin", io.StringIO(stdin))
            code = _exit_code()
        out, err = self.capsys.readouterr()
        return Said(code, out, err)

    def done(self, *arguments: str | Path, stdin: str = "") -> Said:
        """Run a command that has to succeed, and has nothing to complain of."""
        said = self(*arguments, stdin=stdin)
        assert (said.code, said.err) == (0, ""), said
        return said


@contextmanager
def command_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: Sequence[tuple[str, str]],
) -> Iterator[CommandLine]:
    """A command line with these settings; the logging that commands set up is undone at the end."""
    import logging

    for name, value in environment:
        monkeypatch.setenv(name, value)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        yield CommandLine(monkeypatch, capsys)
    finally:
        root.handlers = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ending:
        if not isinstance(ending.code, int):
            raise TypeError(f"a text as exit code is written past the test: {ending.code!r}") from None
        return ending.code
    return 0
