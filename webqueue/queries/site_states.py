"""What sites are doing: paused, next tick, last job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import Job, RateKey, Target
from webqueue.queries.jobs import JobRow, job_rows


@dataclass(frozen=True)
class SiteState:
    """The present of a site.

    Attributes:
        paused: whether its rate key is.
        next_tick: the earliest of its targets.
        last_job: the newest job that is finished.
    """

    paused: bool = False
    next_tick: datetime | None = None
    last_job: JobRow | None = None


def site_states(session: Session, keys: Mapping[str, str]) -> dict[str, SiteState]:
    """The states of sites, given by code with their rate keys; three statements, however many sites."""
    codes = list(keys)
    paused = set(
        session.scalars(
            select(RateKey.key).where(RateKey.key.in_(set(keys.values())), RateKey.paused_at.is_not(None))
        )
    )
    ticks = _next_ticks(session, codes)
    jobs = _last_jobs(session, codes)
    return {code: SiteState(keys[code] in paused, ticks.get(code), jobs.get(code)) for code in codes}


def _next_ticks(session: Session, codes: Sequence[str]) -> dict[str, datetime]:
    rows = session.execute(
        select(Target.site_code, func.min(Target.next_tick_at))
        .where(Target.site_code.in_(codes), Target.enabled.is_(True), Target.paused_at.is_(None))
        .group_by(Target.site_code)
    )
    return {code: tick for code, tick in rows if tick is not None}


def _last_jobs(session: Session, codes: Sequence[str]) -> dict[str, JobRow]:
    """By the index of each target, so that a long history costs nothing."""
    newest = (
        select(Job.seq)
        .where(Job.target_code == Target.code, Job.finished_at.is_not(None))
        .order_by(Job.seq.desc())
        .limit(1)
        .correlate(Target)
        .scalar_subquery()
    )
    of_targets = select(Target.site_code, newest.label("seq")).where(Target.site_code.in_(codes)).subquery()
    numbers = select(func.max(of_targets.c.seq)).group_by(of_targets.c.site_code)
    jobs = session.scalars(select(Job).where(Job.seq.in_(numbers))).all()
    return {row.site: row for row in job_rows(session, jobs, clock.now(session))}
