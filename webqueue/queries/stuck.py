"""Runs whose handlers do not stop: what counts as stuck (DESIGN P9, section 6)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue.models import KeyEvent, RateKey

# A handler gets 8 s to stop; one that takes this long does not listen.
STUCK_AFTER = timedelta(seconds=60)


class Running(Protocol):
    """What has to be known of a running job: a row of the table has it, and a row of a page."""

    @property
    def id(self) -> str: ...
    @property
    def rate_key(self) -> str: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def stop_requested_at(self) -> datetime | None: ...


def stuck_jobs(session: Session, running: Iterable[Running], now: datetime) -> set[str]:
    """The ids of those of the running jobs that do not stop.

    Their worker has told that they go on after their time limit; or they were asked to stop a minute ago; or their worker
    is silent, so that their lease had to be extended from outside.
    """
    jobs = list(running)
    told = _told(session, jobs)
    silent = set(
        session.scalars(
            select(RateKey.key).where(
                RateKey.key.in_(sorted({job.rate_key for job in jobs})), RateKey.extensions > 0
            )
        )
    )
    return {job.id for job in jobs if job.id in told or job.rate_key in silent or _asked_long_ago(job, now)}


def _told(session: Session, jobs: list[Running]) -> set[str]:
    found = session.execute(
        select(KeyEvent.job_id, func.max(KeyEvent.at))
        .where(
            KeyEvent.rate_key.in_([job.rate_key for job in jobs]),
            KeyEvent.kind == "stuck",
            KeyEvent.job_id.in_([job.id for job in jobs]),
        )
        .group_by(KeyEvent.job_id)
    )
    last = {job_id: at for job_id, at in found}  # noqa: C416 - rows are no plain tuples
    # An earlier run of the job may have been stuck as well; what counts is the present one.
    return {
        job.id
        for job in jobs
        if job.id in last and job.started_at is not None and last[job.id] >= job.started_at
    }


def _asked_long_ago(job: Running, now: datetime) -> bool:
    return job.stop_requested_at is not None and job.stop_requested_at < now - STUCK_AFTER
