"""The wall clock of a timezone: which offset it has when, and which moment it shows a time."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class WallClock:
    """The clock on the wall in a zone (an IANA name)."""

    timezone: str

    @cached_property
    def zone(self) -> zoneinfo.ZoneInfo:
        """The zone's rules."""
        return zoneinfo.ZoneInfo(self.timezone)

    def offset(self, moment: datetime) -> timedelta:
        """What the clock is ahead of UTC at that moment."""
        offset = moment.astimezone(self.zone).utcoffset()
        assert offset is not None  # a ZoneInfo always knows
        return offset

    def first_moment_at_or_past(self, wall: datetime) -> datetime:
        """The moment at which the clock shows `wall` for the first time, or jumps over it."""
        local = wall.replace(tzinfo=self.zone)
        moment = local.astimezone(UTC)
        if wall_time(moment, self.offset(moment)) == wall:
            return moment  # fold=0: of a repeated time the first
        # PEP 495: in a gap, fold=1 is read with the later offset.
        before_gap = local.replace(fold=1).astimezone(UTC)
        return self._bisect_change(before_gap, moment, self.offset(before_gap))

    def first_change(self, start: datetime, end: datetime, offset: timedelta) -> datetime | None:
        """The first second in (start, end] at which another offset than `offset` holds; None if it holds
        throughout.

        Looks once a day: no zone has had two changes within a week of each other since 1970.
        """
        low = start
        while low < end:
            high = min(low + DAY, end)
            if self.offset(high) != offset:
                return self._bisect_change(low, high, offset)
            low = high
        return None

    def _bisect_change(self, low: datetime, high: datetime, offset: timedelta) -> datetime:
        """The second at which `offset` ends; it holds just after `low` and no longer at `high`."""
        while (seconds := (high - low) // SECOND) > 1:
            middle = low + timedelta(seconds=seconds // 2)
            if self.offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high


def wall_time(moment: datetime, offset: timedelta) -> datetime:
    """What the clock shows, without a zone."""
    return (moment + offset).replace(tzinfo=None)


def moment_of(wall: datetime, offset: timedelta) -> datetime:
    """When the clock shows it, as long as it has this offset."""
    return wall.replace(tzinfo=UTC) - offset
