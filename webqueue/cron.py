"""Cron schedules: five fields in a timezone, and what they mean on the wall clock (DESIGN §7).

`cronsim` reads the fields and finds the matching wall-clock times, by the rules of Debian's cron. Which
moments those wall-clock times are is worked out here, because cronsim loses ticks around clock changes that
are not whole hours (docs/decisions/0001-cronsim-and-half-hour-repeats.md). Two rules, both from cron(8) of
Debian:

- A schedule whose minute or hour field starts with `*` follows the wall clock: what the clock skips does not
  run, what it shows twice runs twice.
- Any other schedule runs each of its times once: one that the clock skips runs right after the gap, one that
  the clock shows twice runs the first time.
"""

from __future__ import annotations

import calendar
import difflib
import functools
import itertools
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from cron_descriptor import Options, get_description
from cronsim import CronSim, CronSimError

from webqueue.errors import InvalidInputError, Problem
from webqueue.sentences import say, say_some

MAX_EXPRESSION_LENGTH = 200
MAX_TIMEZONE_LENGTH = 100
MAX_NEXT_TIMES = 1000

_NAMED_SCHEDULES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# In any 50 years of this century every date falls on every weekday that it can fall on. What finds no match
# from here never fires; and so the answer does not depend on the day on which somebody saves a schedule.
_START_OF_CENTURY = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall-clock time without a zone

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_FOUR_WEEKS = 28  # days

# These keys of the system's zone directory are no places: one is whatever this machine is set to, one a
# placeholder.
_NO_TIMEZONES = frozenset({"localtime", "Factory"})


_DESCRIPTION_LOCALES = {"en": "en_US", "zh": "zh_CN"}
# cron-descriptor takes the names of days and months from the process, which speaks English.
_CHINESE_NAMES = {
    **dict(zip(calendar.day_name, ("周一", "周二", "周三", "周四", "周五", "周六", "周日"), strict=True)),
    **{name: f"{number} 月" for number, name in enumerate(calendar.month_name) if name},
}


@dataclass(frozen=True)
class _Field:
    name: str
    values: str
    term: re.Pattern[str]
    largest_step: int


def _field(name: str, values: str, value: str, largest_step: int, also: str = "") -> _Field:
    term = rf"(?:\*|(?P<low>{value})(?:-(?P<high>{value}))?)(?:/(?P<step>[0-9]+))?{also}"
    return _Field(name, values, re.compile(term), largest_step)


_FIELDS = (
    _field(say("minute"), "0-59", "[0-9]+", 60),
    _field(say("hour"), "0-23", "[0-9]+", 24),
    _field(
        say("day of the month"), say("1-31, L (the last day), LW (the last weekday)"), "[0-9]+", 31, "|L|LW"
    ),
    _field(say("month"), say("1-12 or JAN-DEC"), "[0-9]+|[A-Z]{3}", 12),
    _field(
        say("day of the week"),
        say("0-7 (0 and 7 are Sunday) or SUN-SAT, 1#2 (the second Monday), 5L (the last Friday)"),
        "[0-9]+|[A-Z]{3}",
        7,
        "|(?:[0-9]+|[A-Z]{3})#[1-5]|[0-9]L",
    ),
)


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
        if self._is_beyond_cron_descriptor:
            in_english = language not in _DESCRIPTION_LOCALES or language == "en"
            return CronSim(self.fields, _START_OF_CENTURY).explain() if in_english else self.expression
        options = Options()
        options.use_24hour_time_format = True
        # "every day" tells something beside a fixed hour; after "every minute" it is noise.
        options.verbose = not self.fields.split()[1].startswith("*")
        # Without one the words would depend on the environment of the process.
        options.locale_code = _DESCRIPTION_LOCALES.get(language, "en_US")
        words: str = get_description(self.fields, options)
        return _in_chinese(words) if language == "zh" else words

    def dst_notes(self, after: datetime, days: int = 370) -> list[str]:
        """What the clock changes within `days` after `after` skip or repeat of this schedule, one sentence
        each.

        Empty where the zone changes no clock, or no time of the schedule is touched.
        """
        notes = []
        moment = after.astimezone(UTC).replace(microsecond=0)
        end = moment + timedelta(days=days)
        while (change := self._first_change(moment, end, self._offset(moment))) is not None:
            note = self._note_of_change(change)
            if note:
                notes.append(note)
            moment = change
        return notes

    def ticks_a_day(self, after: datetime) -> float:
        """How many ticks a day has, on average over the four weeks from the day of `after` (so that every weekday
        counts as often); what clock changes skip or repeat is left out of account.
        """
        return _ticks_a_day(self.fields, after.astimezone(self._zone).date())

    @property
    def _zone(self) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo(self.timezone)

    @property
    def _follows_the_clock(self) -> bool:
        minute, hour, *_ = self.fields.split()
        return minute.startswith("*") or hour.startswith("*")

    @property
    def _is_beyond_cron_descriptor(self) -> bool:
        """Whether cron-descriptor would say something untrue: cronsim's own words are plainer, but right.

        It says "or" where a day field that starts with `*` means "and", drops the ordinals from lists such as
        `1#2,5#1`, and stumbles over `*` and steps in lists.
        """
        fields = self.fields.split()
        _, _, day, _, weekday = fields
        both_days = day != "*" and weekday != "*" and (day.startswith("*") or weekday.startswith("*"))
        return both_days or any("," in field and re.search(r"[*/#L]", field) for field in fields)

    def _offset(self, moment: datetime) -> timedelta:
        offset = moment.astimezone(self._zone).utcoffset()
        assert offset is not None  # a ZoneInfo always knows
        return offset

    def _wall_times(self, after_wall: datetime) -> Iterator[datetime]:
        """The matching wall-clock times later than `after_wall`. Naive: cronsim's own clock changes stay out."""
        return CronSim(self.fields, after_wall)

    def _next_by_clock(self, start: datetime) -> datetime:
        """The next moment at which the wall clock shows a matching time.

        While one offset holds, the wall clock is UTC plus that offset and nothing is skipped or repeated. So
        the next match is looked for at the present offset, and again from the change on if the offset changes
        before it.
        """
        moment, offset = start, self._offset(start)
        while True:
            candidate = _moment(next(self._wall_times(_wall(moment, offset))), offset)
            change = self._first_change(moment, candidate, offset)
            if change is None:
                return candidate
            # A second earlier, because the change itself may be a tick.
            moment, offset = change - _SECOND, self._offset(change)

    def _next_once(self, start: datetime) -> datetime:
        """The next moment at which the wall clock reaches a matching time for the first time, or jumps over
        it.

        That moment never decreases as the wall-clock time grows, and for times up to the present one it is
        past.
        """
        walls = self._wall_times(_wall(start, self._offset(start)))
        while True:
            moment = self._first_moment_at_or_past(next(walls))
            if moment > start:
                return moment

    def _first_moment_at_or_past(self, wall: datetime) -> datetime:
        local = wall.replace(tzinfo=self._zone)
        moment = local.astimezone(UTC)
        if _wall(moment, self._offset(moment)) == wall:
            return moment  # fold=0: of a repeated time the first
        before_gap = local.replace(fold=1).astimezone(
            UTC
        )  # PEP 495: in a gap, fold=1 is read with the later offset
        return self._bisect_change(before_gap, moment, self._offset(before_gap))

    def _first_change(self, start: datetime, end: datetime, offset: timedelta) -> datetime | None:
        """The first second in (start, end] at which another offset than `offset` holds; None if it holds
        throughout.

        Looks once a day: no zone has had two changes within a week of each other since 1970.
        """
        low = start
        while low < end:
            high = min(low + _DAY, end)
            if self._offset(high) != offset:
                return self._bisect_change(low, high, offset)
            low = high
        return None

    def _bisect_change(self, low: datetime, high: datetime, offset: timedelta) -> datetime:
        """The second at which `offset` ends; it holds just after `low` and no longer at `high`."""
        while (seconds := (high - low) // _SECOND) > 1:
            middle = low + timedelta(seconds=seconds // 2)
            if self._offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high

    def _note_of_change(self, change: datetime) -> str | None:
        old = _wall(change, self._offset(change - _SECOND))
        new = _wall(change, self._offset(change))
        touched = self._wall_times_between(min(old, new), max(old, new))
        if not touched:
            return None
        times = _listed(touched, dated=abs(new - old) >= _DAY)
        clock = say(
            "%(day)s: the clock of %(zone)s goes from %(old)s to %(new)s",
            day=f"{old:%Y-%m-%d}",
            zone=self.timezone,
            old=f"{old:%H:%M}",
            new=_until(old, new),
        )
        count = len(touched)
        if new > old and self._follows_the_clock:
            return say_some(
                "%(clock)s; %(times)s does not exist and is left out.",
                "%(clock)s; %(times)s do not exist and are left out.",
                count,
                clock=clock,
                times=times,
            )
        if new > old:
            return say_some(
                "%(clock)s; %(times)s does not exist and runs at %(instead)s instead.",
                "%(clock)s; %(times)s do not exist and run at %(instead)s instead.",
                count,
                clock=clock,
                times=times,
                instead=f"{new:%H:%M}",
            )
        if self._follows_the_clock:
            return say_some(
                "%(clock)s; %(times)s comes twice and runs both times.",
                "%(clock)s; %(times)s come twice and run both times.",
                count,
                clock=clock,
                times=times,
            )
        return say_some(
            "%(clock)s; %(times)s comes twice and runs once, the first time.",
            "%(clock)s; %(times)s come twice and run once, the first time.",
            count,
            clock=clock,
            times=times,
        )

    def _wall_times_between(self, first: datetime, end: datetime) -> list[datetime]:
        times = []
        for wall in self._wall_times(first - _SECOND):
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
    days = itertools.takewhile(lambda day: day < end, CronSim(at_midnight, midnight - _SECOND))
    return len(every.minutes) * len(every.hours) * sum(1 for _ in days) / _FOUR_WEEKS


def parse(expr: str, timezone: str) -> Schedule:
    """Read a cron expression of five fields (or `@hourly`, `@daily`, …) for the wall clock of `timezone`.

    Raises InvalidInputError with problems for `schedule` (naming the cron field and the values it may have)
    and for `timezone`: both, where both are wrong. Six fields are refused, because the sixth means seconds to
    one program and years to another; so is what never fires (DESIGN §7).
    """
    fields, problems = _read_expression(expr)
    timezone_problem = _timezone_problem(timezone)
    if timezone_problem:
        problems.append(Problem("timezone", timezone_problem))
    if problems:
        raise InvalidInputError(problems)
    return Schedule(expression=expr.strip(" \t\r\n"), fields=fields, timezone=timezone)


def _read_expression(expr: str) -> tuple[str, list[Problem]]:
    text = expr.strip(" \t\r\n")
    problem = _problem_of_text(text)
    if problem:
        return "", [Problem("schedule", problem)]
    fields = _NAMED_SCHEDULES.get(text.lower(), text.upper()).split()
    if len(fields) != len(_FIELDS):
        return "", [Problem("schedule", _wrong_count(text, len(fields)))]
    problems = [
        Problem("schedule", message)
        for field, written in zip(_FIELDS, fields, strict=True)
        if (message := _problem_of_field(field, written)) is not None
    ]
    if problems:
        return "", problems
    joined = " ".join(
        _without_step_of_one(field, written) for field, written in zip(_FIELDS, fields, strict=True)
    )
    if not _fires(joined):
        return "", [
            Problem(
                "schedule",
                say(
                    "%(text)s never fires: no month has such a day. Change day, month or weekday.",
                    text=repr(text),
                ),
            )
        ]
    return joined, []


def _problem_of_text(text: str) -> str | None:
    if not text:
        return say(
            "The schedule is empty. Write five fields (minute hour day month weekday), such as 0 3 * * *."
        )
    if len(text) > MAX_EXPRESSION_LENGTH:
        return say(
            "The schedule has %(count)s characters; allowed are %(most)s.",
            count=len(text),
            most=MAX_EXPRESSION_LENGTH,
        )
    strange = next((char for char in text if char != "\t" and not " " <= char <= "~"), None)
    if strange is not None:
        return say(
            "The schedule contains the character %(character)s; write plain ASCII letters, digits and signs.",
            character=ascii(strange),
        )
    if text.startswith("@") and text.lower() not in _NAMED_SCHEDULES:
        return say(
            "There is no schedule %(text)s; the named ones are %(known)s.",
            text=repr(text),
            known=", ".join(_NAMED_SCHEDULES),
        )
    return None


def _wrong_count(text: str, count: int) -> str:
    message = say_some(
        "%(text)s has %(count)s field; exactly five are needed: minute hour day month weekday.",
        "%(text)s has %(count)s fields; exactly five are needed: minute hour day month weekday.",
        count,
        text=repr(text),
    )
    if count <= len(_FIELDS):
        return message
    return say("%(message)s A field for seconds or years is not supported.", message=message)


def _problem_of_field(field: _Field, written: str) -> str | None:
    for term in written.split(","):
        match = field.term.fullmatch(term)
        if match is None or not _is_in_range(field, term):
            problem = say(
                "The %(field)s field has %(term)s; allowed are %(values)s, *, ranges, lists and steps.",
                field=field.name,
                term=repr(term),
                values=field.values,
            )
            return _with_wrapping_hint(problem, match)
        if match["step"] and not 1 <= int(match["step"]) <= field.largest_step:
            return say(
                "The %(field)s field has the step %(step)s; allowed are 1 to %(most)s.",
                field=field.name,
                step=match["step"],
                most=field.largest_step,
            )
    return None


def _is_in_range(field: _Field, term: str) -> bool:
    """Whether cronsim takes the term, all other fields being `*`. Steps are judged elsewhere."""
    probe = ["*"] * len(_FIELDS)
    probe[_FIELDS.index(field)] = term.partition("/")[0]
    try:
        CronSim(" ".join(probe), _START_OF_CENTURY)
    except CronSimError:
        return False
    return True


def _with_wrapping_hint(problem: str, match: re.Match[str] | None) -> str:
    if match is None or match["high"] is None:
        return problem
    return say(
        "%(problem)s A range runs upwards; one that wraps round is written as two, such as 22-23,0-2.",
        problem=problem,
    )


def _without_step_of_one(field: _Field, written: str) -> str:
    """`5-5/10` means 5 alone; cronsim would read it as `5/10`, which goes on to the end of the range."""
    terms = []
    for term in written.split(","):
        match = field.term.fullmatch(term)
        is_single = match is not None and match["high"] is not None and match["low"] == match["high"]
        terms.append(match["low"] if match is not None and is_single else term)
    return ",".join(terms)


def _fires(fields: str) -> bool:
    try:
        next(CronSim(fields, _START_OF_CENTURY))
    except (CronSimError, StopIteration):
        return False
    return True


def _timezone_problem(timezone: str) -> str | None:
    if len(timezone) > MAX_TIMEZONE_LENGTH:
        return say(
            "The timezone has %(count)s characters; no zone has more than %(most)s.",
            count=len(timezone),
            most=MAX_TIMEZONE_LENGTH,
        )
    if timezone in _timezones():
        return None
    # Membership, and not ZoneInfo's word: it also takes "right/…" (which counts leap seconds) and, on some
    # file systems, names in the wrong case, which another machine would then refuse.
    lowered = {name.lower(): name for name in _timezones()}
    # Its letters are nearest to Asia/Harbin; many write it, because their clocks and systems call it so.
    meant = ["asia/shanghai"] if timezone.lower().endswith("beijing") else None
    near = meant or difflib.get_close_matches(timezone.lower(), lowered, n=1)
    if near:
        return say(
            "There is no timezone %(zone)s. Did you mean %(near)s?",
            zone=ascii(timezone),
            near=lowered[near[0]],
        )
    return say(
        "There is no timezone %(zone)s. Write a name such as Asia/Shanghai or UTC.", zone=ascii(timezone)
    )


@functools.cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _NO_TIMEZONES)


def _wall(moment: datetime, offset: timedelta) -> datetime:
    return (moment + offset).replace(tzinfo=None)


def _moment(wall: datetime, offset: timedelta) -> datetime:
    return wall.replace(tzinfo=UTC) - offset


def _until(old: datetime, new: datetime) -> str:
    if new.date() == old.date():
        return f"{new:%H:%M}"
    return say("%(time)s of %(day)s", time=f"{new:%H:%M}", day=f"{new:%Y-%m-%d}")


def _in_chinese(words: str) -> str:
    named = re.sub(r"[A-Z][a-z]+", lambda name: _CHINESE_NAMES.get(name[0], name[0]), words)
    spaced = named.replace(", ", "，").removeprefix("在 ").strip()
    joined = re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", spaced)
    # Its Chinese has some words in the order of the English ones, or not those that people say.
    ordered = re.sub("在(第.个周.)每月", r"每月的\1", joined)
    return re.sub(r"每 (\d+) 月", r"每 \1 个月", ordered).replace("平日", "工作日")


def _listed(times: list[datetime], *, dated: bool) -> str:
    shown = [f"{time:%Y-%m-%d %H:%M}" if dated else f"{time:%H:%M}" for time in times]
    if len(shown) <= 4:
        return ", ".join(shown)
    return say(
        "%(first)s … %(last)s (%(count)s times)", first=", ".join(shown[:3]), last=shown[-1], count=len(shown)
    )
