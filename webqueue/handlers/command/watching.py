"""One run of a command: its output is read, its marks are heeded, and it is stopped when it has to be."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from webqueue.handlers.command.environment import page_at_start
from webqueue.handlers.command.lines import Line, LineSplitter, Thinning, harmless, shown
from webqueue.handlers.command.marks import Marks
from webqueue.handlers.command.parameters import CommandParameters
from webqueue.handlers.process_group import ProcessGroup
from webqueue.handlers.protocol import Context, RunsPrograms
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome

# The code of a failure that will pass (sysexits.h): the program met a block.
TEMPORARY_FAILURE: Final = 75
NOT_FOUND: Final = 127
_LOOK_SEC: Final = 0.1
_PIECE: Final = 65_536
# After the group is dead its pipes end too, unless somebody else holds them.
_DRAIN_SEC: Final = 2.0
_LAST_LINES: Final = 20
_LONGEST_LAST_LINE: Final = 500


class Watch:
    """Starts a command and follows it.

    Args:
        ctx: of the job.
        params: of the target.
        env: the whole environment of the program.

    Raises:
        OSError: it cannot be started: its folder is not there, or no process is to be had.
    """

    def __init__(self, ctx: Context, params: CommandParameters, env: Mapping[str, str]) -> None:
        self._ctx = ctx
        self._params = params
        self._marks = Marks(ctx, Path(params.cwd) if params.cwd else None, page_at_start(ctx))
        self._thinning = Thinning(time.monotonic())
        self._last_errors: deque[str] = deque(maxlen=_LAST_LINES)
        self._lines = 0
        self._stop_asked_at: float | None = None
        self._stopped = False
        self._group = ProcessGroup(
            params.argv,
            env=env,
            cwd=Path(params.cwd) if params.cwd else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._selector = selectors.DefaultSelector()
        for pipe in (self._group.stdout, self._group.stderr):
            assert pipe is not None, "both are pipes"
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, LineSplitter())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        self._group.close()
        if isinstance(self._ctx, RunsPrograms):
            # What it asked for, and when, is not seen: the end of the program is the latest it can have been.
            self._ctx.requested()

    def until_end(self) -> Outcome:
        """Follow the program to its end.

        Raises:
            LeaseLostError: the job is no longer this worker's; the program is to be ended at once.
        """
        if isinstance(self._ctx, RunsPrograms):
            self._ctx.started(self._group.pid)
        while not self._group.ended():
            self._read(_LOOK_SEC)
            self._look()
        give_up_at = time.monotonic() + _DRAIN_SEC
        while self._selector.get_map() and time.monotonic() < give_up_at:
            self._read(_LOOK_SEC)
        for key in list(self._selector.get_map().values()):
            self._end_of(key.fileobj, key.data)
        self._note_gap(self._thinning.end())
        self._marks.write(now=True)
        return self._outcome(self._group.close())

    def _look(self) -> None:
        """Whether the program has to stop, by now by force."""
        if isinstance(self._ctx, RunsPrograms):
            self._ctx.check_lease()
            if self._ctx.forced():
                self._stopped = True
                self._group.kill()
                return
        self._marks.write()
        now = time.monotonic()
        if self._stop_asked_at is None:
            told = self._marks.blocked_at
            # One that says that it is blocked has the same time to end by itself, then it is asked to.
            if self._ctx.should_stop() or (told is not None and now > told + self._params.grace_sec):
                self._stopped = self._ctx.should_stop()
                self._stop_asked_at = now
                self._group.signal(signal.SIGTERM)
        elif now > self._stop_asked_at + self._params.grace_sec:
            self._ctx.log(
                f"The command did not end within {self._params.grace_sec:g} s of SIGTERM, and is killed.",
                "warning",
            )
            self._group.kill()

    def _read(self, timeout: float) -> None:
        """Take what is there of both outputs, a piece of each."""
        if not self._selector.get_map():
            self._group.wait(timeout)
            return
        for key, _ in self._selector.select(timeout):
            splitter: LineSplitter = key.data
            try:
                data = os.read(key.fd, _PIECE)
            except BlockingIOError:
                continue
            for line in splitter.feed(data):
                self._take(line, of_errors=key.fileobj is self._group.stderr)
            if not data:
                self._end_of(key.fileobj, splitter)

    def _end_of(self, pipe: Any, splitter: LineSplitter) -> None:
        stream: IO[bytes] = pipe
        self._selector.unregister(stream)
        for line in splitter.rest():
            self._take(line, of_errors=stream is self._group.stderr)

    def _take(self, line: Line, *, of_errors: bool) -> None:
        self._lines += 1
        if line.data.startswith(b"::") and self._marks.take(line):
            return
        text = shown(line)
        if of_errors and text:
            self._last_errors.append(text[:_LONGEST_LAST_LINE])
        if text:
            self._log(text)

    def _log(self, text: str) -> None:
        written, gap = self._thinning.take(time.monotonic())
        if written:
            self._note_gap(gap)
            self._ctx.log(text)

    def _note_gap(self, lines: int) -> None:
        if lines:
            self._ctx.log(f"{lines:,} lines were left out here: they came too fast.", "warning")

    def _outcome(self, code: int) -> Outcome:
        result = self._result(code)
        if self._stopped:
            return Cancelled(result)
        blocked = self._marks.blocked
        if blocked is not None or code == TEMPORARY_FAILURE:
            reason = blocked.reason if blocked else f"exit code {TEMPORARY_FAILURE} of the command"
            return Blocked(reason, blocked.retry_after if blocked else None, result=result)
        if code == 0:
            return Done(result)
        return Failed(self._error(code), result)

    def _result(self, code: int) -> dict[str, Any]:
        result: dict[str, Any] = {"exit_code": code, "lines": self._lines}
        if self._thinning.left_out:
            result["lines_left_out"] = self._thinning.left_out
        if self._marks.malformed:
            result["marks_not_understood"] = self._marks.malformed
        if code and self._last_errors:
            result["stderr"] = list(self._last_errors)
        return result

    def _error(self, code: int) -> str:
        program = harmless(self._params.argv[0])
        last = "\n".join(self._last_errors)
        if code < 0:
            how = f"The command {program!r} was ended by {_signal_name(-code)}"
        elif code == NOT_FOUND:
            how = f"The command {program!r} ended with exit code {code}: mostly a program that is not there"
        else:
            how = f"The command {program!r} ended with exit code {code}"
        return f"{how}. Its last errors:\n{last}" if last else f"{how}, without a word on its standard error."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
