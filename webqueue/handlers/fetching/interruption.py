"""What ends a wait: a stop, an abort from another thread, or the deadline of the exchange under way.

A thread that sits in a blocking call on a socket cannot be called back. So nothing here blocks on a socket alone: every
wait watches a pipe as well, into which `abort` writes, and a hung server holds nobody longer than that.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import httpcore2

from webqueue import clock
from webqueue.handlers.protocol import StopRequested

T = TypeVar("T")

# Nobody tells of a stop that is not an abort (time limit, shutdown): waits look for it this often.
LOOK_EVERY_SEC = 0.5


class TotalTimeoutError(httpcore2.TimeoutException):
    """The whole exchange took longer than it may."""


class Interruption:
    """The waits of one fetcher.

    Args:
        should_stop: whether the job was asked to stop; asked twice a second during waits.
    """

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._condition = threading.Condition()
        self._aborted = False
        self._closed = False
        self._deadline: float | None = None
        self._watched, self._bell = os.pipe()

    def abort(self) -> None:
        """End every wait, now and from now on; from any thread, at any time."""
        with self._condition:
            if not self._aborted and not self._closed:
                os.write(self._bell, b"!")  # never read, so that the pipe stays readable for every later wait
            self._aborted = True
            self._condition.notify_all()

    def close(self) -> None:
        """Give the pipe back; nothing may be waiting."""
        with self._condition:
            if not self._closed:
                os.close(self._watched)
                os.close(self._bell)
            self._closed = True

    def begin(self, total_sec: float) -> None:
        """An exchange begins that may take so many seconds."""
        self._deadline = time.monotonic() + total_sec

    def check(self) -> None:
        """Raise what should end the present doing.

        Raises:
            StopRequested: a stop was requested.
            TotalTimeoutError: the time of the exchange is used up.
        """
        self.raise_if_stopped()
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TotalTimeoutError

    def raise_if_stopped(self) -> None:
        """Raise StopRequested if a stop was requested."""
        if self._aborted or self._should_stop():
            raise StopRequested("The job was asked to stop.")

    def sleep_until(self, due: float, look: Callable[[], None]) -> None:
        """Wait until `clock.boot_seconds()` reaches `due`.

        Args:
            due: may lie in the past.
            look: called now and then, and last just before the return; what it raises ends the wait.

        Raises:
            StopRequested: a stop was requested.
        """
        while True:
            self.raise_if_stopped()
            look()
            left = due - clock.boot_seconds()
            if left <= 0:
                return
            with self._condition:
                if not self._aborted:
                    self._condition.wait(min(left, LOOK_EVERY_SEC))

    def wait_for(self, sock: socket.socket, event: int, until: float) -> None:
        """Wait until a socket is readable or writable.

        Args:
            sock: the socket.
            event: `select.POLLIN` or `select.POLLOUT`.
            until: a time of `time.monotonic()`.

        Raises:
            StopRequested, TotalTimeoutError: as `check`.
            TimeoutError: `until` has come.
        """
        poll = select.poll()
        poll.register(sock, event)
        poll.register(self._watched, select.POLLIN)
        while True:
            self.check()
            left = self._left(until)
            if left <= 0:
                raise TimeoutError
            # At least a millisecond: rounded down to nothing it would spin.
            ready = poll.poll(max(1.0, min(left, LOOK_EVERY_SEC) * 1000))
            if any(descriptor == sock.fileno() for descriptor, _ in ready):
                return

    def run_beside(self, work: Callable[[], T], until: float) -> T:
        """Run what cannot be interrupted (a look-up of a name) in a thread of its own, and wait for it.

        On a stop the thread is left behind; it ends when the system's resolver gives up.

        Raises:
            StopRequested, TotalTimeoutError: as `check`.
            TimeoutError: `until`, a time of `time.monotonic()`, has come.
        """
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                outcome.set_exception(error)
            with self._condition:
                self._condition.notify_all()

        threading.Thread(target=run, name="webqueue-lookup", daemon=True).start()
        with self._condition:
            while not outcome.done():
                self.check()
                left = self._left(until)
                if left <= 0:
                    raise TimeoutError
                self._condition.wait(min(left, LOOK_EVERY_SEC))
        return outcome.result()

    def _left(self, until: float) -> float:
        return (until if self._deadline is None else min(until, self._deadline)) - time.monotonic()
