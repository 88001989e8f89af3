"""What a worker writes while it runs a job: every write names the lease's token (P4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import CursorResult, insert, select, update
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql
from webqueue.errors import LeaseLostError
from webqueue.job_verbs.types import LEASE_SECONDS, Lease
from webqueue.jobs_sql.heads import RUNNING
from webqueue.models import Job, JobLog, KeyEvent, RateKey
from webqueue.politeness.interval import CRAWL_DELAY


def fence(session: Session, lease: Lease) -> None:
    """Lock the running job's row before anything else is written for it.

    Raises:
        LeaseLostError: it is no longer this lease's; the handler stops.
    """
    found = session.execute(
        select(Job.seq)
        .where(Job.seq == lease.job_seq, Job.lease_token == lease.token, RUNNING)
        .with_for_update(key_share=True)
    ).first()
    if found is None:
        raise LeaseLostError(lease.job_id)


def renew(
    session: Session, worker_id: str, leases: Iterable[Lease], *, lease_sec: float = LEASE_SECONDS
) -> set[Lease]:
    """Renew the leases of a process for `lease_sec` from now; returns those that are lost.

    All keys first, sorted, then their jobs (DESIGN section 5).
    """
    now = clock.now(session)
    until = now + timedelta(seconds=lease_sec)
    ordered = sorted(leases)
    lost = set()
    for lease in ordered:
        key = session.execute(
            update(RateKey)
            .where(
                RateKey.key == lease.rate_key,
                RateKey.lease_token == lease.token,
                RateKey.leased_by == worker_id,
            )
            .values(retry_at=until, extensions=0, modified_at=now)
            .execution_options(synchronize_session=False)
        )
        if cast("CursorResult[Any]", key).rowcount != 1:
            lost.add(lease)
    for lease in ordered:
        if lease not in lost and not jobs_sql.update_running(
            session, lease.job_seq, lease.token, {"retry_at": until, "modified_at": now}
        ):
            lost.add(lease)
    return lost


def stop_requests(session: Session, worker_id: str) -> set[str]:
    """The ids of this worker's jobs whose stop was requested: one plain indexed read."""
    return set(
        session.scalars(
            select(Job.id).where(RUNNING, Job.leased_by == worker_id, Job.stop_requested.is_(True))
        )
    )


def force_requests(session: Session, worker_id: str) -> set[str]:
    """The ids of this worker's jobs that must not wait for their handlers any longer."""
    return set(
        session.scalars(
            select(Job.id).where(RUNNING, Job.leased_by == worker_id, Job.force_requested_at.is_not(None))
        )
    )


def note_process_group(session: Session, lease: Lease, group: int) -> None:
    """Note that the run has a process group of its own, before anything of the handler runs in it.

    Raises:
        LeaseLostError: the job is no longer this lease's.
    """
    _write(session, lease, {"process_group": group})


def progress(
    session: Session,
    lease: Lease,
    *,
    current_page: int | None = None,
    current: int | None = None,
    total: int | None = None,
    message: str | None = None,
    counters: Mapping[str, Any] | None = None,
) -> None:
    """Show how far the run is; what is None stays as it is.

    Raises:
        LeaseLostError: the job is no longer this lease's.
    """
    given = {
        "current_page": current_page,
        "progress_current": current,
        "progress_total": total,
        "progress_message": message,
        "counters": None if counters is None else dict(counters),
    }
    _write(session, lease, {name: value for name, value in given.items() if value is not None})


def checkpoint(session: Session, lease: Lease, page: int, data: Mapping[str, Any]) -> None:
    """Commit that list page `page` is completed: a retry resumes after it.

    Raises:
        LeaseLostError: the job is no longer this lease's.
    """
    _write(
        session,
        lease,
        {"last_completed_page": page, "checkpoint": dict(data), "checkpoint_at": clock.now(session)},
    )


def add_log_lines(session: Session, lease: Lease, lines: Sequence[tuple[datetime, str, str]]) -> None:
    """Add lines (time, level, message) to the job's log.

    Raises:
        LeaseLostError: the job is no longer this lease's.
    """
    fence(session, lease)
    if lines:
        rows = [
            {"job_seq": lease.job_seq, "at": at, "level": level, "message": text} for at, level, text in lines
        ]
        session.execute(insert(JobLog), rows)


def record_interval(session: Session, lease: Lease, interval_sec: float) -> None:
    """Note a Crawl-delay in force, in seconds: what a recovery waits should this worker be lost (P11).

    A lease that is lost changes nothing: the token stays after a hand-back, so its owner is looked at too (P4).
    """
    session.execute(
        update(RateKey)
        .where(
            RateKey.key == lease.rate_key,
            RateKey.lease_token == lease.token,
            RateKey.leased_by == lease.worker_id,
        )
        .values(interval_sec=interval_sec, interval_cause=CRAWL_DELAY)
        .execution_options(synchronize_session=False)
    )


def note_stuck(session: Session, lease: Lease, message: str) -> None:
    """Write into the key's history that the handler does not stop; the key is shown as stuck while it runs (P9).

    Raises:
        LeaseLostError: the job is no longer this lease's; its key is not stuck by it.
    """
    _write(session, lease, {})  # pages look whether the job has changed
    session.add(
        KeyEvent(
            rate_key=lease.rate_key,
            at=clock.now(session),
            kind="stuck",
            message=message,
            job_id=lease.job_id,
        )
    )


def _write(session: Session, lease: Lease, values: dict[str, Any]) -> None:
    values["modified_at"] = clock.now(session)
    if not jobs_sql.update_running(session, lease.job_seq, lease.token, values):
        raise LeaseLostError(lease.job_id)
