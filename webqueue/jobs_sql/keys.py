"""Locking rate keys, always sorted by name, in a statement of its own (DESIGN section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from webqueue.models import RateKey, RateKeyStatus


def lock_keys(session: Session, names: Iterable[str], now: datetime | None = None) -> dict[str, RateKey]:
    """Lock the rows of `names`; with `now`, those that do not exist are made first.

    Later statements of the transaction see everything that was committed before the lock was got; a sub-select of the
    locking statement itself would not.
    """
    ordered = sorted(set(names))
    while True:
        if now is not None:
            for name in ordered:
                _ensure(session, name, now)
        rows = session.scalars(
            select(RateKey)
            .where(RateKey.key.in_(ordered))
            .order_by(RateKey.key)
            .with_for_update(key_share=True)
            .execution_options(populate_existing=True)
        )
        found = {row.key: row for row in rows}
        # One that was there when it should be made may be deleted by the time that its lock is got.
        if now is None or len(found) == len(ordered):
            return found


def try_lock_key(session: Session, name: str, now: datetime) -> RateKey | None:
    """Lock one key, which is made if it does not exist, without waiting; None while somebody else holds it.

    For a transaction that has locked keys already: waiting for one out of their order may deadlock.
    """
    _ensure(session, name, now)
    return session.scalars(
        select(RateKey)
        .where(RateKey.key == name)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    ).first()


def lock_due_keys(
    session: Session, now: datetime, limit: int, *, leased_only: bool = False
) -> Sequence[RateKey]:
    """Lock up to `limit` keys that may be claimed, the one due longest first; keys that others hold are skipped."""
    statement = select(RateKey).where(RateKey.retry_at <= now)
    if leased_only:
        statement = statement.where(RateKey.status == RateKeyStatus.LEASED)
    return session.scalars(
        statement.order_by(RateKey.retry_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()


def lock_leased_keys(session: Session, worker_ids: Iterable[str]) -> Sequence[RateKey]:
    """Lock the keys that these workers hold, sorted by name."""
    return session.scalars(
        select(RateKey)
        .where(RateKey.leased_by.in_(sorted(worker_ids)))
        .order_by(RateKey.key)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).all()


def _ensure(session: Session, name: str, now: datetime) -> None:
    values = {
        "key": name,
        "status": RateKeyStatus.IDLE,
        "created_at": now,
        "modified_at": now,
        "lease_token": 0,
        "extensions": 0,
        "paused_note": "",
        "consecutive_blocks": 0,
        "interval_sec": 0.0,
    }
    dialect = session.get_bind().dialect.name
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(RateKey)
    session.execute(insert.values(values).on_conflict_do_nothing(index_elements=["key"]))
