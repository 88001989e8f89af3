"""The lines that a job logged, and how to follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import JobLog

MAX_LINES = 2000


@dataclass(frozen=True)
class LogLine:
    """One line; `id` grows."""

    id: int
    at: datetime
    level: str
    message: str


@dataclass(frozen=True)
class LogPage:
    """Some lines, oldest first.

    Attributes:
        next_offset: ask again with it to get what came later.
        more: whether there were more lines than asked for (after these, or, for a tail, before them).
    """

    lines: tuple[LogLine, ...]
    next_offset: int
    more: bool = False


def job_log(session: Session, job_seq: int, *, after: int = 0, limit: int = 500) -> LogPage:
    """The lines of a job (by its number) after an offset, oldest first."""
    limit = max(1, min(limit, MAX_LINES))
    found = session.scalars(
        select(JobLog)
        .where(JobLog.job_seq == job_seq, JobLog.id > after)
        .order_by(JobLog.id)
        .limit(limit + 1)
    ).all()
    lines = _lines(found[:limit])
    return LogPage(lines, lines[-1].id if lines else after, len(found) > limit)


def job_log_tail(session: Session, job_seq: int, *, limit: int = 200) -> LogPage:
    """The last lines of a job, oldest first."""
    limit = max(1, min(limit, MAX_LINES))
    found = session.scalars(
        select(JobLog).where(JobLog.job_seq == job_seq).order_by(JobLog.id.desc()).limit(limit + 1)
    ).all()
    lines = _lines(found[:limit])[::-1]
    return LogPage(lines, lines[-1].id if lines else 0, len(found) > limit)


def _lines(rows: Sequence[JobLog]) -> tuple[LogLine, ...]:
    return tuple(LogLine(row.id, row.at, row.level, row.message) for row in rows)
