"""One run of a command: its output is read, its marks are heeded, and it is stopped when it has to be."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from webqueue.handlers.command.environment import page_at_start
from webqueue.handlers.command.marks import Marks
from webqueue.handlers.command.parameters import CommandParameters
from webqueue.handlers.lines import harmless
from webqueue.handlers.output import Output
from webqueue.handlers.process_group import ProcessGroup
from webqueue.handlers.protocol import Context, RunsPrograms
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome
from webqueue.sentences import stored

# The code of a failure that will pass (sysexits.h): the program met a block.
TEMPORARY_FAILURE: Final = 75
NOT_FOUND: Final = 127
_LOOK_SEC: Final = 0.1
# After the group is dead its pipes end too, unless somebody else holds them.
_DRAIN_SEC: Final = 2.0


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
        self._stop_asked_at: float | None = None
        self._stopped = False
        self._group = ProcessGroup(
            params.argv,
            env=env,
            cwd=Path(params.cwd) if params.cwd else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._group.stdout is not None
        assert self._group.stderr is not None
        # Many a program tells on its standard error how it goes: that is no warning.
        self._output = Output(
            self._group.stdout, self._group.stderr, ctx.log, heed=self._marks.take, errors_level="info"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.close()
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
        while self._output.is_open and time.monotonic() < give_up_at:
            self._read(_LOOK_SEC)
        self._output.end()
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
                stored(
                    "The command did not end within %(seconds)s s of SIGTERM, and is killed.",
                    seconds=f"{self._params.grace_sec:g}",
                ),
                "warning",
            )
            self._group.kill()

    def _read(self, timeout: float) -> None:
        """Take what is there of both outputs, a piece of each."""
        if self._output.is_open:
            self._output.read(timeout)
        else:
            self._group.wait(timeout)

    def _outcome(self, code: int) -> Outcome:
        result = self._result(code)
        if self._stopped:
            return Cancelled(result)
        blocked = self._marks.blocked
        if blocked is not None or code == TEMPORARY_FAILURE:
            reason = (
                blocked.reason
                if blocked
                else stored("exit code %(code)s of the command", code=TEMPORARY_FAILURE)
            )
            return Blocked(reason, blocked.retry_after if blocked else None, result=result)
        if code == 0:
            return Done(result)
        return Failed(self._error(code), result)

    def _result(self, code: int) -> dict[str, Any]:
        result: dict[str, Any] = {"exit_code": code, "lines": self._output.lines}
        if self._output.left_out:
            result["lines_left_out"] = self._output.left_out
        if self._marks.malformed:
            result["marks_not_understood"] = self._marks.malformed
        if code and (last := self._output.last_errors):
            result["stderr"] = last
        return result

    def _error(self, code: int) -> str:
        facts = {"program": repr(harmless(self._params.argv[0])), "code": code}
        last = "\n".join(self._output.last_errors)
        if code < 0:
            how = stored(
                "The command %(program)s was ended by %(signal)s", **facts, signal=_signal_name(-code)
            )
        elif code == NOT_FOUND:
            how = stored(
                "The command %(program)s ended with exit code %(code)s: mostly a program that is not there",
                **facts,
            )
        else:
            how = stored("The command %(program)s ended with exit code %(code)s", **facts)
        if last:
            return stored("%(what)s. Its last errors:\n%(last)s", what=how, last=last)
        return stored("%(what)s, without a word on its standard error.", what=how)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
