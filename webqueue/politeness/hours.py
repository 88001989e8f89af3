"""The hours of the day in which a site may be visited, in its own time zone (DESIGN section 6, "When")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from webqueue import logs
from webqueue.sentences import said, say

log = logs.get(__name__)

_FORM: Final = re.compile(r"(\d{1,2}):(\d{2})\s*[-–]\s*(\d{1,2}):(\d{2})")
_DAY: Final = 24 * 60
# As far as a look ahead has to go: a day, and one more when daylight saving skips a short opening.
_DAYS_AHEAD: Final = 4
_LOOK_AGAIN: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class AllowedHours:
    """From `opens` to `closes`, minutes of the local day; over midnight where `closes` is not later.

    What counts is what the clocks on the wall of `timezone` show. When daylight saving begins or ends, an opening may
    so be shorter, longer, or come twice.
    """

    opens: int
    closes: int
    timezone: str

    def __str__(self) -> str:
        return f"{_shown(self.opens)}-{_shown(self.closes)}"

    def is_open(self, at: datetime) -> bool:
        """Whether the site may be visited at an aware time."""
        local = at.astimezone(ZoneInfo(self.timezone))
        minute = local.hour * 60 + local.minute
        if self.opens < self.closes:
            return self.opens <= minute < self.closes
        return minute >= self.opens or minute < self.closes

    def next_opening(self, at: datetime) -> datetime:
        """`at` itself while it is open, else the next time (UTC) at which it is."""
        return at if self.is_open(at) else self._next(at, opened=True)

    def next_closing(self, at: datetime) -> datetime:
        """The next time (UTC) at which it is not open; `at` itself while it is closed."""
        return self._next(at, opened=False) if self.is_open(at) else at

    def _next(self, at: datetime, *, opened: bool) -> datetime:
        moments = (moment for moment in self._moments(at) if moment > at and self.is_open(moment) is opened)
        return next(moments)

    def _moments(self, at: datetime) -> list[datetime]:
        """Every time from about `at` on, sorted, at which the answer may change.

        These are both ends of each day, and the changes of the zone's offset.
        """
        zone = ZoneInfo(self.timezone)
        midnight = at.astimezone(zone).date()
        found: set[datetime] = set()
        for days in range(-1, _DAYS_AHEAD + 1):
            day = midnight + timedelta(days=days)
            for minute in (self.opens, self.closes % _DAY):
                wall = datetime.combine(day, time(minute // 60, minute % 60))
                # A time that comes twice in autumn is two moments.
                found |= {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        start = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        for hour in range((_DAYS_AHEAD + 1) * 24):
            found |= _change_of_offset(start + timedelta(hours=hour), zone)
        return sorted(found)


@dataclass(frozen=True)
class UnreadableHours:
    """Hours that somebody meant and nobody can read: never open, looked at again every `_LOOK_AGAIN`.

    Attributes:
        problem: what is wrong with them, for a person.
    """

    problem: str

    def is_open(self, _at: datetime) -> bool:
        """Never: the site's owner asked for some limit, and a visit outside of it cannot be taken back."""
        return False

    def next_opening(self, at: datetime) -> datetime:
        """When they are looked at again."""
        return at + _LOOK_AGAIN

    def next_closing(self, at: datetime) -> datetime:
        """`at`: it is closed."""
        return at


def hours_of(text: str | None, timezone: str) -> AllowedHours | UnreadableHours | None:
    """The hours of a stored site; None where all are allowed.

    Hours are checked when they are saved. Should stored ones not be readable all the same, the site is closed until
    they are corrected, and that is logged.
    """
    if text is None:
        return None
    try:
        ZoneInfo(timezone)
        return parse_hours(text, timezone)
    except (ValueError, KeyError) as error:
        problem = (
            say("no time zone %(zone)s", zone=repr(timezone)) if isinstance(error, KeyError) else said(error)
        )
        log.error("allowed hours cannot be read", hours=text, timezone=timezone, problem=problem)  # noqa: TRY400
        return UnreadableHours(problem)


def parse_hours(text: str, timezone: str) -> AllowedHours:
    """Read `20:00-06:00`; `24:00` may stand for the end of the day.

    Raises:
        ValueError: it has another form, or opens and closes at the same time; the text says so.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            say('%(text)s are no hours; write "20:00-06:00", from opening to closing', text=repr(text[:40]))
        )
    opens_hour, opens_minute, closes_hour, closes_minute = (int(part) for part in match.groups())
    opens, closes = opens_hour * 60 + opens_minute, closes_hour * 60 + closes_minute
    if opens_minute > 59 or closes_minute > 59 or opens >= _DAY or closes > _DAY:
        raise ValueError(say("%(text)s names a time that no day has", text=repr(text[:40])))
    if opens == closes % _DAY:
        raise ValueError(
            say(
                "%(text)s opens and closes at the same time; leave the hours out to allow all",
                text=repr(text[:40]),
            )
        )
    return AllowedHours(opens, closes, timezone)


def _shown(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _change_of_offset(start: datetime, zone: ZoneInfo) -> set[datetime]:
    """The moment within the hour after `start` at which the zone's offset changes, to the second."""
    earlier, later = start, start + timedelta(hours=1)
    if _offset(earlier, zone) == _offset(later, zone):
        return set()
    while later - earlier > timedelta(seconds=1):
        middle = (earlier + (later - earlier) / 2).replace(microsecond=0)
        if _offset(middle, zone) == _offset(earlier, zone):
            earlier = middle
        else:
            later = middle
    return {later}


def _offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()
