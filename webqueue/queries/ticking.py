"""The targets whose schedules run, for the list of coming ticks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import Site, Target
from webqueue.queries.site_keys import keys_of_sites


@dataclass(frozen=True)
class TickingTarget:
    """What decides when a target ticks; `timezone` is the one in force."""

    code: str
    site: str
    rate_key: str
    schedule: str
    timezone: str
    start_at: datetime | None
    end_at: datetime | None


def ticking_targets(session: Session) -> list[TickingTarget]:
    """Every target with a schedule that is neither disabled nor paused."""
    keys = keys_of_sites(session)
    rows = session.execute(
        select(Target, Site.timezone)
        .join(Site)
        .where(Target.schedule.is_not(None), Target.enabled.is_(True), Target.paused_at.is_(None))
        .order_by(Target.code)
    )
    return [
        TickingTarget(
            code=target.code,
            site=target.site_code,
            rate_key=keys.get(target.site_code, target.site_code),
            schedule=target.schedule or "",
            timezone=target.timezone or zone,
            start_at=target.start_at,
            end_at=target.end_at,
        )
        for target, zone in rows
    ]
