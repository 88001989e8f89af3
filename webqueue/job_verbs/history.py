"""The end of a job's history: rows are kept by count and age per target, however they ended (SEEDS C 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, CursorResult, Select, and_, delete, exists, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from webqueue.models import Job, JobLog, Target


@dataclass(frozen=True)
class Cut:
    """Where the history of a target ends.

    Attributes:
        keep: how many of its finished jobs stay, the newest; None: any number.
        before: what ended earlier goes in any case; None: however old.
    """

    keep: int | None
    before: datetime | None


@dataclass(frozen=True)
class Old:
    """A finished job whose time is over."""

    seq: int
    target: str


@dataclass(frozen=True)
class Forgotten:
    """What a batch deleted.

    Attributes:
        jobs, lines: finished jobs, and lines of their logs.
        is_all: whether nothing was left for the next batch.
    """

    jobs: int
    lines: int
    is_all: bool


# Lines of logs in a batch: rows of jobs may have any number of them, and SQLite's other writers wait meanwhile.
LINES_AT_ONCE: Final = 20_000

_NONE: Final[Mapping[str, Cut]] = MappingProxyType({})


def forget_finished(
    session: Session,
    *,
    keep: int,
    before: datetime,
    limit: int,
    lines: int = LINES_AT_ONCE,
    own: Mapping[str, Cut] = _NONE,
) -> Forgotten:
    """Delete finished jobs, with their logs: those that ended before `before`, and of each target all but the newest.

    A chain of retries or continuations that is still open is left whole. Documents are never touched: their retention
    is their own.

    Args:
        keep: finished jobs that each target keeps.
        before: what ended earlier goes, too.
        limit: at most so many jobs; to be called again, in a new transaction, until it is all.
        lines: at most so many lines of logs; a job whose log is longer goes when the last of them are gone.
        own: what holds for single targets instead.
    """
    chosen = finished_to_forget(session, Cut(keep, before), limit=limit, own=own)
    return _forget(session, chosen, limit=limit, lines=lines)


def forget_all_of(
    session: Session, targets: Collection[str], *, limit: int, lines: int = LINES_AT_ONCE
) -> Forgotten:
    """Delete all finished jobs of these targets, with their logs, and nothing of others; else as `forget_finished`."""
    own = dict.fromkeys(targets, Cut(0, None))
    return _forget(session, _beyond(session, Cut(None, None), own, limit), limit=limit, lines=lines)


def finished_to_forget(
    session: Session, cut: Cut, *, limit: int, own: Mapping[str, Cut] = _NONE
) -> list[Old]:
    """The finished jobs that the next batch deletes, oldest first in each target."""
    return _beyond(session, cut, own, limit)


def logs_to_forget(session: Session, cut: Cut, *, limit: int, own: Mapping[str, Cut] = _NONE) -> list[Old]:
    """The finished jobs whose logs the next batch deletes; the jobs themselves stay."""
    return _beyond(session, cut, own, limit, exists().where(JobLog.job_seq == Job.seq))


def forget_logs(session: Session, jobs: Sequence[Old], *, limit: int = LINES_AT_ONCE) -> Forgotten:
    """Delete lines of these jobs, at most `limit`; to be called again, in a new transaction, until it is all."""
    if not jobs:
        return Forgotten(0, 0, is_all=True)
    some = select(JobLog.id).where(JobLog.job_seq.in_([old.seq for old in jobs])).limit(limit)
    result = session.execute(
        delete(JobLog).where(JobLog.id.in_(some)).execution_options(synchronize_session=False)
    )
    deleted = cast("CursorResult[Any]", result).rowcount
    return Forgotten(0, deleted, is_all=deleted < limit)


def _forget(session: Session, chosen: Sequence[Old], *, limit: int, lines: int) -> Forgotten:
    if not chosen:
        return Forgotten(0, 0, is_all=True)
    logs = forget_logs(session, chosen, limit=lines)
    wanted: list[ColumnElement[bool]] = [
        Job.seq.in_([old.seq for old in chosen]),
        Job.finished_at.is_not(None),
    ]
    if not logs.is_all:
        wanted.append(~exists().where(JobLog.job_seq == Job.seq))
    result = session.execute(delete(Job).where(*wanted).execution_options(synchronize_session=False))
    deleted = cast("CursorResult[Any]", result).rowcount
    return Forgotten(deleted, logs.lines, is_all=logs.is_all and len(chosen) < limit)


def _beyond(session: Session, cut: Cut, own: Mapping[str, Cut], limit: int, *more: Any) -> list[Old]:
    chosen: list[Old] = []
    if cut.before is not None:
        # By age in one statement for all: most rounds find nothing to do.
        chosen = _closed(
            session, and_(Job.finished_at < cut.before, Job.target_code.not_in(own)), limit, *more
        )
    for target in session.scalars(_with_too_many(cut, own)).all():
        if len(chosen) >= limit:
            break
        seen = [old.seq for old in chosen if old.target == target]
        which = _end_of(session, target, own.get(target, cut))
        if which is not None:
            wanted = and_(Job.target_code == target, which, Job.seq.not_in(seen))
            chosen += _closed(session, wanted, limit - len(chosen), *more)
    return chosen


def _with_too_many(cut: Cut, own: Mapping[str, Cut]) -> Select[str]:
    """The targets to look at one by one: asking each of hundreds, most of which keep less, took seconds."""
    crowded: ColumnElement[bool] = false()
    if cut.keep is not None:
        counted = (
            select(Job.target_code)
            .where(Job.finished_at.is_not(None))
            .group_by(Job.target_code)
            .having(func.count() > cut.keep)
        )
        crowded = Target.code.in_(counted)
    return select(Target.code).where(or_(crowded, Target.code.in_(own))).order_by(Target.code)


def _end_of(session: Session, target: str, cut: Cut) -> Any:
    """The condition of what is too much or too old in one target; None when nothing can be."""
    too_old = Job.finished_at < cut.before if cut.before is not None else false()
    if cut.keep is None:
        return too_old if cut.before is not None else None
    newest_to_go = session.scalar(
        select(Job.seq)
        .where(Job.target_code == target, Job.finished_at.is_not(None))
        .order_by(Job.seq.desc())
        .offset(cut.keep)
        .limit(1)
    )
    return too_old if newest_to_go is None else or_(Job.seq <= newest_to_go, too_old)


def _closed(session: Session, which: Any, limit: int, *more: Any) -> list[Old]:
    other = aliased(Job)
    is_open = exists().where(other.root_id == Job.root_id, other.finished_at.is_(None))
    rows = session.execute(
        select(Job.seq, Job.target_code)
        .where(which, Job.finished_at.is_not(None), ~is_open, *more)
        .order_by(Job.seq)
        .limit(limit)
    )
    return [Old(seq, target) for seq, target in rows]
