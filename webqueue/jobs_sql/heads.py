"""Reading the queue of a key: its head, when it is next due, and what runs in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, literal_column, select, text
from sqlalchemy.orm import Session

from webqueue.models import Job

# Written as literals, because a bound parameter never matches the condition of a partial index on SQLite.
QUEUED_STATUS: Any = literal_column("'queued'")
RUNNING_STATUS: Any = literal_column("'running'")
QUEUED = Job.status == QUEUED_STATUS
RUNNING = Job.status == RUNNING_STATUS


_HEAD = (
    select(Job.seq, Job.retry_at, Job.lease_token)
    .where(Job.rate_key == bindparam("key"), QUEUED)
    .order_by(Job.retry_at, Job.seq)
    .limit(1)
)
# The same, with its index named: after an ANALYZE, SQLite would read all jobs of a deep key by another one, and sort.
_HEAD_ON_SQLITE = text(
    "SELECT seq, retry_at, lease_token FROM jobs INDEXED BY ix_jobs_queue"
    " WHERE rate_key = :key AND status = 'queued' ORDER BY retry_at, seq LIMIT 1"
).columns(Job.seq, Job.retry_at, Job.lease_token)


class Head(NamedTuple):
    """The first queued job of a key: its number, when it is due, and the token of its last lease."""

    seq: int
    due_at: datetime
    token: int


def head(session: Session, key: str) -> Head | None:
    """The key's first queued job, due or not.

    Ordered by due time, then number (P3): a job due later never holds up one that is due.
    """
    statement = _HEAD_ON_SQLITE if session.get_bind().dialect.name == "sqlite" else _HEAD
    row = session.execute(statement, {"key": key}).first()
    return None if row is None or row.retry_at is None else Head(row.seq, row.retry_at, row.lease_token)


def next_due(session: Session, key: str) -> datetime | None:
    """When the key's first queued job is due; None without one."""
    first = head(session, key)
    return None if first is None else first.due_at


def due_head(session: Session, key: str, now: datetime) -> Head | None:
    """The first queued job of the key, if it is due at `now`."""
    first = head(session, key)
    return first if first is not None and first.due_at <= now else None


def running_job(session: Session, key: str) -> Job | None:
    """The key's running job, locked, whatever the key's row says."""
    return session.scalars(
        select(Job)
        .where(Job.rate_key == key, RUNNING)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).first()
