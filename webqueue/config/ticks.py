"""When a target ticks next, and when that tick makes its job (DESIGN section 7).

A tick is a nominal time of the schedule. It fires later by its jitter, and only then is there anything to do: schedulers
look for targets by that time, which is stored, so that any number of ticks may wait for it without being looked at.
"""

from __future__ import annotations

import functools
import random
from datetime import datetime, timedelta

from webqueue import cron
from webqueue.models import Site, Target


def restart_ticks(target: Target, site: Site, now: datetime) -> None:
    """Let the schedule count from `now`: what came before is no missed tick of the new schedule.

    The row is what every scheduler reads, so an edit takes effect in all of them.

    Raises:
        InvalidInputError: the schedule or its timezone cannot be read; nothing is changed.
    """
    tick = _next_tick(target, site, now)
    target.ticks_from = now
    target.schedule_error = None
    target.next_tick_at = tick
    target.fires_at = None if target.next_tick_at is None else fires_at(target, target.next_tick_at)


def change_jitter(target: Target, now: datetime) -> None:
    """Let a changed jitter hold for the next tick, which stays; one that still waits is due now at the earliest."""
    if target.next_tick_at is None:
        return
    waited_until = target.fires_at or target.next_tick_at
    target.fires_at = max(fires_at(target, target.next_tick_at), min(waited_until, now))


def fires_at(target: Target, tick: datetime) -> datetime:
    """When a tick makes its job: after a part of the jitter, the same in every scheduler."""
    if target.jitter_sec <= 0:
        return tick
    dice = random.Random(f"{target.code} {tick.isoformat()}")  # noqa: S311 - spreads load, keeps no secret
    return tick + timedelta(seconds=dice.uniform(0, target.jitter_sec))


def _next_tick(target: Target, site: Site, now: datetime) -> datetime | None:
    if not target.enabled or target.schedule is None:
        return None
    after = now if target.start_at is None else max(now, target.start_at - timedelta(microseconds=1))
    tick = _first_after(cron.parse(target.schedule, target.timezone or site.timezone), after)
    return None if target.end_at is not None and tick > target.end_at else tick


@functools.lru_cache(maxsize=256)  # a change of many gives hundreds of targets the same
def _first_after(schedule: cron.Schedule, after: datetime) -> datetime:
    return schedule.next_after(after)
