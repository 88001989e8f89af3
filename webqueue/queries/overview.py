"""What the overview tells: counts, failures of a day grouped, what a person should look at, and the next runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import Job, JobStatus, RateKey, Target
from webqueue.queries.jobs import JobRow, chain_ends, job_rows
from webqueue.queries.rate_keys import cooling_down
from webqueue.queries.runs import QUEUED, RUNNING
from webqueue.queries.site_keys import keys_of_sites

DAY = timedelta(hours=24)
# Groups are made of the newest failures only, so that a bad day does not make the overview slow.
MAX_FAILURES = 500
# In a form that no index serves: SQLite would go through every job of a status that there ever was, rather than through
# the jobs of a day.
_STATUS = func.coalesce(Job.status, "").label("status")
_ID = re.compile(r"\b[0-9a-f]{12}\b")


@dataclass(frozen=True)
class Counts:
    """The five counts of the overview, and two for its banner."""

    running: int
    queued: int
    cooling_down: int
    failed_24h: int
    done_24h: int
    attention_24h: int
    targets: int


@dataclass(frozen=True)
class FailureGroup:
    """Failures of one target with one error.

    What has recovered by itself (the last job of its chain is done) is not among them: nobody need look at it.
    The last one's `chain_end` is the job that repeats it after a block.
    """

    target: str
    error: str
    count: int
    last: JobRow


@dataclass(frozen=True)
class NextRun:
    """A scheduled run to come."""

    target: str
    site: str
    rate_key: str
    at: datetime
    schedule: str


def counts(session: Session) -> Counts:
    """The numbers of the overview."""
    now = clock.now(session)
    day = {
        row.status: row
        for row in session.execute(
            select(_STATUS, func.count().label("jobs"), func.count(Job.attention).label("attention"))
            .where(Job.finished_at >= now - DAY)
            .group_by(_STATUS)
        )
    }
    done, failed = day.get(JobStatus.DONE), day.get(JobStatus.FAILED)
    return Counts(
        running=_count(session, Job.status == RUNNING),
        queued=_count(session, Job.status == QUEUED),
        cooling_down=_count_keys(session, now),
        failed_24h=failed.jobs if failed else 0,
        done_24h=done.jobs if done else 0,
        attention_24h=done.attention if done else 0,
        targets=session.scalar(select(func.count()).select_from(Target)) or 0,
    )


def failures(session: Session, *, limit: int = 12) -> tuple[FailureGroup, ...]:
    """The failures of the last 24 hours, grouped by target and error, the newest first."""
    now = clock.now(session)
    failed = session.execute(
        select(Job.seq, Job.target_code, Job.error_msg, Job.root_id)
        .where(*_of_the_day(now, JobStatus.FAILED))
        .order_by(Job.finished_at.desc())
        .limit(MAX_FAILURES)
    ).all()
    ends = chain_ends(session, {row.root_id for row in failed})
    groups: dict[tuple[str, str], list[int]] = {}
    for row in failed:
        if ends[row.root_id].status != JobStatus.DONE:
            groups.setdefault((row.target_code, _without_ids(row.error_msg or "")), []).append(row.seq)
    shown = list(groups.values())[:limit]
    last_ones = session.scalars(select(Job).where(Job.seq.in_([same[0] for same in shown]))).all()
    rows = {row.seq: row for row in job_rows(session, last_ones, now)}
    return tuple(
        FailureGroup(
            target=last.target,
            error=last.error_msg or "",
            count=len(same),
            last=last,
        )
        for same in shown
        for last in (rows[same[0]],)
    )


def attention_jobs(session: Session, *, limit: int = 5) -> tuple[JobRow, ...]:
    """Done jobs of the last 24 hours that a person should look at (P12), newest first."""
    now = clock.now(session)
    jobs = session.scalars(
        select(Job)
        .where(*_of_the_day(now, JobStatus.DONE), Job.attention.is_not(None))
        .order_by(Job.finished_at.desc())
        .limit(limit)
    ).all()
    return job_rows(session, jobs, now)


def next_runs(session: Session, *, limit: int = 8) -> tuple[NextRun, ...]:
    """The next scheduled run of each target, soonest first."""
    rows = session.scalars(
        select(Target)
        .where(Target.next_tick_at.is_not(None), Target.enabled.is_(True), Target.paused_at.is_(None))
        .order_by(Target.next_tick_at, Target.code)
        .limit(limit)
    ).all()
    keys = keys_of_sites(session, {row.site_code for row in rows})
    return tuple(
        NextRun(
            target=row.code,
            site=row.site_code,
            rate_key=keys.get(row.site_code, row.site_code),
            at=row.next_tick_at,
            schedule=row.schedule or "",
        )
        for row in rows
        if row.next_tick_at is not None
    )


def _of_the_day(now: datetime, status: JobStatus) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Jobs that came to this end within 24 hours."""
    return Job.finished_at >= now - DAY, _STATUS.in_([status])


def _count(session: Session, condition: object) -> int:
    return session.scalar(select(func.count()).select_from(Job).where(condition)) or 0  # type: ignore[arg-type]


def _count_keys(session: Session, now: datetime) -> int:
    return session.scalar(select(func.count()).select_from(RateKey).where(cooling_down(now))) or 0


def _without_ids(error: str) -> str:
    return _ID.sub("", error)[:300]
