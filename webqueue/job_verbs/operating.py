"""What an operator does to a job: cancel it, force it to stop, or move it to the front."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql
from webqueue.errors import ConflictError
from webqueue.job_verbs.claiming import recover
from webqueue.job_verbs.settling import lock_key, release, settle
from webqueue.job_verbs.submitting import find_job
from webqueue.job_verbs.types import Life
from webqueue.jobs_sql.heads import QUEUED
from webqueue.models import AuditEntry, Job, JobLog, JobStatus, RateKey
from webqueue.sentences import Sentence, say, stored

_JUST_BEFORE: Final = timedelta(microseconds=1)


def _nothing_known(_worker_id: str) -> Life:
    return Life.UNKNOWN


def cancel(session: Session, job_id: str, *, by: str, life: Callable[[str], Life] = _nothing_known) -> str:
    """Cancel a job, and tell the truth about it: `cancelled`, or `cancelling` while its handler still runs (P8).

    Args:
        by: who asked; it is shown with the job.
        life: what is known of a worker's process; a job of a dead one is cancelled at once.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it is done, failed or skipped already.
    """
    job, key = _lock_job(session, job_id)
    if job.status == JobStatus.CANCELLED:
        return "cancelled"
    if job.status not in {JobStatus.QUEUED, JobStatus.RUNNING}:
        raise ConflictError(
            say(
                "Job #%(seq)s is %(status)s already; it cannot be cancelled.",
                seq=job.seq,
                status=Sentence(job.status),
            )
        )
    now = clock.now(session)
    asked = {"stop_requested": True, "stop_requested_at": now, "stop_requested_by": by, "modified_at": now}
    if job.status == JobStatus.QUEUED:
        _update_queued(
            session, job, {**asked, "status": JobStatus.CANCELLED, "retry_at": None, "finished_at": now}
        )
        session.add(
            JobLog(
                job_seq=job.seq,
                at=now,
                level="info",
                message=stored("cancelled while queued by %(name)s", name=by),
            )
        )
        settle(session, key, now)
        return "cancelled"
    if not job.stop_requested:
        if not jobs_sql.update_running(session, job.seq, job.lease_token, asked):
            raise AssertionError(f"job {job.id} changed although its key {key.key} is locked")
        session.add(
            JobLog(
                job_seq=job.seq, at=now, level="info", message=stored("stop requested by %(name)s", name=by)
            )
        )
    if not _is_lost(job, key, now, life):
        return "cancelling"
    session.flush()
    session.refresh(job)
    recover(session, key, job, now)
    release(key)
    settle(session, key, now)
    return "cancelled"


def force_stop(
    session: Session, job_id: str, *, by: str, life: Callable[[str], Life] = _nothing_known
) -> str:
    """Stop a job whose handler does not listen to its cancel; `cancelled`, or `cancelling` until it has ended.

    A handler in a process of its own is killed with its group by the next look of its worker. A thread cannot be ended:
    its worker hands its other jobs back and ends as a process (P9). So this is no first step, and asks for a cancel.

    Args:
        by: who asked; it is shown with the job.
        life: what is known of a worker's process, as for `cancel`.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it is not being cancelled.
    """
    job, key = _lock_job(session, job_id)
    if job.status == JobStatus.CANCELLED:
        return "cancelled"
    if job.status != JobStatus.RUNNING:
        raise ConflictError(
            say(
                "Job #%(seq)s is %(status)s: only one that is being cancelled can be forced.",
                seq=job.seq,
                status=Sentence(job.status),
            )
        )
    if not job.stop_requested:
        raise ConflictError(
            say(
                "Job #%(seq)s is running: cancel it first; a Force stop is for a handler that does not stop.",
                seq=job.seq,
            )
        )
    if job.force_requested_at is None:
        now = clock.now(session)
        forced = {"force_requested_at": now, "force_requested_by": by, "modified_at": now}
        if not jobs_sql.update_running(session, job.seq, job.lease_token, forced):
            raise AssertionError(f"job {job.id} changed although its key {key.key} is locked")
        session.add(
            JobLog(
                job_seq=job.seq,
                at=now,
                level="warning",
                message=stored("force stop requested by %(name)s", name=by),
            )
        )
        # It may end a process with other people's jobs in it: that is written down, unlike a cancel.
        AuditEntry.record(session, at=now, by=by, action="forced to stop", kind="job", name=job.id)
    return cancel(session, job_id, by=by, life=life)


def move_to_front(session: Session, job_id: str, *, by: str) -> None:
    """Let a queued job be the next of its key; the only way to change a due time (P3).

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it is not queued.
    """
    job, key = _lock_job(session, job_id)
    if job.status != JobStatus.QUEUED:
        raise ConflictError(
            say(
                "Job #%(seq)s is %(status)s: only a queued job can be moved to the front.",
                seq=job.seq,
                status=Sentence(job.status),
            )
        )
    now = clock.now(session)
    head = jobs_sql.head(session, key.key)
    due = min(now, job.due_at if head is None or head.seq == job.seq else head.due_at - _JUST_BEFORE)
    put_off = _first_put_off(session, job)
    if put_off is not None:
        due = min(due, put_off - _JUST_BEFORE)
    moved = {"due_at": due, "retry_at": due, "due_before_hours": None}
    _update_queued(session, job, {**moved, "moved_to_front_at": now, "modified_at": now})
    session.add(
        JobLog(
            job_seq=job.seq, at=now, level="info", message=stored("moved to the front by %(name)s", name=by)
        )
    )
    key.modified_at = now  # pages look whether a key has changed, and a leased one would not show it
    settle(session, key, now)


def _first_put_off(session: Session, job: Job) -> datetime | None:
    """When the first of the other jobs that opening hours have put off is due, should the hours be lifted."""
    return session.scalar(
        select(Job.due_before_hours)
        .where(Job.rate_key == job.rate_key, QUEUED, Job.due_before_hours.is_not(None), Job.seq != job.seq)
        .order_by(Job.due_before_hours)
        .limit(1)
    )


def _lock_job(session: Session, job_id: str) -> tuple[Job, RateKey]:
    """The job, and its key, locked; a queued job may have moved to another key while this waited."""
    while True:
        name = find_job(session, job_id).rate_key
        key = lock_key(session, name)
        job = find_job(session, job_id)
        if job.rate_key == name:
            return job, key


def _is_lost(job: Job, key: RateKey, now: datetime, life: Callable[[str], Life]) -> bool:
    """Whether nobody runs the job any more: its worker is known dead, or its lease has ended."""
    if key.retry_at is not None and key.retry_at <= now:
        return True
    return job.leased_by is not None and life(job.leased_by) is Life.DEAD


def _update_queued(session: Session, job: Job, values: dict[str, object]) -> None:
    session.execute(
        update(Job)
        .where(Job.seq == job.seq, QUEUED)
        .values(values)
        .execution_options(synchronize_session=False)
    )
