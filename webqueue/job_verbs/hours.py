"""Due times and the hours in which a site may be visited (DESIGN section 6, "When")."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue import jobs_sql
from webqueue.jobs_sql.heads import QUEUED
from webqueue.models import Job, Site
from webqueue.politeness.hours import hours_of

# A site counts as open this long before it opens: jobs that were moved to the front are due a few µs before the others.
_ALMOST_OPEN: Final = timedelta(milliseconds=1)
_MOST_FRONTS: Final = 999


def opening(site: Site, at: datetime) -> datetime:
    """`at` itself when the site may be visited then, else the next opening of its allowed hours."""
    hours = hours_of(site.allowed_hours, site.timezone)
    if hours is None:
        return at
    opens = hours.next_opening(at)
    return at if opens - at <= _ALMOST_OPEN else opens


def open_for(site: Site, now: datetime) -> float | None:
    """Seconds until the site's allowed hours end; None where it has none."""
    hours = hours_of(site.allowed_hours, site.timezone)
    if hours is None:
        return None
    return (hours.next_closing(now + _ALMOST_OPEN) - now).total_seconds()


def move_to_opening(session: Session, key: str, site_code: str, opens: datetime, now: datetime) -> None:
    """Let the queued jobs of a closed site, in a key that is locked, be due when it opens.

    They keep their order: all are due at once, and go by number; those that were moved to the front a little earlier.
    """
    fronts = session.scalars(
        select(Job.seq)
        .where(
            Job.rate_key == key,
            Job.site_code == site_code,
            QUEUED,
            Job.moved_to_front_at.is_not(None),
            Job.retry_at < opens,
        )
        .order_by(Job.retry_at, Job.seq)
        .limit(_MOST_FRONTS)
    ).all()
    jobs_sql.postpone(session, key, site_code, opens, now)
    for place, seq in enumerate(fronts):
        jobs_sql.postpone_one(session, seq, opens - timedelta(microseconds=len(fronts) - place))
