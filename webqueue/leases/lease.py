"""The lease of one row: held by a handler, renewed by a thread while the handler lives."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from sqlalchemy.exc import DBAPIError

from webqueue import clock, logs
from webqueue.database import Database
from webqueue.leases.model import ModelWithQueue
from webqueue.leases.statements import Identity, database_now, key_text, lease_until, swap

log = logs.get(__name__)

# Renewed four times before it would end, and counted as lost a little before it does (DESIGN section 5: every 15 s
# of 60, 5 s to spare).
RENEWALS_PER_LEASE: Final = 4
MARGIN: Final = 1 / 12


class Lease:
    """The right to a row until a time that renewals move on.

    Args:
        database: where the row is.
        model: the queue.
        identity: the row's primary key.
        until: the `retry_at` that the claim wrote.
        lock_seconds: length of a lease.
        sent: `clock.boot_seconds()` before the claim.
    """

    def __init__(
        self,
        database: Database,
        model: type[ModelWithQueue],
        identity: Identity,
        *,
        until: datetime,
        lock_seconds: float,
        sent: float,
    ) -> None:
        self._database = database
        self._model = model
        self._identity = identity
        self._lock_seconds = lock_seconds
        self._values: tuple[datetime, ...] = (until,)
        self._lost = False
        self._deadline = self._deadline_from(sent)
        self._log = log.bind(model=model.__name__, key=key_text(identity))

    @property
    def held(self) -> bool:
        """Whether the row is still this handler's; asks no database. When False, the handler should stop."""
        return not self._lost and clock.boot_seconds() < self._deadline

    @property
    def values(self) -> tuple[datetime, ...]:
        """What `retry_at` is while the lease is ours: more than one while the answer to a renewal is missing."""
        return self._values

    @contextmanager
    def kept(self, states: Iterable[str]) -> Iterator[None]:
        """Renew it in a thread of its own while the block runs and the row stays in one of `states`."""
        ended = threading.Event()
        thread = threading.Thread(
            target=self._keep,
            args=(ended, list(states)),
            name=f"lease of {self._model.__name__}",
            daemon=True,
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def renew(self, states: Iterable[str]) -> bool:
        """Move its end on; False when the row was taken over, paused, finished or deleted: it is lost."""
        sent = clock.boot_seconds()
        ours = self._values
        conditions = [self._model.retry_at.in_(ours), self._model.status.in_(list(states))]
        with self._database.heartbeat() as session:
            now = database_now(session, self._model)
            until = lease_until(now, self._lock_seconds)
            # Known before it is sent: when the answer gets lost, the row may have either value.
            self._values = (*ours, until)
            values = {"retry_at": until, "modified_at": now}
            renewed = swap(session, self._model, self._identity, values, conditions)
        if renewed:
            self._values = (until,)
            self._deadline = self._deadline_from(sent)
        else:
            self._values = ours
            self._lost = True
        return renewed

    def _deadline_from(self, sent: float) -> float:
        return sent + self._lock_seconds * (1 - MARGIN)

    def _keep(self, ended: threading.Event, states: list[str]) -> None:
        while not ended.wait(self._lock_seconds / RENEWALS_PER_LEASE):
            try:
                if not self.renew(states):
                    self._log.warning("lease of a queue row lost")
                    return
            except DBAPIError as error:
                # The lease has time left, and there is another try before it ends.
                self._log.warning("lease of a queue row not renewed", error=str(error.orig))
