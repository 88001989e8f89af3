"""The lines that a job logged, and how to follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from webqueue.errors import InvalidInputError
from webqueue.models import JobLog
from webqueue.queries.numbers import bounded
from webqueue.sentences import StoredText, say

MAX_LINES = 2000
LINES_AROUND = 100
LEVELS = ("debug", "info", "warning", "error", "critical")


@dataclass(frozen=True)
class LogLine:
    """One line; `id` grows."""

    id: int
    at: datetime
    level: str
    message: str


@dataclass(frozen=True)
class LogFilter:
    """Which lines are shown.

    Attributes:
        level: the lowest, one of LEVELS; None shows all.
        text: what a line has in it, whatever its case.
    """

    level: str | None = None
    text: str = ""

    def __post_init__(self) -> None:
        if self.level is not None and self.level not in LEVELS:
            raise InvalidInputError.of(
                "level",
                say("%(value)s is none of %(known)s.", value=repr(self.level), known=", ".join(LEVELS)),
            )

    def apply(self, statement: Select[JobLog]) -> Select[JobLog]:
        """The statement with these conditions."""
        if self.level is not None:
            levels = LEVELS[LEVELS.index(self.level) :]
            statement = statement.where(func.lower(JobLog.level).in_(levels))
        if self.text:
            statement = statement.where(JobLog.message.icontains(self.text, autoescape=True))
        return statement


ALL_LINES = LogFilter()


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


def job_log(
    session: Session, job_seq: int, *, after: int = 0, limit: int = 500, only: LogFilter = ALL_LINES
) -> LogPage:
    """The lines of a job (by its number) after an offset, oldest first."""
    limit = max(1, min(limit, MAX_LINES))
    of_job = select(JobLog).where(JobLog.job_seq == job_seq, JobLog.id > bounded(after))
    found = session.scalars(only.apply(of_job).order_by(JobLog.id).limit(limit + 1)).all()
    lines = _lines(found[:limit])
    return LogPage(lines, lines[-1].id if lines else after, len(found) > limit)


def job_log_tail(
    session: Session,
    job_seq: int,
    *,
    limit: int = 200,
    only: LogFilter = ALL_LINES,
    before: int | None = None,
) -> LogPage:
    """The last lines of a job, or the last ones before an offset, oldest first."""
    limit = max(1, min(limit, MAX_LINES))
    of_job = select(JobLog).where(JobLog.job_seq == job_seq)
    if before is not None:
        of_job = of_job.where(JobLog.id < bounded(before))
    found = session.scalars(only.apply(of_job).order_by(JobLog.id.desc()).limit(limit + 1)).all()
    lines = _lines(found[:limit])[::-1]
    return LogPage(lines, lines[-1].id if lines else 0, len(found) > limit)


def job_log_around(session: Session, job_seq: int, line: int, *, only: LogFilter = ALL_LINES) -> LogPage:
    """The line with this id between those before and after it, oldest first."""
    earlier = job_log_tail(session, job_seq, before=line, limit=LINES_AROUND, only=only)
    later = job_log(session, job_seq, after=line - 1, limit=LINES_AROUND, only=only)
    return LogPage(earlier.lines + later.lines, later.next_offset, earlier.more)


def _lines(rows: Sequence[JobLog]) -> tuple[LogLine, ...]:
    return tuple(LogLine(row.id, row.at, row.level, StoredText(row.message)) for row in rows)
