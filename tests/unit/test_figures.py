"""Gaps and parallelism, from lines of the evidence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from webqueue.politeness.evidence import RequestLine
from webqueue.politeness.figures import KeyFigures, by_key

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def line(at: float, sec: float, *, key: str = "k", status: int | None = 200, job: str = "j") -> RequestLine:
    moment = NOON + timedelta(seconds=at)
    error = None if status else "timeout"
    return RequestLine(moment, key, "h", "GET", "http://h/", status, error, 10, sec * 1000, job, "allowed")


def figures(*days: list[RequestLine]) -> KeyFigures:
    one = KeyFigures()
    for day in days:
        one.add(day)
    return one


def test_a_single_request_has_no_gap() -> None:
    one = figures([line(0, 1)])
    assert (one.requests, one.smallest_gap_sec, one.most_parallel) == (1, None, 1)


def test_the_gap_is_from_the_end_to_the_next_start_in_whatever_order_they_were_written() -> None:
    one = figures([line(13, 1), line(0, 3), line(8, 2)])
    assert (one.smallest_gap_sec, one.most_parallel) == (3.0, 1)
    assert (one.first_at, one.last_at) == (NOON, NOON + timedelta(seconds=14))


def test_requests_at_once_are_seen() -> None:
    one = figures([line(0, 10), line(1, 2), line(2, 3), line(20, 1)])
    assert (one.most_parallel, one.smallest_gap_sec) == (3, 0.0)


def test_the_gap_after_a_long_request_counts_from_its_end() -> None:
    assert figures([line(0, 10), line(1, 1), line(12, 1)]).smallest_gap_sec == 0.0
    assert figures([line(0, 10), line(12, 1)]).smallest_gap_sec == 2.0


def test_over_midnight() -> None:
    assert figures([line(0, 1)], [line(2.5, 1)]).smallest_gap_sec == 1.5


def test_what_is_counted() -> None:
    one = figures([line(0, 1, job="a"), line(5, 1, status=429, job="b"), line(9, 1, status=None, job="b")])
    assert (one.requests, one.bytes, one.jobs) == (3, 30, {"a", "b"})
    assert one.statuses == {"200": 1, "429": 1, "timeout": 1}


def test_two_that_began_in_the_same_microsecond() -> None:
    assert figures([line(0, 1), line(0, 1)]).most_parallel == 2


def test_by_key() -> None:
    lines = [line(0, 1, key="b"), line(1, 1, key="a"), line(2, 1, key="b")]
    assert by_key(lines) == {"a": [lines[1]], "b": [lines[0], lines[2]]}
