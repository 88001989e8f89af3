"""Two transactions that meet in one known way: nothing here waits by the clock, only until a lock is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import text
from sqlalchemy.orm import Session

from tests.helpers.waiting import wait_until
from webqueue.database import Database

S = TypeVar("S")
T = TypeVar("T")
WAIT_SEC = 30.0


class Background(Generic[T]):
    """Runs `work` in a thread of its own, and keeps what it returned or raised."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._result: T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for the end; what was returned, or the error."""
        self._thread.join(WAIT_SEC)
        assert self.ended, "the thread does not end"
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._result = work()
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            self._error = error


@dataclass(frozen=True)
class Meeting:
    """The same database, opened twice, as by two processes."""

    one: Database
    other: Database

    def run(
        self, first: Callable[[Session], S], second: Callable[[Session], T], *, waits: bool = True
    ) -> tuple[S, Background[T]]:
        """Let `first` do all but its COMMIT; `second` begins then, and waits for a lock; then `first` commits.

        Args:
            first: a verb.
            second: another one, run in a second connection by a second thread.
            waits: False where PostgreSQL lets `second` end before `first` commits. (SQLite never does.)
        """
        asked = threading.Event()

        def begin() -> T:
            # Before its transaction: on SQLite that waits for the lock before it does anything else.
            asked.set()
            return self.other.run(second)

        with self.one.transaction() as session:
            result = first(session)
            session.flush()
            rival = Background(begin)
            if self.one.is_sqlite:
                # The busy handler shows nothing of its waiting; but its BEGIN cannot succeed before this one ends.
                assert asked.wait(WAIT_SEC)
                assert not rival.ended
            elif waits:
                self.wait_until_blocked(rival)
            else:
                wait_until(lambda: rival.ended, timeout=WAIT_SEC)
        return result, rival

    def wait_until_blocked(self, rival: Background[Any], count: int = 1) -> None:
        """Wait until `count` connections of a PostgreSQL database wait for locks."""

        def blocked() -> bool:
            assert not rival.ended, f"it did not wait: {rival.result()}"
            with self.one.engine.connect() as connection:
                waiting = connection.scalar(
                    text(
                        "SELECT count(*) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                    )
                )
            return bool(waiting == count)

        wait_until(blocked, timeout=WAIT_SEC)
