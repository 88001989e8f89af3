"""The coming ticks of all targets, soonest first, worked out as they are asked for."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from sqlalchemy.orm import Session

from webqueue import cron
from webqueue.errors import InvalidInputError
from webqueue.queries.ticking import TickingTarget, ticking_targets


@dataclass(frozen=True)
class ComingTick:
    """A scheduled time of a target.

    Attributes:
        together: how many of the ticks shown come at this time in this rate key; they wait for each other.
    """

    at: datetime
    target: str
    site: str
    rate_key: str
    timezone: str
    together: int = 1


def coming_ticks(
    session: Session,
    start: datetime,
    end: datetime,
    *,
    rate_key: str | None = None,
    after: tuple[datetime, str] | None = None,
    limit: int = 100,
) -> tuple[ComingTick, ...]:
    """The ticks from `start` on, before `end`, at most `limit`. A schedule that cannot be read has none.

    Args:
        rate_key: only those of targets that have this key.
        after: the time and the target of the last one that was seen; only those behind it.
    """
    targets = [one for one in ticking_targets(session) if rate_key in {None, one.rate_key}]
    begin = start if after is None else max(start, after[0])
    merged = heapq.merge(*(_ticks(target, begin, end) for target in targets), key=_place)
    found = list(islice((tick for tick in merged if after is None or _place(tick) > after), limit))
    together = Counter((tick.at, tick.rate_key) for tick in found)
    return tuple(
        ComingTick(
            tick.at, tick.target, tick.site, tick.rate_key, tick.timezone, together[tick.at, tick.rate_key]
        )
        for tick in found
    )


def _place(tick: ComingTick) -> tuple[datetime, str]:
    return tick.at, tick.target


def _ticks(target: TickingTarget, start: datetime, end: datetime) -> Iterator[ComingTick]:
    try:
        schedule = cron.parse(target.schedule, target.timezone)
    except InvalidInputError:
        return  # the target's own page tells what is wrong with it
    at = max(start, target.start_at or start) - timedelta(microseconds=1)
    until = min(end, target.end_at + timedelta(microseconds=1)) if target.end_at else end
    while (at := schedule.next_after(at)) < until:
        yield ComingTick(at, target.code, target.site, target.rate_key, target.timezone)
