"""What is still to be delivered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import Delivery, DeliveryStatus
from webqueue.sentences import StoredText

MOST_SHOWN = 50


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery that is not through.

    Attributes:
        target, job: what it is about; "" where it is about none.
        next_try_at: when it is tried again, or until when a try is under way.
    """

    id: int
    target: str
    job: str
    attempts: int
    last_error: str
    created_at: datetime
    next_try_at: datetime | None


def open_deliveries(session: Session, kind: str) -> list[DeliveryRow]:
    """Those of one kind that are not through, the most urgent first, at most `MOST_SHOWN`."""
    query = (
        select(Delivery)
        .where(
            Delivery.kind == kind, Delivery.status == DeliveryStatus.QUEUED, Delivery.retry_at.is_not(None)
        )
        .order_by(Delivery.retry_at, Delivery.id)
        .limit(MOST_SHOWN)
    )
    return [
        DeliveryRow(
            id=row.id,
            target=str(row.payload.get("target", "")),
            job=str(row.payload.get("job", "")),
            attempts=row.attempts,
            last_error=StoredText(row.last_error or ""),
            created_at=row.created_at,
            next_try_at=row.retry_at,
        )
        for row in session.scalars(query)
    ]
