from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.politeness.retry_after import parse_retry_after

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "retry_after.jsonl").read_text("utf-8").splitlines()
    if line.strip()
]
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["value"]))
def test_shared_cases(case: dict[str, Any]) -> None:
    assert parse_retry_after(case["value"], datetime.fromisoformat(case["now"])) == case["seconds"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        (" 120\t", 120),
        ("000120", 120),
        ("000", None),
        ("86400", 86400),
        ("86401", 86400),
        ("9" * 10_000, 86400),
        ("+120", None),
        ("1e3", None),
        ("1_000", None),
        ("0x10", None),
        ("١٢٠", None),
        ("１２０", None),
        ("²", None),
        ("120, 60", None),
        ("120\n", None),
        ("NaN", None),
        ("Sunday, 29-Nov-26 12:01:30 GMT", 90),
        ("Sun Nov 29 12:01:30 2026", 90),
        ("Thu Dec  3 12:00:00 2026", 86400),
        ("sun, 29 nov 2026 12:01:30 gmt", 90),
        ("Mon, 29 Nov 2026 12:01:30 GMT", 90),
        ("Tue, 01 Jan 2999 00:00:00 GMT", 86400),
        ("Sunday, 06-Nov-94 08:49:37 GMT", None),
        ("Sun, 29 Nov 2026 12:00:00 GMT", None),
        ("Sun, 29 Nov 2026 12:00:60 GMT", 59),
        ("Sun, 29 Nov 2026 12:01:30", None),
        ("Sun, 29 Nov 2026 12:01:30 +0800", None),
        ("Sun, 29 Nov 2026 25:01:30 GMT", None),
        ("Sun, 31 Feb 2027 12:01:30 GMT", None),
        ("Sun, 29 Foo 2026 12:01:30 GMT", None),
        ("Sun, 29 Nov 0000 12:01:30 GMT", None),
        ("Sun, ٢٩ Nov 2026 12:01:30 GMT", None),
        ("2026-11-29T12:01:30Z", None),
    ],
)
def test_values(value: str | None, seconds: int | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_a_date_is_rounded_up() -> None:
    now = NOW + timedelta(milliseconds=100)
    assert parse_retry_after("Sun, 29 Nov 2026 12:00:01 GMT", now) == 1
    assert parse_retry_after("Sun, 29 Nov 2026 12:00:02 GMT", now) == 2


def test_two_digit_years_across_a_century() -> None:
    assert (
        parse_retry_after("Friday, 01-Jan-00 00:00:05 GMT", datetime(2099, 12, 31, 23, 59, tzinfo=UTC))
        is None
    )
    assert parse_retry_after("Sunday, 29-Nov-76 12:00:05 GMT", NOW) == 86400
    assert parse_retry_after("Sunday, 29-Nov-77 12:00:05 GMT", NOW) is None


@given(value=st.text() | st.text("0123456789:, -GMTSunNov", max_size=40))
def test_garbage_never_raises(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or 1 <= seconds <= 86400


@given(wait=st.integers(1, 86400))
def test_every_form_of_a_date_gives_the_wait(wait: int) -> None:
    until = NOW + timedelta(seconds=wait)
    for form in ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"):
        assert parse_retry_after(until.strftime(form), NOW) == wait
