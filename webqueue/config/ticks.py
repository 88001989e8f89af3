"""When a target ticks next, after its schedule was edited (DESIGN section 7)."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta

from webqueue import cron
from webqueue.models import Site, Target


def restart_ticks(target: Target, site: Site, now: datetime) -> None:
    """Let the schedule count from `now`: what came before is no missed tick of the new schedule.

    The row is what every scheduler reads, so an edit takes effect in all of them.
    """
    target.ticks_from = now
    target.schedule_error = None
    target.next_tick_at = _next_tick(target, site, now)


def _next_tick(target: Target, site: Site, now: datetime) -> datetime | None:
    if not target.enabled or target.schedule is None:
        return None
    after = now if target.start_at is None else max(now, target.start_at - timedelta(microseconds=1))
    tick = _first_after(cron.parse(target.schedule, target.timezone or site.timezone), after)
    return None if target.end_at is not None and tick > target.end_at else tick


@functools.lru_cache(maxsize=256)  # a change of many gives hundreds of targets the same
def _first_after(schedule: cron.Schedule, after: datetime) -> datetime:
    return schedule.next_after(after)
