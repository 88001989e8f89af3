"""The loops of a process that deliver what is due."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from webqueue import clock, logs
from webqueue.database import Database
from webqueue.deliveries.messages import MessageSender
from webqueue.deliveries.queue import forget_delivered
from webqueue.deliveries.rag_export import RagExporter
from webqueue.deliveries.work import Again, Answer, Deliverer, DeliveryLostError, Work
from webqueue.leases import run_due
from webqueue.leases.lease import Lease
from webqueue.leases.states import ACTIVE_STATE_LEASE_SECONDS
from webqueue.loops import Loop
from webqueue.models import Delivery, DeliveryStatus
from webqueue.sentences import stored
from webqueue.settings import Settings

log = logs.get(__name__)

POLL_SEC: Final = 2.0
_FIRST_WAIT_SEC: Final = 10.0
_LONGEST_WAIT_SEC: Final = 3600.0
_UNKNOWN_KIND_WAIT_SEC: Final = 600.0
_LONGEST_ERROR: Final = 2_000
# What a delivery came to is told by its job; the row itself is of use for a day.
_KEPT: Final = timedelta(days=1)
_BETWEEN_FORGETTING_SEC: Final = 3600.0
_FORGOTTEN_AT_ONCE: Final = 500


class DeliveryLoop:
    """Delivers what is due, one after the other; any number of them may run, in any number of processes.

    Several in one process, so that a receiver that hangs does not keep everything else waiting.

    Args:
        database: with the queue.
        by_kind: who delivers which kind.
        lease_sec: how long a delivery stays with a process that died in the middle of it.
        poll_sec: seconds between two looks.
        first_wait_sec: the wait after a first failure; it doubles, up to an hour.
        name: of the loop's thread.
        leave_others: take only what `by_kind` delivers; another process knows the rest.
    """

    def __init__(
        self,
        database: Database,
        by_kind: Mapping[str, Deliverer],
        *,
        lease_sec: float = ACTIVE_STATE_LEASE_SECONDS,
        poll_sec: float = POLL_SEC,
        first_wait_sec: float = _FIRST_WAIT_SEC,
        name: str = "deliveries",
        leave_others: bool = False,
    ) -> None:
        self._database = database
        self._by_kind = by_kind
        self._lease_sec = lease_sec
        self._poll_sec = poll_sec
        self._first_wait_sec = first_wait_sec
        self._forgot_at = float("-inf")
        self._only = Delivery.kind.in_(list(by_kind)) if leave_others else None
        self.loop = Loop(name, self.deliver_due)

    def deliver_due(self) -> float:
        """Deliver what is due now; seconds until the next look."""
        counts = run_due(
            Delivery,
            self._handle,
            database=self._database,
            lock_seconds=self._lease_sec,
            failure_delay_seconds=self._lease_sec,
            # Few, so that the list is not old when its end is reached.
            limit=10,
            only=self._only,
        )
        if counts.handled:
            return 0.0
        self._forget()
        return self._poll_sec

    def _forget(self) -> None:
        now = time.monotonic()
        if now - self._forgot_at < _BETWEEN_FORGETTING_SEC:
            return
        forgotten = self._database.run(
            lambda session: forget_delivered(
                session, before=clock.now(session) - _KEPT, limit=_FORGOTTEN_AT_ONCE
            )
        )
        if forgotten < _FORGOTTEN_AT_ONCE:
            self._forgot_at = now

    def _handle(self, row: Delivery, lease: Lease) -> Mapping[str, Any]:
        if self.loop.stopping:
            return {"retry_at": self._in(0.0)}
        work = Work(
            id=row.id,
            kind=row.kind,
            dedupe_key=row.dedupe_key,
            payload=dict(row.payload),
            attempts=row.attempts,
            retry_after_sec=self._wait_after(row.attempts),
            database=self._database,
            lease=lease,
            stopping=lambda: self.loop.stopping,
        )
        answer = self._answer(work)
        if not isinstance(answer, Again):
            log.info("delivered", delivery=work.id, kind=work.kind, attempts=work.attempts + 1)
            return {
                "status": DeliveryStatus.DELIVERED,
                "attempts": work.attempts + 1,
                "delivered_at": self._in(0.0),
                "last_error": None,
            }
        if not answer.error:
            return {"retry_at": self._in(0.0)}
        wait = max(work.retry_after_sec, answer.wait_sec or 0.0)
        log.warning(
            "not delivered", delivery=work.id, kind=work.kind, attempts=work.attempts + 1, error=answer.error, again_in_sec=round(wait)
        )  # fmt: skip
        return {
            "attempts": work.attempts + 1,
            "last_error": answer.error[:_LONGEST_ERROR],
            # Spread, so that what failed together does not come back together.
            "retry_at": self._in(wait * random.uniform(1.0, 1.2)),  # noqa: S311 - no secret
        }

    def _answer(self, work: Work) -> Answer:
        deliverer = self._by_kind.get(work.kind)
        if deliverer is None:
            # Of another version, or its package is missing here: another process may know it.
            return Again(
                stored("nobody here delivers the kind %(kind)s", kind=repr(work.kind)), _UNKNOWN_KIND_WAIT_SEC
            )
        try:
            return deliverer.deliver(work)
        except DeliveryLostError as error:
            log.warning("delivery lost", delivery=work.id, kind=work.kind)
            return Again(str(error))  # not written: the runner's guard misses as well
        except Exception as error:
            log.exception("delivery failed", delivery=work.id, kind=work.kind)
            return Again(f"{type(error).__name__}: {error}")

    def _wait_after(self, attempts: int) -> float:
        return min(_LONGEST_WAIT_SEC, self._first_wait_sec * 2.0 ** min(attempts, 20))

    def _in(self, seconds: float) -> Any:
        with self._database.reading() as session:
            return clock.now(session) + timedelta(seconds=seconds)


def deliverers(settings: Settings) -> Mapping[str, Deliverer]:
    """Everything that this version delivers, by kind."""
    found: list[Deliverer] = [RagExporter(settings), MessageSender()]
    return {deliverer.kind: deliverer for deliverer in found}
