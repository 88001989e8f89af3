"""Versions of what a page shows: the same version means that nothing changed, and a poll answers 204."""

from __future__ import annotations

import hashlib

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import (
    AuditEntry,
    IntervalChange,
    Job,
    JobLog,
    KeyEvent,
    Process,
    RateKey,
    StoredSetting,
    Target,
)
from webqueue.queries.runs import RUNNING
from webqueue.queries.status import is_overdue
from webqueue.queries.stopping import FORCE_AFTER
from webqueue.queries.stuck import STUCK_AFTER
from webqueue.queries.waiting import alive_after


def state_version(session: Session) -> str:
    """The version of everything that jobs, keys and targets do: one statement, however many jobs there are.

    The tables of jobs are read through their indexes; rate keys and targets, of which there are few, are read whole.

    Every verb settles its rate key, so the newest change of a key tells of starts, ends, moves and pauses; running jobs
    are added with their progress, and what changes by the mere passing of time (a cooldown, a silent worker, a key that waits for long).
    """
    now = clock.now(session)
    running = (
        select(
            func.count(),
            func.max(Job.modified_at),
            func.sum(func.coalesce(Job.progress_current, 0) + Job.current_page),
            func.sum(case((Job.stop_requested_at < now - STUCK_AFTER, 1), else_=0)),
        )
        .where(Job.status == RUNNING)
        .subquery()
    )
    seen = session.execute(
        select(
            running,
            select(func.max(Job.seq)).scalar_subquery(),
            select(func.max(Job.finished_at)).scalar_subquery(),
            select(func.max(RateKey.modified_at)).scalar_subquery(),
            select(func.count()).select_from(RateKey).where(RateKey.cooldown_until > now).scalar_subquery(),
            select(func.count()).select_from(RateKey).where(RateKey.gap_until > now).scalar_subquery(),
            select(func.count()).select_from(RateKey).where(is_overdue(now)).scalar_subquery(),
            select(func.max(Target.changed_at)).scalar_subquery(),
            select(func.count()).select_from(Target).scalar_subquery(),
            select(func.count(Target.paused_at)).scalar_subquery(),
            select(func.max(Target.next_tick_at)).scalar_subquery(),
            select(func.min(Target.next_tick_at)).scalar_subquery(),
            select(func.max(StoredSetting.changed_at)).scalar_subquery(),
            select(func.count()).select_from(StoredSetting).scalar_subquery(),
            # What people change of anything else (sites, groups, notes, users) is in the audit log.
            select(func.max(AuditEntry.id)).scalar_subquery(),
            select(func.max(KeyEvent.id)).scalar_subquery(),
            select(func.max(IntervalChange.id)).scalar_subquery(),
            select(func.count())
            .select_from(Process)
            .where(Process.heartbeat_at > alive_after(now))
            .scalar_subquery(),
            select(func.max(Process.started_at)).scalar_subquery(),
        )
    ).one()
    return _digest(tuple(seen))


def health_version(session: Session) -> str:
    """The version of a page that tells when each process gave its last sign of life."""
    return _digest(state_version(session), session.scalar(select(func.max(Process.heartbeat_at))))


def job_version(session: Session, seq: int) -> str:
    """The version of one job's page: its own row, its log, the end of its chain, and, while it waits, everything else."""
    row = session.execute(
        select(Job.status, Job.modified_at, Job.rate_key, Job.root_id, Job.stop_requested_at).where(
            Job.seq == seq
        )
    ).one_or_none()
    # What repeats it changes long after its own end; the jobs between both have ended too.
    end = session.execute(
        select(Job.seq, Job.status, Job.stop_requested, Job.last_completed_page)
        .where(Job.root_id == (row.root_id if row is not None else None))
        .order_by(Job.seq.desc())
        .limit(1)
    ).one_or_none()
    last_line = session.scalar(
        select(JobLog.id).where(JobLog.job_seq == seq).order_by(JobLog.id.desc()).limit(1)
    )
    # Every page has the banner: that everything is paused, that a disk is low, that no worker is alive.
    banner = session.execute(
        select(
            select(func.max(StoredSetting.changed_at)).scalar_subquery(),
            select(func.count()).select_from(StoredSetting).scalar_subquery(),
            select(func.count())
            .select_from(Process)
            .where(Process.heartbeat_at > alive_after(clock.now(session)))
            .scalar_subquery(),
        )
    ).one()
    # By the mere passing of time a stop becomes one that may be forced, and then one that is stuck.
    asked = row.stop_requested_at if row is not None and row.status == "running" else None
    passed = [asked is not None and asked <= clock.now(session) - by for by in (FORCE_AFTER, STUCK_AFTER)]
    waits = row is not None and row.status == "queued"
    return _digest(
        row and tuple(row),
        end and tuple(end),
        last_line,
        tuple(banner),
        passed,
        state_version(session) if waits else "",
    )


def _digest(*values: object) -> str:
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()
