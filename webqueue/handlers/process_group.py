"""A process group of a job's own: it is stopped as a whole, and never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from webqueue import logs
from webqueue.handlers import process_guardian

log = logs.get(__name__)

# Between two looks whether a group has ended, in seconds.
LOOK_SEC: Final = 0.05
# How long the guardian gets to kill what is below it before the group is killed from here.
_GUARDIAN_SEC: Final = 3.0


class ProcessGroup:
    """A program and everything that it starts, below a guardian that ends when this process does (DESIGN section 5).

    No shell is involved, no code runs between fork and exec of this process, which has threads. The group's number is
    the guardian's, and stays reserved until `close` collects it, so that a signal never meets somebody else's group.
    Processes that leave the group (daemons) are found by the guardian and killed like the others, on Linux.

    Use it as a context manager, or call `close` whatever happens.

    Args:
        argv: the program, looked up in the PATH of this process, and its arguments.
        env: the whole environment of the program.
        cwd: where it starts.
        stdin, stdout, stderr: as for `subprocess.Popen`; a closed stdin (`/dev/null`) if nothing is said.
        pass_fds: further file descriptors that the program inherits.

    Raises:
        OSError: no further process can be started. A program that is not there is not an error here: it ends with the
            code 127 (126 where it cannot be run), and says so on its standard error.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        lifeline, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - no shell; running a program is what this is for
                [sys.executable, "-I", "-S", process_guardian.__file__, str(lifeline), *argv],
                env=dict(env),
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(lifeline, *pass_fds),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(lifeline)
        self._code: int | None = None
        _all.add(self)

    @property
    def pid(self) -> int:
        """The number of the group."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes] | None:
        """The writing end, where `stdin` was `subprocess.PIPE`."""
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """The reading end, where `stdout` was `subprocess.PIPE`."""
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes] | None:
        """The reading end, where `stderr` was `subprocess.PIPE`."""
        return self._process.stderr

    def ended(self) -> bool:
        """Whether the program has ended, and the processes that it left behind too."""
        if self._code is not None:
            return True
        # It is only looked at: collected by `close`, after which the group's number may be somebody else's.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, timeout: float) -> bool:
        """Wait until the program has ended, at most `timeout` seconds; False when it has not."""
        give_up_at = time.monotonic() + timeout
        while not self.ended():
            left = give_up_at - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(LOOK_SEC, left))
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the group; nothing happens when it has ended."""
        if self._code is None:
            # Only zombies may be left (macOS answers that with EPERM), or processes of another user.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def stop(self, grace_sec: float) -> bool:
        """Ask the group to end (SIGTERM), and kill it when it has not after `grace_sec` seconds.

        Returns:
            Whether it ended by itself.
        """
        self.signal(signal.SIGTERM)
        if self.wait(grace_sec):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """Kill every process of the group, and those that left it, and wait until they are gone."""
        self._let_go()
        if not self.wait(_GUARDIAN_SEC):
            # The guardian is stopped or killed itself.
            self.signal(signal.SIGKILL)
            if not self.wait(_GUARDIAN_SEC):
                # In a system call that does not end (a dead network disk): SIGKILL has been sent, and waits for it.
                log.error("process group does not end", group=self.pid)

    def close(self) -> int:
        """Kill what is left, and collect the end of the program. The pipes are closed too.

        Returns:
            Its exit code; the negative number of the signal by which it ended (also where this method killed it).
        """
        if self._code is None:
            if not self.ended():
                self.kill()
            self.signal(signal.SIGKILL)
            self._let_go()
            self._code = self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
        return self._code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _let_go(self) -> None:
        """Close the lifeline: the guardian kills everything below it, and the group."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


_all: weakref.WeakSet[ProcessGroup] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """A handler in another thread may fork (multiprocessing): its child must not hold a lifeline when the worker dies."""
    for group in list(_all):
        group._let_go()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_after_fork_in_child)
