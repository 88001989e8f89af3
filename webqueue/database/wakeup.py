"""Wake-ups: hints that work may be due. The truth is always a poll of the table (DESIGN section 5)."""

from __future__ import annotations

import threading

from sqlalchemy.orm import Session

CHANNEL = "webqueue"
_REQUESTED = "webqueue_wakeup"


class Wakeup:
    """Wakes the threads of this process that sleep until work is due."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._generation = 0

    @property
    def generation(self) -> int:
        """A number that grows with every wake-up; read it before looking for work."""
        with self._changed:
            return self._generation

    def announce(self) -> None:
        """Wake every sleeper of this process."""
        with self._changed:
            self._generation += 1
            self._changed.notify_all()

    def wait(self, seen: int, timeout: float) -> bool:
        """Sleep until there is a wake-up later than `seen`, or for `timeout` seconds; True when woken."""
        with self._changed:
            return self._changed.wait_for(lambda: self._generation != seen, timeout)


def request_wakeup(session: Session) -> None:
    """Let the transaction of `session` wake the workers of every process once it is committed."""
    session.info[_REQUESTED] = True


def wakeup_requested(session: Session) -> bool:
    """Whether `request_wakeup` was called in this transaction."""
    return bool(session.info.get(_REQUESTED))
