"""Which jobs and targets a bulk action is about: some that were ticked, or all that match a filter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from webqueue.models import Job, JobStatus, Target
from webqueue.queries.jobs import JobFilter, filtered_jobs
from webqueue.queries.numbers import bounded
from webqueue.queries.targets import TargetFilter, filtered_targets

# Of one action, and what is changed as a whole or not at all is one transaction.
MAX_TARGETS: Final = 2_500
# Of one action. Each job is a short transaction of its own; a browser does not wait for minutes.
MAX_CHOSEN: Final = 1000
CANCELLABLE: Final = (JobStatus.QUEUED, JobStatus.RUNNING)
REPEATABLE: Final = (JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True)
class ChosenJob:
    """A job that an action is about."""

    id: str
    seq: int
    target: str


def chosen_jobs(
    session: Session, ids: Collection[str], statuses: Sequence[str], *, limit: int = MAX_CHOSEN
) -> tuple[ChosenJob, ...]:
    """Of the jobs with these ids those in one of the statuses, oldest first."""
    wanted = [name for name in ids if name.isascii() and name.isalnum() and len(name) <= 12]
    statement = select(Job.id, Job.seq, Job.target_code).where(Job.id.in_(wanted), Job.status.in_(statuses))
    return _rows(session, statement.order_by(Job.seq).limit(limit))


def matching_jobs(
    session: Session,
    filters: JobFilter,
    statuses: Sequence[str],
    *,
    up_to: int | None = None,
    limit: int = MAX_CHOSEN,
) -> tuple[ChosenJob, ...]:
    """Of the jobs that match a filter those in one of the statuses, oldest first.

    Args:
        up_to: no job with a higher number: what came after the question was asked is not meant.
    """
    statement = filtered_jobs(session, select(Job.id, Job.seq, Job.target_code), filters)
    statement = statement.where(Job.status.in_(statuses))
    if up_to is not None:
        statement = statement.where(Job.seq <= bounded(up_to))
    return _rows(session, statement.order_by(Job.seq).limit(limit))


def count_jobs(session: Session, filters: JobFilter, *, most: int = MAX_CHOSEN) -> int:
    """How many jobs match, counted up to `most` + 1: nobody waits for a count of everything."""
    matching = filtered_jobs(session, select(Job.seq), filters).limit(most + 1).subquery()
    return session.scalar(select(func.count()).select_from(matching)) or 0


def newest_number(session: Session) -> int:
    """The number of the newest job, 0 without one."""
    return session.scalar(select(func.max(Job.seq))) or 0


def matching_targets(session: Session, filters: TargetFilter, *, limit: int) -> tuple[str, ...]:
    """The codes of the targets that match a filter, sorted."""
    statement = filtered_targets(session, select(Target.code), filters).order_by(Target.code).limit(limit)
    return tuple(session.scalars(statement))


def known_targets(session: Session, codes: Collection[str], *, limit: int) -> tuple[str, ...]:
    """Those of the codes that are targets, sorted."""
    wanted = [code for code in codes if code.isascii() and code.isprintable()]
    return tuple(
        session.scalars(select(Target.code).where(Target.code.in_(wanted)).order_by(Target.code).limit(limit))
    )


def count_targets(session: Session, filters: TargetFilter) -> int:
    """How many targets match."""
    return session.scalar(filtered_targets(session, select(func.count()).select_from(Target), filters)) or 0


def _rows(session: Session, statement: Select[str, int, str]) -> tuple[ChosenJob, ...]:
    return tuple(ChosenJob(job_id, seq, target) for job_id, seq, target in session.execute(statement))
