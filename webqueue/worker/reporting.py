"""What a handler tells while it runs: kept for up to a second, then written in one fenced transaction (P4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue import clock, jobs, logs
from webqueue.database import Database
from webqueue.errors import LeaseLostError
from webqueue.handlers.lines import told
from webqueue.sentences import stored
from webqueue.worker.refusals import is_refused

log = logs.get(__name__)

LEVELS: Final = frozenset({"debug", "info", "warning", "error"})
_LONGEST_MESSAGE: Final = 1_000
# While the database is away the lines wait here; a handler that logs in a loop must not fill the memory.
_MOST_LINES: Final = 5_000


@dataclass
class _Pending:
    """What is still to be written."""

    progress: dict[str, Any] = field(default_factory=dict)
    lines: list[tuple[datetime, str, str]] = field(default_factory=list)
    dropped: int = 0

    def __bool__(self) -> bool:
        return bool(self.progress or self.lines)


class Reporter:
    """Progress and log lines of one run.

    Args:
        database: where they are written to.
        lease: the run's; once it is lost nothing is written any more.
        counters: asked at each flush for figures of the run so far.
    """

    def __init__(
        self, database: Database, lease: jobs.Lease, *, counters: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._database = database
        self._lease = lease
        self._counters = counters
        self._written_counters: Mapping[str, Any] = {}
        self._pending = _Pending()
        self._buffer = threading.Lock()
        self._writing = threading.Lock()  # keeps the lines in their order when two threads flush

    def progress(self, **values: Any) -> None:
        """Take values of `jobs.progress`; what is None is left out."""
        given = {name: value for name, value in values.items() if value is not None}
        if "message" in given:
            given["message"] = str(given["message"])[:_LONGEST_MESSAGE]
        with self._buffer:
            self._pending.progress |= given

    def log(self, message: str, level: str) -> None:
        """Take a message for the job's log: a line, or more where it has line ends."""
        at, level = clock.local_now(), level if level in LEVELS else "info"
        with self._buffer:
            for line in told(str(message)):
                if len(self._pending.lines) < _MOST_LINES:
                    self._pending.lines.append((at, level, line))
                else:
                    self._pending.dropped += 1

    def flush(self, along: Callable[[Session], None] | None = None) -> None:
        """Write everything taken so far, and whatever `along` writes, in one transaction.

        Raises:
            LeaseLostError: the job is no longer this lease's; nothing was written.
        """
        try:
            self._flush(along)
        except LeaseLostError:
            raise
        except Exception as error:
            if not is_refused(error):
                raise
            # It was dropped: kept, it would be refused again at every flush, and with it whatever comes later.
            log.exception("progress refused by the database", job=self._lease.job_id)
            self.log(
                stored(
                    "progress could not be stored: %(type)s: %(why)s",
                    type=type(error).__name__,
                    why=str(error),
                ),
                "warning",
            )
            self._flush(along)

    def _flush(self, along: Callable[[Session], None] | None) -> None:
        with self._writing:
            pending = self._take()
            if not pending and along is None:
                return
            try:
                self._database.run(lambda session: self._write(session, pending, along))
            except Exception as error:
                if not isinstance(error, LeaseLostError) and not is_refused(error):
                    self._put_back(pending)
                raise

    def _take(self) -> _Pending:
        counters = dict(self._counters())
        with self._buffer:
            pending, self._pending = self._pending, _Pending()
        if counters != self._written_counters:
            pending.progress["counters"] = self._written_counters = counters
        return pending

    def _put_back(self, pending: _Pending) -> None:
        with self._buffer:
            newer = self._pending
            newer.progress = pending.progress | newer.progress
            newer.lines[:0] = pending.lines
            newer.dropped += pending.dropped

    def _write(self, session: Session, pending: _Pending, along: Callable[[Session], None] | None) -> None:
        if along is not None:
            along(session)
        if pending.progress:
            jobs.progress(session, self._lease, **pending.progress)
        if pending.lines:
            # The lines have this machine's time; stored times are the database's (P10).
            shift = clock.now(session) - clock.local_now()
            lines = [(at + shift, level, message) for at, level, message in pending.lines]
            if pending.dropped:
                lines.append(
                    (
                        clock.now(session),
                        "warning",
                        stored("%(count)s lines more were dropped here", count=pending.dropped),
                    )
                )
            jobs.add_log_lines(session, self._lease, lines)
