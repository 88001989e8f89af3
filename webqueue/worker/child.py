"""The process of one isolated handler: started, watched, and gone before anybody is told of its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from webqueue import clock, logs
from webqueue.handlers.isolated.wire import Channel
from webqueue.handlers.output import Output
from webqueue.handlers.process_group import ProcessGroup
from webqueue.worker.escalation import escalation_of
from webqueue.worker.runs import Run, Stop

log = logs.get(__name__)

_PROGRAM: Final = "webqueue.handlers.isolated"
# Between two looks at the process, its output and the reasons to end it, in seconds.
_LOOK_SEC: Final = 0.1
_LOOK_AT_END_SEC: Final = 0.01
# What is left in the pipes when every process has ended is read within this time; a process that got away may hold them.
_DRAIN_SEC: Final = 1.0


class Child:
    """A process group for one run, with a thread that reads what it prints and ends it when it has to end.

    Only that thread deals with the group, so that no signal ever meets a number that is somebody else's by then.

    Args:
        run: whose stop decides when the process is told to end, and when it is killed.
        grace_sec: how long a handler gets to see that it should stop.
        tell: takes each line that it prints, and a level.

    Raises:
        OSError: no further process can be started.
    """

    def __init__(self, run: Run, *, grace_sec: float, tell: Callable[[str, str], None]) -> None:
        self._run = run
        self._grace_sec = grace_sec
        self._ends_at: float | None = None  # set when nothing is expected of it any more
        self._terminated = False
        self._group, self.channel = _start()
        assert self._group.stdout is not None
        assert self._group.stderr is not None
        self._output = Output(self._group.stdout, self._group.stderr, tell)
        self.group = self._group.pid
        self.exit_code: int | None = None
        self._keeper = threading.Thread(target=self._keep, name=f"child-{run.lease.job_id}", daemon=True)
        self._keeper.start()

    @property
    def last_words(self) -> str:
        """The last lines of its standard error."""
        return "\n".join(self._output.last_errors)

    def close(self, *, patience_sec: float = 0.0) -> None:
        """Let it end, and everything that it has started; returns when nothing of it is left.

        Args:
            patience_sec: how long it may tidy up after its last word, before it is killed.
        """
        if self._ends_at is None:
            self._ends_at = clock.boot_seconds() + patience_sec
        self._keeper.join()
        self.channel.close()

    def _keep(self) -> None:
        try:
            while not self._group.ended():
                self._listen()
                self._look()
            self._drain()
        except Exception:
            log.exception("process of a handler cannot be watched; it is killed", **self._facts())
        finally:
            self._end()

    def _end(self) -> None:
        """Collect the process; whatever goes wrong there, the thread that listens to it must not wait for ever."""
        try:
            self.exit_code = self._group.close()
            self._output.end()
            self._output.close()
        except Exception:
            log.exception("process of a handler cannot be collected", **self._facts())
        finally:
            # A process that got away may still hold the other end.
            self.channel.shut()

    def _listen(self) -> None:
        if self._output.is_open:
            self._output.read(_LOOK_SEC if self._ends_at is None else _LOOK_AT_END_SEC)
        else:
            time.sleep(_LOOK_AT_END_SEC)

    def _look(self) -> None:
        now = clock.boot_seconds()
        if self._ends_at is not None:
            if now > self._ends_at:
                self._group.kill()
            return
        if now > self._run.time_limit_at:
            self._run.request_stop(Stop.TIME_LIMIT)
        due = escalation_of(self._run, grace_sec=self._grace_sec)
        if now >= due.sigkill_at:
            log.warning("process of a handler is killed", why=_why(self._run), **self._facts())
            self._group.kill()
        elif now >= due.sigterm_at and not self._terminated:
            self._terminated = True
            log.warning("process of a handler is told to end", why=_why(self._run), **self._facts())
            self._group.signal(signal.SIGTERM)

    def _drain(self) -> None:
        give_up_at = time.monotonic() + _DRAIN_SEC
        while self._output.is_open and time.monotonic() < give_up_at:
            self._output.read(_LOOK_AT_END_SEC)

    def _facts(self) -> dict[str, object]:
        lease = self._run.lease
        return {
            "job": lease.job_id,
            "rate_key": lease.rate_key,
            "worker": lease.worker_id,
            "group": self.group,
        }


def _start() -> tuple[ProcessGroup, Channel]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            group = ProcessGroup(
                # -P: what lies in the working folder must not stand for a module. The path comes over the wire.
                [sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno())],
                env=os.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        except BaseException:
            ours.close()
            raise
    return group, Channel(ours)


def _why(run: Run) -> str:
    if run.forced:
        return "force stop"
    return run.stop.value if run.stop is not None else ""
