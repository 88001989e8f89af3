"""Allowed hours: over midnight, and over the days on which clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.politeness.hours import hours_of, parse_hours

BERLIN = "Europe/Berlin"


def local(text: str, zone: str = BERLIN, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("20:00-06:00", "20:00-06:00"), (" 8:05 - 9:00 ", "08:05-09:00"), ("18:00–24:00", "18:00-24:00")],
)
def test_forms(text: str, shown: str) -> None:
    assert str(parse_hours(text, "UTC")) == shown


@pytest.mark.parametrize(
    "text",
    ["", "20:00", "20-6", "25:00-06:00", "20:00-24:01", "20:60-06:00", "08:00-08:00", "00:00-24:00",
     "24:00-06:00", "20:00-06:00-", "20:00+06:00", "aa:00-06:00"],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write \"20:00-06:00\"|no day has|same time"):
        parse_hours(text, "UTC")


def test_over_midnight() -> None:
    hours = parse_hours("20:00-06:00", "Asia/Shanghai")

    def at(text: str) -> datetime:
        return local(text, "Asia/Shanghai")

    assert [hours.is_open(at(f"2026-11-29T{time}")) for time in ("19:59:59", "20:00", "00:00", "05:59:59", "06:00")] == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert hours.next_opening(at("2026-11-29T12:00")) == at("2026-11-29T20:00")
    assert hours.next_opening(at("2026-11-29T21:00")) == at("2026-11-29T21:00")
    assert hours.next_closing(at("2026-11-29T21:00")) == at("2026-11-30T06:00")
    assert hours.next_closing(at("2026-11-29T12:00")) == at("2026-11-29T12:00")


def test_to_the_end_of_the_day() -> None:
    hours = parse_hours("18:00-24:00", BERLIN)

    assert hours.next_closing(local("2026-11-29T23:59")) == local("2026-11-30T00:00")
    assert hours.next_opening(local("2026-11-30T00:00")) == local("2026-11-30T18:00")


def test_an_opening_that_the_clocks_skip_in_spring() -> None:
    """On 2026-03-29 the clocks of Berlin go from 02:00 to 03:00."""
    hours = parse_hours("02:30-04:00", BERLIN)

    opens = hours.next_opening(local("2026-03-29T01:00"))

    assert opens == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)  # 03:00, the first moment that lies in the hours
    assert hours.next_closing(opens) - opens == timedelta(hours=1)


def test_hours_that_the_clocks_skip_altogether() -> None:
    hours = parse_hours("02:10-02:50", BERLIN)

    assert hours.next_opening(local("2026-03-28T12:00")) == local("2026-03-30T02:10")


def test_hours_that_come_twice_in_autumn() -> None:
    """On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00."""
    hours = parse_hours("02:15-02:45", BERLIN)

    first = hours.next_opening(local("2026-10-25T00:00"))
    again = hours.next_opening(hours.next_closing(first))

    assert first == datetime(2026, 10, 25, 0, 15, tzinfo=UTC)
    assert again == datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    assert hours.next_opening(hours.next_closing(again)) == local("2026-10-26T02:15")


def test_a_closing_at_the_moment_at_which_the_clocks_go_back() -> None:
    """From 02:30 on open until 03:00, then it is 02:00 again, and closed."""
    hours = parse_hours("02:30-05:00", BERLIN)

    assert hours.next_closing(local("2026-10-25T02:40")) == datetime(2026, 10, 25, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize("zone", [BERLIN, "Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu"])
@given(
    opens=st.integers(0, 1439),
    length=st.integers(1, 1439),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 28)),
)
def test_every_minute_agrees(zone: str, opens: int, length: int, start: datetime) -> None:
    closes = (opens + length) % 1440
    hours = parse_hours(f"{opens // 60}:{opens % 60:02}-{closes // 60}:{closes % 60:02}", zone)
    at = start.replace(tzinfo=UTC)

    opening = hours.next_opening(at)
    closing = hours.next_closing(opening)

    assert at <= opening < closing
    assert hours.is_open(opening)
    assert not hours.is_open(closing)
    assert hours.is_open(closing - timedelta(microseconds=1))
    assert opening == at or not hours.is_open(opening - timedelta(microseconds=1))
    for minute in range(0, int((opening - at).total_seconds() // 60), 7):
        assert not hours.is_open(at + timedelta(minutes=minute))
    for minute in range(0, int((closing - opening).total_seconds() // 60), 7):
        assert hours.is_open(opening + timedelta(minutes=minute))


def test_stored_hours() -> None:
    assert hours_of(None, "UTC") is None
    for wrong in (hours_of("nonsense", "UTC"), hours_of("20:00-06:00", "Nowhere/At_all")):
        assert wrong is not None
        at = datetime(2026, 3, 1, 21, 0, tzinfo=UTC)
        assert not wrong.is_open(at)
        assert wrong.next_opening(at) > at
    assert str(hours_of("20:00-06:00", "UTC")) == "20:00-06:00"
