"""Putting something into the queue of deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from webqueue.models import Delivery, DeliveryStatus


def enqueue(
    session: Session, kind: str, dedupe_key: str, payload: Mapping[str, Any], *, now: datetime
) -> bool:
    """Queue one thing to deliver, due now; accepted when the caller's transaction commits.

    Args:
        kind: which deliverer does it.
        dedupe_key: names the thing (at most 128 characters); the same one is never queued twice.
        payload: what the deliverer needs, as JSON.
        now: the database's time.

    Returns:
        False when it was queued before.
    """
    dialect = session.get_bind().dialect.name
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(Delivery)
    values = {
        "status": DeliveryStatus.QUEUED,
        "retry_at": now,
        "modified_at": now,
        "created_at": now,
        "kind": kind,
        "dedupe_key": dedupe_key,
        "payload": dict(payload),
        "attempts": 0,
    }
    statement = insert.values(values).on_conflict_do_nothing(index_elements=["dedupe_key"])
    return bool(session.execute(statement.returning(Delivery.id)).all())


def forget_delivered(session: Session, *, before: datetime, limit: int) -> int:
    """Delete deliveries that were through before a time; how many.

    They are in nobody's way but the runner's, which looks for rows without a due time at each round.
    """
    old = (
        select(Delivery.id)
        .where(
            Delivery.retry_at.is_(None),
            Delivery.status == DeliveryStatus.DELIVERED,
            Delivery.delivered_at < before,
        )
        .limit(limit)
    )
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())
