"""How much of a day each rate key is booked for: what its schedules start, times how long that usually takes.

A key runs one job at a time, so more than 24 hours a day never fit: its line grows, or its ticks are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy.orm import Session

from webqueue import cron
from webqueue.errors import InvalidInputError
from webqueue.models import StoredSetting
from webqueue.queries.runs import last_full_runs_of_targets, usual_seconds
from webqueue.queries.ticking import TickingTarget, ticking_targets

DAY_SEC: Final = 24 * 3600
HOUR_SEC: Final = 3600
# The name of the stored setting in which the scheduler keeps what it found; see `overbooked_keys`.
OVERBOOKED: Final = "overbooked_keys"
# The fullest ones; a banner names the first.
_MOST_KEPT: Final = 50


@dataclass(frozen=True)
class BookedTarget:
    """What one target takes of its key.

    Attributes:
        ticks_a_day: on average over four weeks.
        usual_seconds: how long a run takes, the median of the last ones.
    """

    target: str
    ticks_a_day: float
    usual_seconds: float

    @property
    def seconds_a_day(self) -> float:
        """Seconds of each day that its runs fill."""
        return self.ticks_a_day * self.usual_seconds


@dataclass(frozen=True)
class Booking:
    """What all targets of a key take together; those that take most come first."""

    rate_key: str
    targets: tuple[BookedTarget, ...]

    @property
    def seconds_a_day(self) -> float:
        """Seconds of each day that the key is booked for."""
        return sum(target.seconds_a_day for target in self.targets)

    @property
    def is_too_much(self) -> bool:
        """Whether it can never all be done."""
        return self.seconds_a_day > DAY_SEC


def bookings(session: Session, now: datetime, *, rate_key: str | None = None) -> tuple[Booking, ...]:
    """How each key is booked, the fullest first. Targets that never ran, or do not tick, count nothing.

    Args:
        session: reads only.
        now: from when on schedules are looked at.
        rate_key: only this key.
    """
    ticking = [
        target
        for target in ticking_targets(session)
        if rate_key in {None, target.rate_key} and (target.start_at is None or target.start_at <= now)
    ]
    runs = last_full_runs_of_targets(session, [target.code for target in ticking])
    by_key: dict[str, list[BookedTarget]] = {}
    for target in ticking:
        usual, a_day = usual_seconds(runs[target.code]), _ticks_a_day(target, now)
        if usual and a_day:
            by_key.setdefault(target.rate_key, []).append(BookedTarget(target.code, a_day, usual))
    found = [
        Booking(key, tuple(sorted(targets, key=lambda one: (-one.seconds_a_day, one.target))))
        for key, targets in by_key.items()
    ]
    return tuple(sorted(found, key=lambda booking: (-booking.seconds_a_day, booking.rate_key)))


def hours_to_keep(found: Sequence[Booking]) -> dict[str, int]:
    """What the scheduler stores of `bookings`: the keys that are booked for too much, with whole hours a day.

    Whole hours, so that a median that moves a little writes nothing; at least 25, for 24 of 24 hours would be no news.
    """
    return {
        one.rate_key: max(25, round(one.seconds_a_day / HOUR_SEC))
        for one in found[:_MOST_KEPT]
        if one.is_too_much
    }


def overbooked_keys(session: Session) -> Mapping[str, int]:
    """The keys that are booked for more than 24 hours a day with those hours, the fullest first.

    As the scheduler found them in its last look, so that a page pays one indexed read for it.
    """
    stored = StoredSetting.read(session, OVERBOOKED) or {}
    return dict(sorted(stored.items(), key=lambda one: (-one[1], one[0])))


def _ticks_a_day(target: TickingTarget, now: datetime) -> float | None:
    try:
        return cron.parse(target.schedule, target.timezone).ticks_a_day(now)
    except InvalidInputError:
        return None  # the target's own page tells what is wrong with it
