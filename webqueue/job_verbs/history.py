"""The end of a job's history: rows are kept by count and age per target, however they ended (SEEDS C 7)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, exists, select
from sqlalchemy.orm import Session, aliased

from webqueue.models import Job, Target


def forget_finished(session: Session, *, keep: int, before: datetime, limit: int) -> int:
    """Delete finished jobs, with their logs: those that ended before `before`, and of each target all but the newest.

    A chain of retries or continuations that is still open is left whole. Documents are never touched: their retention
    is their own.

    Args:
        keep: finished jobs that each target keeps.
        before: what ended earlier goes, too.
        limit: at most so many rows; to be called again, in a new transaction, while it deletes as many.

    Returns:
        How many rows were deleted.
    """
    deleted = _delete(session, Job.finished_at < before, limit)
    for target in session.scalars(select(Target.code).order_by(Target.code)).all():
        if deleted >= limit:
            break
        newest_to_go = session.scalar(
            select(Job.seq)
            .where(Job.target_code == target, Job.finished_at.is_not(None))
            .order_by(Job.seq.desc())
            .offset(keep)
            .limit(1)
        )
        if newest_to_go is not None:
            too_many = (Job.target_code == target) & (Job.seq <= newest_to_go)
            deleted += _delete(session, too_many, limit - deleted)
    return deleted


def _delete(session: Session, which: Any, limit: int) -> int:
    other = aliased(Job)
    is_open = exists().where(other.root_id == Job.root_id, other.finished_at.is_(None))
    chosen = session.scalars(
        select(Job.seq).where(which, Job.finished_at.is_not(None), ~is_open).order_by(Job.seq).limit(limit)
    ).all()
    if not chosen:
        return 0
    result = session.execute(
        delete(Job)
        .where(Job.seq.in_(chosen), Job.finished_at.is_not(None))
        .execution_options(synchronize_session=False)
    )
    return cast("CursorResult[Any]", result).rowcount
