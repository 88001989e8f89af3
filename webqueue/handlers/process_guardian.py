"""The program between a worker and a command: it ends when the worker does, and takes every process below it along.

Started by `process_group` as a plain script, with nothing but the standard library:

    python -I -S process_guardian.py LIFELINE_FD PROGRAM [ARGUMENT ...]

It leads the process group, so that the group's number is not given to others while the worker has not collected it. A
parent-death signal alone would not do: it reaches the first process only, none that this one started, and it is sent when
the *thread* that started the process ends. The lifeline is a pipe whose other end only the worker holds: however the worker
ends, also by SIGKILL, the kernel closes it, and this program sees that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

CANNOT_RUN = 126
NOT_FOUND = 127

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# How long processes that fork faster than they are killed are chased, in seconds; then the group is killed at once.
_CHASE_SEC = 2.0
# Sent to the group by `process_group`; meant for the command, which decides about itself.
_FOR_THE_COMMAND = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def main(arguments: list[str]) -> None:
    """Start the program, wait for its end or the worker's, and end in the same way as the program."""
    lifeline, argv = int(arguments[0]), arguments[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_FOR_THE_COMMAND, signal.SIGCHLD})
    wakeup = _prepare_to_wait()
    # Whatever the command leaves behind becomes a child of this process, also what left the group.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    child = os.fork()
    if child == 0:
        os.set_inheritable(lifeline, False)
        _become(argv, guardian)
    _let_go_of_files(keep=(lifeline, wakeup))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_FOR_THE_COMMAND, signal.SIGCHLD})
    status = _wait(child, lifeline, wakeup)
    if not _kill_descendants() or status is None:
        os.killpg(0, signal.SIGKILL)
    _end_like(status)


def _prepare_to_wait() -> int:
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (*_FOR_THE_COMMAND, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read


def _become(argv: list[str], guardian: int) -> None:
    """Turn this process, the child, into the program. Does not return."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:
        os.kill(os.getpid(), signal.SIGKILL)  # it ended before the signal was set
    # A program expects the usual answers to signals; what Python ignores would stay ignored in it.
    for number in (*_FOR_THE_COMMAND, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - what this program is for
    except FileNotFoundError as error:
        _refuse(argv[0], error, NOT_FOUND)
    except OSError as error:
        _refuse(argv[0], error, CANNOT_RUN)


def _refuse(program: str, error: OSError, code: int) -> None:
    os.write(2, f"{program}: {error.strerror}\n".encode(errors="backslashreplace"))
    os._exit(code)


def _let_go_of_files(keep: tuple[int, int]) -> None:
    """Close what belongs to the command: who reads its output has to see the end of it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    write = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - quick to start
        if int(name) > 2 and int(name) not in {*keep, write}:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(int(name))


def _wait(child: int, lifeline: int, wakeup: int) -> int | None:
    """The wait status of the child; None when the worker ended, or let go of the command, before it."""
    while True:
        # Orphans of the command end here too: they are collected, or they would pile up as long as it runs.
        with contextlib.suppress(ChildProcessError):
            while True:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if ended == child:
                    return status
                if ended == 0:
                    break
        ready, _, _ = select.select([lifeline, wakeup], [], [])
        if lifeline in ready:
            return None
        os.read(wakeup, 4096)


def _kill_descendants() -> bool:
    """Kill every process that is left below this one; False when they do not come to an end."""
    give_up_at = time.monotonic() + _CHASE_SEC
    while time.monotonic() < give_up_at:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)
        except ChildProcessError:
            return True
    return False


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123 - quick to start
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []  # no Linux: the group is killed by the worker, when this process has ended


def _end_like(status: int | None) -> None:
    if status is None:
        os._exit(CANNOT_RUN)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        # The core, if any, is the command's.
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _prctl(option: int, value: int) -> None:
    """Call prctl(2) where there is one; what it adds is a second line of defence."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
