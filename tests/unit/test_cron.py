from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webqueue import cron
from webqueue.errors import InvalidInputError

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "cron.jsonl").read_text("utf-8").splitlines()
    if line.strip()
]

MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def refusal(expr: str, timezone: str = "UTC") -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        cron.parse(expr, timezone)
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['expr']} {case['why']}")
def test_shared_cases(case: dict[str, Any]) -> None:
    if case.get("error"):
        refusal(case["expr"], case["tz"])
        return
    schedule = cron.parse(case["expr"], case["tz"])
    expected = [at(text) for text in case["next"]]
    assert schedule.next_times(at(case["after"]), len(expected)) == expected


# --- fields ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "after", "expected"),
    [
        ("0 0 29 2 *", "2025-01-01T00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]),
        ("0 0 29 2 *", "2096-03-01T00:00Z", ["2104-02-29T00:00Z"]),
        ("0 0 * 2 MON#5", "2026-01-01T00:00Z", ["2044-02-29T00:00Z"]),
        ("0 0 * JAN,jul mon", "2025-01-20T00:00Z", ["2025-01-27T00:00Z", "2025-07-07T00:00Z"]),
        ("0 0 LW * *", "2025-05-01T00:00Z", ["2025-05-30T00:00Z", "2025-06-30T00:00Z"]),
        ("0 0 * * 5L", "2025-01-01T00:00Z", ["2025-01-31T00:00Z", "2025-02-28T00:00Z"]),
        ("0 0 1,L * *", "2025-01-31T00:00Z", ["2025-02-01T00:00Z", "2025-02-28T00:00Z"]),
        (
            "5/20 4 * * *",
            "2025-01-01T00:00Z",
            ["2025-01-01T04:05Z", "2025-01-01T04:25Z", "2025-01-01T04:45Z"],
        ),
        (
            "10-30/10 4 * * *",
            "2025-01-01T04:10Z",
            ["2025-01-01T04:20Z", "2025-01-01T04:30Z", "2025-01-02T04:10Z"],
        ),
        ("5-5/10 * * * *", "2025-01-01T00:00Z", ["2025-01-01T00:05Z", "2025-01-01T01:05Z"]),
        ("0 0 * * */7", "2025-01-01T00:00Z", ["2025-01-05T00:00Z", "2025-01-12T00:00Z"]),
        ("0 0 31 12 *", "2025-12-31T00:00Z", ["2026-12-31T00:00Z"]),
        ("59 23 31 12 *", "2025-12-31T23:58:59.999999Z", ["2025-12-31T23:59Z", "2026-12-31T23:59Z"]),
        ("@HOURLY", "2025-12-31T23:00Z", ["2026-01-01T00:00Z"]),
        ("@midnight", "2025-12-31T23:00Z", ["2026-01-01T00:00Z"]),
        ("@weekly", "2025-01-01T00:00Z", ["2025-01-05T00:00Z"]),
        ("@monthly", "2025-01-01T00:00Z", ["2025-02-01T00:00Z"]),
        ("@yearly", "2025-01-01T00:00Z", ["2026-01-01T00:00Z"]),
        ("@annually", "2025-01-01T00:00Z", ["2026-01-01T00:00Z"]),
        ("  0\t3  * * *\n", "2025-01-01T00:00Z", ["2025-01-01T03:00Z"]),
    ],
)
def test_fields(expr: str, after: str, expected: list[str]) -> None:
    assert cron.parse(expr, "UTC").next_times(at(after), len(expected)) == [at(text) for text in expected]


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        ("60 * * * *", "minute field has '60'"),
        ("* 24 * * *", "hour field has '24'; allowed are 0-23"),
        ("* * 0 * *", "day of the month field has '0'"),
        ("* * 32 * *", "allowed are 1-31"),
        ("* * * 13 *", "month field has '13'; allowed are 1-12 or JAN-DEC"),
        ("* * * * 8", "day of the week field has '8'"),
        ("* * * FOO *", "month field has 'FOO'"),
        ("* 22-2 * * *", "such as 22-23,0-2"),
        ("* * * * SAT-SUN", "day of the week field has 'SAT-SUN'"),
        ("*/0 * * * *", "step 0; allowed are 1 to 60"),
        ("*/61 * * * *", "step 61"),
        ("0 */25 * * *", "hour field has the step 25"),
        ("-5 * * * *", "minute field"),
        ("5- * * * *", "minute field"),
        ("1,,2 * * * *", "minute field has ''"),
        ("*/2/3 * * * *", "minute field"),
        ("1.5 * * * *", "minute field"),
        ("0 0 L/2 * *", "day of the month field"),
        ("0 0 15W * *", "day of the month field"),
        ("0 0 ? * *", "day of the month field has '?'"),
        ("0 0 * * 1#6", "day of the week field"),
        ("0 0 * * mon#0", "day of the week field"),
        ("0 0 * * 1-3#2", "day of the week field"),
        ("0 0 * * L", "day of the week field"),
        ("0 0 * * 8L", "day of the week field"),
        ("mon * * * *", "minute field"),
        ("@reboot", "no schedule '@reboot'"),
        ("@every 5m", "no schedule"),
        ("", "empty"),
        ("  \n", "empty"),
        ("0 3 * * * 2026", "exactly five"),
        ("0 3\n* * *", "'\\n'"),
        ("0 3 * *\u00a0*", "'\\xa0'"),
        ("0 3 * *\x1c*", "'\\x1c'"),
        ("0 3 * * \uff11", "ASCII"),
        ("0 3 * * *\x00", "'\\x00'"),
        ("9" * 199 + " * * * *", "characters"),
        ("9" * 150 + " * * * *", "minute field"),
        ("0 3 30 2 *", "never fires"),
        ("0 3 31 4,6,9,11 *", "never fires"),
        ("0 0 */10 2 MON#5", "never fires"),
        ("0 0 */30 * MON#2", "never fires"),
    ],
)
def test_refusals_name_the_field(expr: str, said: str) -> None:
    error = refusal(expr)
    assert [problem.field for problem in error.problems] == ["schedule"]
    assert said in error.problems[0].message


def test_every_wrong_field_is_told_at_once() -> None:
    error = refusal("60 24 0 13 9", "Europe/Berln")
    assert [problem.field for problem in error.problems] == ["schedule"] * 5 + ["timezone"]
    assert "Europe/Berlin?" in error.problems[-1].message


@pytest.mark.parametrize(
    "timezone",
    ["", "Europe", "../UTC", "/etc/localtime", "europe/berlin", "right/UTC", "posix/UTC", "localtime", "Factory",
     "a\x00b", "Zürich", "UTC ", "+08:00", "x" * 5000],
)  # fmt: skip
def test_unknown_timezones(timezone: str) -> None:
    assert [problem.field for problem in refusal("0 3 * * *", timezone).problems] == ["timezone"]


def test_what_never_fires_is_found_quickly() -> None:
    began = time.thread_time()
    refusal("* * */30 * MON#2,TUE#2,WED#2,THU#2,FRI#2")
    assert time.thread_time() - began < 5


# --- after ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2025-01-01T02:59:59.999999Z", "2025-01-01T03:00Z"),
        ("2025-01-01T03:00:00Z", "2025-01-02T03:00Z"),
        ("2025-01-01T03:00:00.000001Z", "2025-01-02T03:00Z"),
        ("2025-01-01T03:00:30Z", "2025-01-02T03:00Z"),
        ("2025-01-01T10:59:59+08:00", "2025-01-01T03:00Z"),
    ],
)
def test_after_is_exclusive(after: str, expected: str) -> None:
    found = cron.parse("0 3 * * *", "UTC").next_after(datetime.fromisoformat(after))
    assert found == at(expected)
    assert found.tzinfo is UTC


def test_a_naive_after_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="aware"):
        cron.parse("0 3 * * *", "UTC").next_after(datetime(2025, 1, 1))


@pytest.mark.parametrize("expr", ["0 3 * * *", "*/5 * * * *", "0 0 29 2 *", "* * 29 2 *"])
@pytest.mark.parametrize("timezone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_the_end_of_the_calendar(expr: str, timezone: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        cron.parse(expr, timezone).next_times(datetime(9999, 12, 31, 12, tzinfo=UTC), 1000)
    assert caught.value.problems[0].field == "after"


def test_the_beginning_of_the_calendar() -> None:
    with pytest.raises(InvalidInputError):
        cron.parse("0 3 * * *", "America/New_York").next_after(datetime(1, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("count", [-1, 1001, 10**9])
def test_a_count_out_of_bounds(count: int) -> None:
    with pytest.raises(InvalidInputError) as caught:
        cron.parse("* * * * *", "UTC").next_times(at("2025-01-01T00:00Z"), count)
    assert caught.value.problems[0].field == "count"


def test_no_times() -> None:
    assert cron.parse("* * * * *", "UTC").next_times(at("2025-01-01T00:00Z"), 0) == []


# --- clock changes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "timezone", "after", "expected"),
    [
        # Lord Howe goes back by half an hour, 02:00 to 01:30, at 15:00 UTC.
        ("45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00Z",
         ["2026-04-04T14:45Z", "2026-04-04T15:15Z", "2026-04-04T16:15Z"]),
        ("0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T13:30Z", ["2026-04-04T15:30Z", "2026-04-04T17:30Z"]),
        ("* 2 * * *", "Australia/Lord_Howe", "2026-04-04T13:30Z", ["2026-04-04T15:30Z", "2026-04-04T15:31Z"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", ["2026-04-04T14:45Z", "2026-04-05T15:15Z"]),
        # ... and forward, 02:00 to 02:30, at 15:30 UTC.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", ["2026-10-03T15:30Z", "2026-10-04T15:15Z"]),
        ("* */4 * * *", "Australia/Lord_Howe", "2026-10-03T14:59Z", ["2026-10-03T17:00Z", "2026-10-03T17:01Z"]),
        # Cairo skips midnight: 2026-04-24 00:00 does not exist.
        ("0 0 * * *", "Africa/Cairo", "2026-04-22T21:59Z", ["2026-04-22T22:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"]),
        ("*/30 0 * * *", "Africa/Cairo", "2026-04-23T12:00Z", ["2026-04-24T21:00Z", "2026-04-24T21:30Z"]),
        ("@daily", "Africa/Cairo", "2026-10-29T12:00Z", ["2026-10-29T22:00Z", "2026-10-30T22:00Z"]),
        # Apia had no 30 December 2011.
        ("0 3 * * *", "Pacific/Apia", "2011-12-29T12:00Z",
         ["2011-12-29T13:00Z", "2011-12-30T10:00Z", "2011-12-30T13:00Z"]),
        ("0 0 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", ["2011-12-30T10:00Z", "2012-12-29T10:00Z"]),
        ("0 * 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", ["2012-12-29T10:00Z"]),
        # Two times in one gap run once, and not again with a third right after it.
        ("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00Z", ["2026-03-29T01:00Z", "2026-03-29T01:30Z"]),
        # From within the second showing of a repeated hour.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", ["2026-10-26T01:30Z"]),
        ("30 * * * *", "Europe/Berlin", "2026-10-25T01:10Z", ["2026-10-25T01:30Z"]),
        ("0,30 3 * * *", "Antarctica/Troll", "2026-03-29T00:00Z", ["2026-03-29T01:00Z", "2026-03-29T01:30Z"]),
        ("0 3 * * *", "Antarctica/Casey", "2020-03-06T00:00Z", ["2020-03-06T16:00Z", "2020-03-07T19:00Z"]),
    ],
)  # fmt: skip
def test_clock_changes(expr: str, timezone: str, after: str, expected: list[str]) -> None:
    found = cron.parse(expr, timezone).next_times(at(after), len(expected))
    assert found == [at(text) for text in expected]


ZONES_AND_CHANGES = [
    ("UTC", "2026-01-01T00:00Z"),
    ("Asia/Shanghai", "1991-04-13T18:00Z"),
    ("Asia/Shanghai", "1991-09-14T17:00Z"),
    ("Europe/Berlin", "2026-03-29T01:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00Z"),
    ("America/New_York", "2026-11-01T06:00Z"),
    ("America/Santiago", "2026-09-06T04:00Z"),
    ("America/Havana", "2026-11-01T05:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30Z"),
    ("Africa/Cairo", "2026-04-23T22:00Z"),
    ("Africa/Cairo", "2026-10-29T21:00Z"),
    ("Africa/Casablanca", "2026-02-15T02:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00Z"),
    ("Pacific/Kwajalein", "1993-08-21T12:00Z"),
    ("Antarctica/Troll", "2026-10-25T01:00Z"),
    ("Antarctica/Casey", "2020-03-07T16:00Z"),
    ("America/Caracas", "2016-05-01T07:00Z"),
    ("Asia/Kathmandu", "1985-12-31T18:30Z"),
]

Matched = tuple[str, frozenset[int]]


def _plain_field(low: int, high: int) -> st.SearchStrategy[Matched]:
    """A field that does not start with a star, and the values that it matches by its definition."""
    number = st.integers(low, high)
    lists = st.lists(number, min_size=1, max_size=3).map(
        lambda values: (",".join(map(str, values)), frozenset(values))
    )

    def spread(drawn: tuple[int, int, int]) -> Matched:
        first, last, step = min(drawn[:2]), max(drawn[:2]), drawn[2]
        return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))

    ranges = st.tuples(number, number, st.integers(1, 7)).map(spread)
    return lists | ranges


def _starred_field(low: int, high: int) -> st.SearchStrategy[Matched]:
    steps = st.integers(1, 7).map(lambda step: (f"*/{step}", frozenset(range(low, high + 1, step))))
    return st.just(("*", frozenset(range(low, high + 1)))) | steps


def _reference(
    minutes: Matched, hours: Matched, weekdays: Matched, zone: ZoneInfo, after: datetime, end: datetime
) -> Iterator[datetime]:
    """The ticks in (after, end], found by looking at the wall clock once a minute."""

    def matches(wall: datetime) -> bool:
        return wall.minute in minutes[1] and wall.hour in hours[1] and wall.isoweekday() % 7 in weekdays[1]

    follows_the_clock = minutes[0].startswith("*") or hours[0].startswith("*")
    moment = after.replace(second=0, microsecond=0) - timedelta(days=2)
    furthest = (moment - MINUTE).astimezone(zone).replace(tzinfo=None)
    while moment <= end:
        wall = moment.astimezone(zone).replace(tzinfo=None)
        if follows_the_clock:
            ticks = matches(wall)
        else:  # times reached for the first time, those jumped over included
            new = int((wall - furthest) / MINUTE)
            ticks = any(matches(wall - back * MINUTE) for back in range(max(new, 0)))
        if ticks and moment > after:
            yield moment
        furthest = max(furthest, wall)
        moment += MINUTE


@settings(max_examples=150, deadline=None)
@given(
    place=st.sampled_from(ZONES_AND_CHANGES),
    before=st.integers(-4 * 3600, 30 * 3600),
    minutes=_plain_field(0, 59) | _starred_field(0, 59),
    hours=_plain_field(0, 23) | _starred_field(0, 23) | _plain_field(0, 3),
    weekdays=st.just(("*", frozenset(range(7)))) | _plain_field(0, 6),
)
@example(
    place=("Australia/Lord_Howe", "2026-04-04T15:00Z"),
    before=3600,
    minutes=("45", frozenset({45})),
    hours=("*", frozenset(range(24))),
    weekdays=("*", frozenset(range(7))),
)
def test_every_tick_is_the_one_that_a_look_at_the_clock_finds(
    place: tuple[str, str], before: int, minutes: Matched, hours: Matched, weekdays: Matched
) -> None:
    timezone, change = place
    after = at(change) - timedelta(seconds=before)
    end = after + timedelta(days=2)
    expected = list(_reference(minutes, hours, weekdays, ZoneInfo(timezone), after, end))
    schedule = cron.parse(f"{minutes[0]} {hours[0]} * * {weekdays[0]}", timezone)

    found = []
    moment = schedule.next_after(after)
    while moment <= end:
        found.append(moment)
        moment = schedule.next_after(moment)

    assert found == expected


@settings(max_examples=100, deadline=None)
@given(
    place=st.sampled_from(ZONES_AND_CHANGES),
    after=st.datetimes(datetime(1975, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),
    expr=st.sampled_from(
        ["*/7 */5 * * *", "30 2 * * *", "0 0 L * 1", "59 23 29 2 *", "* * 29 2 *", "0 4 * * 7#5"]
    ),
)
def test_ticks_ascend_and_nothing_lies_between(place: tuple[str, str], after: datetime, expr: str) -> None:
    schedule = cron.parse(expr, place[0])
    times = schedule.next_times(after, 4)
    assert all(earlier < later for earlier, later in pairwise([after, *times]))
    assert schedule.next_after(times[1] - timedelta(microseconds=1)) == times[1]
    assert schedule.next_after(times[0] + (times[1] - times[0]) / 2) == times[1]


def test_a_leap_day_is_found_quickly_across_many_years() -> None:
    began = time.thread_time()
    found = cron.parse("*/5 * 29 2 *", "Europe/Berlin").next_after(at("2096-03-01T00:00Z"))
    assert found == at("2104-02-28T23:00Z")
    assert time.thread_time() - began < 2


# --- words and notes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("0 3 * * *", "At 03:00, every day"),
        ("@daily", "At 00:00, every day"),
        ("30 14 * * 7", "At 14:30, only on Sunday"),
        ("0 0 13 * 5", "At 00:00, on day 13 of the month, or on Friday"),
        ("0 9 * * 1#2", "At 09:00, on the second Monday of the month"),
        ("0 0 l * *", "At 00:00, on the last day of the month"),
        ("0 0 29 feb *", "At 00:00, on day 29 of the month, only in February"),
        ("0 0 */2 * 1", "At 00:00 on every second day of month if it's on Monday"),
        ("0 0 * * 1#2,5#1", "At 00:00 on the second Monday of the month and the first Friday of the month"),
        ("0 0 1,L * *", "At 00:00 on the first and the last day of month"),
    ],
)
def test_words(expr: str, words: str) -> None:
    assert cron.parse(expr, "UTC").words() == words


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("0 3 * * *", "每天 03:00"),
        ("0 3,15 * * 1-5", "周一到周五 03:00 和 15:00"),
        ("30 14 * * 7", "每周日 14:30"),
        ("0 9 * * 1#2", "每月的第二个周一 09:00"),
        ("0 0 LW * *", "每月的最后一个工作日 00:00"),
        ("0 0 1 */2 *", "00:00，每月的 1 号，每 2 个月"),
        ("0 0 29 feb *", "00:00，每月的 29 号，仅在 2 月"),
        ("*/15 8-18 * * 1-5", "每 15 分钟，在 08:00 和 18:59 之间，周一到周五"),
        ("0 0 1,L * *", "0 0 1,L * *"),
    ],
)
def test_words_in_chinese(expr: str, words: str) -> None:
    assert cron.parse(expr, "UTC").words("zh") == words


def test_words_do_not_depend_on_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert cron.parse("0 3 * * *", "UTC").words() == "At 03:00, every day"


FIELD_TEXTS = (
    ["*", "*/5", "0", "1,2", "5/10", "1-5", "1-9/2", "0,*/7", "*,5", "3-3/2"],
    ["*", "*/2", "0", "1,2", "22-23", "1-1/2", "0,*"],
    ["*", "*/2", "1", "L", "LW", "1,L", "1-7", "2/5", "1,*/2"],
    ["*", "*/3", "JAN", "1-3,DEC", "1/2", "feb-apr"],
    ["*", "*/2", "0", "7", "MON", "1-5", "MON#2,fri#1", "5L", "5L,1", "sun-sat/2", "1/2", "*,1"],
)


@settings(max_examples=300, deadline=None)
@given(fields=st.tuples(*(st.sampled_from(texts) for texts in FIELD_TEXTS)))
def test_whatever_is_accepted_has_words(fields: tuple[str, ...]) -> None:
    words = cron.parse(" ".join(fields), "UTC").words()
    assert words[0].isupper()
    assert "*" not in words
    assert "#" not in words


@pytest.mark.parametrize(
    ("expr", "timezone", "notes"),
    [
        ("30 2 * * *", "Europe/Berlin", [
            "2026-03-29: the clock of Europe/Berlin goes from 02:00 to 03:00; 02:30 does not exist and runs at 03:00 instead.",
            "2026-10-25: the clock of Europe/Berlin goes from 03:00 to 02:00; 02:30 comes twice and runs once, the first time.",
        ]),
        ("*/30 * * * *", "Europe/Berlin", [
            "2026-03-29: the clock of Europe/Berlin goes from 02:00 to 03:00; 02:00, 02:30 do not exist and are left out.",
            "2026-10-25: the clock of Europe/Berlin goes from 03:00 to 02:00; 02:00, 02:30 come twice and run both times.",
        ]),
        ("0 0 * * *", "Africa/Cairo", [
            "2026-04-24: the clock of Africa/Cairo goes from 00:00 to 01:00; 00:00 does not exist and runs at 01:00 instead.",
        ]),
        ("45 1 * * *", "Australia/Lord_Howe", [
            "2026-04-05: the clock of Australia/Lord_Howe goes from 02:00 to 01:30; 01:45 comes twice and runs once, the first time.",
        ]),
        ("0 12 * * *", "Europe/Berlin", []),
        ("30 2 * * 1", "Europe/Berlin", []),
        ("30 2 * * *", "Asia/Shanghai", []),
        ("* * * * *", "UTC", []),
    ],
)  # fmt: skip
def test_notes_on_clock_changes(expr: str, timezone: str, notes: list[str]) -> None:
    assert cron.parse(expr, timezone).dst_notes(at("2026-01-01T00:00Z"), 365) == notes


def test_notes_on_a_day_that_never_was() -> None:
    (note,) = cron.parse("0 */6 * * *", "Pacific/Apia").dst_notes(at("2011-12-20T00:00Z"), 30)
    assert "from 00:00 to 00:00 of 2011-12-31" in note
    assert "2011-12-30 00:00, 2011-12-30 06:00" in note


def test_notes_on_many_times_are_short() -> None:
    (note,) = cron.parse("* * * * *", "Europe/Berlin").dst_notes(at("2026-03-01T00:00Z"), 60)
    assert "02:00, 02:01, 02:02 … 02:59 (60 times) do not exist" in note


# --- how often ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expr",
    [
        "0 3 * * *",
        "*/20 3-6 * * MON-FRI",
        "7,9 0 * * SUN",
        "0 0 1 * *",
        "0 4 L * *",
        "0 0 1,15 * 3",
        "0 9 29 2 *",
    ],
)
def test_ticks_a_day_are_those_of_four_weeks(expr: str) -> None:
    schedule = cron.parse(expr, "Asia/Shanghai")  # no clock changes there
    midnight = at("2026-11-30T00:00+08:00")
    in_four_weeks = sum(
        tick < midnight + timedelta(days=28)
        for tick in schedule.next_times(midnight - timedelta(seconds=1), 250)
    )
    assert schedule.ticks_a_day(midnight + timedelta(hours=9)) == in_four_weeks / 28
