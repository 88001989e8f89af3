"""A schedule: when it ticks, on the wall clock of its timezone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from cronsim import CronSim

from webqueue.cron.clock_changes import note_of_change
from webqueue.cron.wall_clock import SECOND, WallClock, moment_of, wall_time
from webqueue.cron.words import words_of
from webqueue.errors import InvalidInputError
from webqueue.sentences import say

MAX_NEXT_TIMES = 1000
_FOUR_WEEKS = 28  # days


@dataclass(frozen=True)
class Schedule:
    """A cron expression in a timezone. Made by `parse`, which is the only thing that checks it."""

    expression: str
    """As it was written, without spaces around it."""
    fields: str
    """The five fields in upper case; a named schedule such as `@daily` spelled out."""
    timezone: str
    """The IANA name of the zone whose wall clock counts."""

    def next_after(self, after: datetime) -> datetime:
        """The first tick later than `after` (a tick exactly at `after` is not it), in UTC.

        `after` is an aware datetime; ValueError if it is naive. Raises InvalidInputError (`after`) where the
        calendar of the machine ends first.
        """
        if after.tzinfo is None:
            raise ValueError("after must be an aware datetime")
        try:
            start = after.astimezone(UTC).replace(microsecond=0)
            return self._next_by_clock(start) if self._follows_the_clock else self._next_once(start)
        except (OverflowError, StopIteration) as error:
            raise InvalidInputError.of(
                "after", say("No tick can be worked out after %(value)s.", value=after.isoformat())
            ) from error

    def next_times(self, after: datetime, count: int) -> list[datetime]:
        """The first `count` ticks (0 to 1000) later than `after`, in UTC, ascending.

        Raises InvalidInputError (`count`, or `after` as `next_after` does).
        """
        if not 0 <= count <= MAX_NEXT_TIMES:
            raise InvalidInputError.of(
                "count",
                say(
                    "%(count)s times were asked for; allowed are 0 to %(max_next_times)s.",
                    count=count,
                    max_next_times=MAX_NEXT_TIMES,
                ),
            )
        times: list[datetime] = []
        for _ in range(count):
            times.append(self.next_after(times[-1] if times else after))
        return times

    def words(self, language: str = "en") -> str:
        """The schedule in words, with a 24 h clock, without the timezone: "At 03:00, every day".

        Args:
            language: `en`, or `zh`. A schedule for which there are no true Chinese words is told as it is written.
        """
        words = words_of(self.fields, language)
        return self.expression if words is None else words

    def dst_notes(self, after: datetime, days: int = 370) -> list[str]:
        """What the clock changes within `days` after `after` skip or repeat of this schedule, one sentence
        each.

        Empty where the zone changes no clock, or no time of the schedule is touched.
        """
        notes = []
        moment = after.astimezone(UTC).replace(microsecond=0)
        end = moment + timedelta(days=days)
        while (change := self._clock.first_change(moment, end, self._clock.offset(moment))) is not None:
            note = self._note_of_change(change)
            if note:
                notes.append(note)
            moment = change
        return notes

    def ticks_a_day(self, after: datetime) -> float:
        """How many ticks a day has, on average over the four weeks from the day of `after` (so that every weekday
        counts as often); what clock changes skip or repeat is left out of account.
        """
        return _ticks_a_day(self.fields, after.astimezone(self._clock.zone).date())

    @functools.cached_property
    def _clock(self) -> WallClock:
        return WallClock(self.timezone)

    @property
    def _follows_the_clock(self) -> bool:
        minute, hour, *_ = self.fields.split()
        return minute.startswith("*") or hour.startswith("*")

    def _wall_times(self, after_wall: datetime) -> Iterator[datetime]:
        """The matching wall-clock times later than `after_wall`. Naive: cronsim's own clock changes stay out."""
        return CronSim(self.fields, after_wall)

    def _next_by_clock(self, start: datetime) -> datetime:
        """The next moment at which the wall clock shows a matching time.

        While one offset holds, the wall clock is UTC plus that offset and nothing is skipped or repeated. So
        the next match is looked for at the present offset, and again from the change on if the offset changes
        before it.
        """
        moment, offset = start, self._clock.offset(start)
        while True:
            candidate = moment_of(next(self._wall_times(wall_time(moment, offset))), offset)
            change = self._clock.first_change(moment, candidate, offset)
            if change is None:
                return candidate
            # A second earlier, because the change itself may be a tick.
            moment, offset = change - SECOND, self._clock.offset(change)

    def _next_once(self, start: datetime) -> datetime:
        """The next moment at which the wall clock reaches a matching time for the first time, or jumps over
        it.

        That moment never decreases as the wall-clock time grows, and for times up to the present one it is
        past.
        """
        walls = self._wall_times(wall_time(start, self._clock.offset(start)))
        while True:
            moment = self._clock.first_moment_at_or_past(next(walls))
            if moment > start:
                return moment

    def _note_of_change(self, change: datetime) -> str | None:
        old = wall_time(change, self._clock.offset(change - SECOND))
        new = wall_time(change, self._clock.offset(change))
        touched = self._wall_times_between(min(old, new), max(old, new))
        if not touched:
            return None
        return note_of_change(
            old, new, touched, timezone=self.timezone, follows_the_clock=self._follows_the_clock
        )

    def _wall_times_between(self, first: datetime, end: datetime) -> list[datetime]:
        times = []
        for wall in self._wall_times(first - SECOND):
            if wall >= end:
                break
            times.append(wall)
        return times


@functools.lru_cache(maxsize=4096)
def _ticks_a_day(fields: str, start: date) -> float:
    """Kept until the next day: who looks at all schedules again and again asks the same."""
    midnight = datetime.combine(start, time.min)
    end = midnight + timedelta(days=_FOUR_WEEKS)
    every = CronSim(fields, midnight)
    at_midnight = " ".join(["0", "0", *fields.split()[2:]])
    days = itertools.takewhile(lambda day: day < end, CronSim(at_midnight, midnight - SECOND))
    return len(every.minutes) * len(every.hours) * sum(1 for _ in days) / _FOUR_WEEKS
