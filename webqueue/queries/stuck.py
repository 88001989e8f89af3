"""Runs whose handlers do not stop: what counts as stuck (DESIGN P9, section 6)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists, or_, select
from sqlalchemy.orm import Session

from webqueue.models import Job, KeyEvent, RateKey
from webqueue.queries.runs import RUNNING

# A handler gets 8 s to stop; one that takes this long does not listen.
STUCK_AFTER = timedelta(seconds=60)


def does_not_stop(now: datetime) -> ColumnElement[bool]:
    """Whether a running job is one that does not stop, as a condition.

    Its worker has told that it goes on after its time limit; or it was asked to stop a minute ago; or its worker is silent,
    so that its lease had to be extended from outside.
    """
    told = exists().where(
        KeyEvent.rate_key == Job.rate_key,
        KeyEvent.kind == "stuck",
        KeyEvent.job_id == Job.id,
        # An earlier run of the job may have been stuck as well; what counts is the present one.
        KeyEvent.at >= Job.started_at,
    )
    silent = exists().where(RateKey.key == Job.rate_key, RateKey.extensions > 0)
    return or_(Job.stop_requested_at < now - STUCK_AFTER, told, silent)


def stuck_keys(session: Session, now: datetime) -> frozenset[str]:
    """The rate keys whose job does not stop. There are never more running jobs than worker threads."""
    return frozenset(session.scalars(select(Job.rate_key).where(Job.status == RUNNING, does_not_stop(now))))
