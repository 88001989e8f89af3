"""Whether the machinery is alive: workers, scheduler, overdue work (`GET status`, `/readyz`, the banner)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import Job, Process, RateKey, RateKeyStatus
from webqueue.queries import document_search
from webqueue.queries.runs import QUEUED
from webqueue.queries.waiting import alive_after, pool

# A key that may be claimed and is not, for this long, although a thread is free.
OVERDUE_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class ProcessRow:
    """One process in one role."""

    id: str
    role: str
    hostname: str
    pid: int
    threads: int
    started_at: datetime
    heartbeat_at: datetime
    alive: bool


@dataclass(frozen=True)
class Status:
    """The state of the installation.

    Attributes:
        overdue_keys: keys that were due more than a minute ago and wait for a worker.
        low_disks: disks of workers that take nothing because of it, in words.
        search: `ok`, or why documents are searched slowly and what to do.
    """

    now: datetime
    paused_all: bool
    paused_all_by: str | None
    workers: int
    threads: int
    schedulers: int
    running: int
    queued: int
    overdue_keys: int
    low_disks: tuple[str, ...]
    search: str
    processes: tuple[ProcessRow, ...]


def get_status(session: Session) -> Status:
    """Workers, schedulers, queue, and overdue work; processes that were alive within a day."""
    now = clock.now(session)
    state = pool(session, now)
    rows = session.scalars(
        select(Process)
        .where(Process.heartbeat_at > now - timedelta(days=1))
        .order_by(Process.role, Process.heartbeat_at.desc())
        .limit(200)
    )
    processes = tuple(
        ProcessRow(
            id=row.id,
            role=row.role,
            hostname=row.hostname,
            pid=row.pid,
            threads=row.threads,
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
            alive=row.heartbeat_at > alive_after(now),
        )
        for row in rows
    )
    return Status(
        now=now,
        paused_all=state.paused_all,
        paused_all_by=state.paused_all_by,
        workers=sum(1 for process in processes if process.alive and process.role == "worker"),
        threads=state.threads,
        schedulers=sum(1 for process in processes if process.alive and process.role == "scheduler"),
        running=state.running,
        queued=session.scalar(select(func.count()).select_from(Job).where(Job.status == QUEUED)) or 0,
        overdue_keys=_overdue_keys(session, now),
        low_disks=state.low_disks,
        search=document_search.state(session).message or "ok",
        processes=processes,
    )


def _overdue_keys(session: Session, now: datetime) -> int:
    return session.scalar(select(func.count()).select_from(RateKey).where(is_overdue(now))) or 0


def is_overdue(now: datetime) -> ColumnElement[bool]:
    """Of keys: due for more than a minute, and no worker thread was free for it."""
    return and_(RateKey.retry_at < now - OVERDUE_AFTER, RateKey.status == RateKeyStatus.IDLE)
