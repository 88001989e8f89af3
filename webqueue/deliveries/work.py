"""What a deliverer is, what it gets, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sqlalchemy import update
from sqlalchemy.orm import Session

from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.leases.lease import Lease
from webqueue.models import Delivery, DeliveryStatus

# A renewal may change the lease's value between our reading it and our statement.
_TRIES = 3


class DeliveryLostError(WebqueueError):
    """Another process has taken the delivery over; nothing more is written here."""

    def __init__(self, delivery_id: int) -> None:
        super().__init__(f"Delivery {delivery_id} was taken over by another process. Nothing was written.")
        self.delivery_id = delivery_id


@dataclass(frozen=True)
class Delivered:
    """It is where it belongs: never delivered again."""


@dataclass(frozen=True)
class Again:
    """It is to be tried again.

    Attributes:
        error: what went wrong; "" when only the process stops, which costs no attempt.
        wait_sec: seconds to wait at least, as the receiver asked for; None: the usual back-off.
    """

    error: str = ""
    wait_sec: float | None = None


Answer = Delivered | Again


@dataclass(frozen=True)
class Work:
    """One delivery that this process holds the lease of.

    Attributes:
        attempts: tries before this one.
        retry_after_sec: seconds that the usual back-off would wait after a failure of this try.
        stopping: whether this process is about to end.
    """

    id: int
    kind: str
    dedupe_key: str
    payload: Mapping[str, Any]
    attempts: int
    retry_after_sec: float
    database: Database
    lease: Lease
    stopping: Callable[[], bool]

    def may_go_on(self) -> bool:
        """Whether the lease is held and the process goes on; asks no database."""
        return self.lease.held and not self.stopping()

    def mark(self, payload: Mapping[str, Any], along: Callable[[Session], None] | None = None) -> None:
        """Commit how far the delivery is, and whatever `along` writes, in one transaction.

        Raises:
            DeliveryLostError: somebody else has it; nothing was written.
        """

        def write(session: Session) -> bool:
            ours = (
                Delivery.id == self.id,
                Delivery.status == DeliveryStatus.QUEUED,
                Delivery.retry_at.in_(self.lease.values),
            )
            statement = update(Delivery).where(*ours).values(payload=dict(payload)).returning(Delivery.id)
            if not session.execute(statement.execution_options(synchronize_session=False)).all():
                session.rollback()
                return False
            if along is not None:
                along(session)
            return True

        if not any(self.lease.held and self.database.run(write) for _ in range(_TRIES)):
            raise DeliveryLostError(self.id)


class Deliverer(Protocol):
    """Delivers one kind of thing."""

    kind: ClassVar[str]

    def deliver(self, work: Work) -> Answer:
        """Deliver it, in no transaction, however often: a repetition must double nothing where it arrives.

        An exception is a surprise; it is logged and counts as `Again`.
        """
