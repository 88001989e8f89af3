"""How much of a day a rate key is booked for, who says so, and that it is no page that works it out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.helpers.admin import add_site, add_target, finished_job
from tests.helpers.waiting import wait_until
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.models import Job, JobSource, StoredSetting, Target
from webqueue.queries.bookings import OVERBOOKED, Booking, bookings, overbooked_keys
from webqueue.scheduler import Scheduler, note_overbooked_keys

KEY = "www.example.org"
HOUR = 3600
SIX_TIMES_A_DAY = "0 */4 * * *"


@pytest.fixture
def example(database: Database) -> Database:
    """Two targets of one key that tick six times a day, one of another key."""

    def add(session: Session) -> None:
        add_site(session, "example", f"http://{KEY}/")
        add_site(session, "calm", "http://calm.example.org/")
        add_target(session, "news", "example", schedule=SIX_TIMES_A_DAY)
        add_target(session, "archive", "example", schedule=SIX_TIMES_A_DAY)
        add_target(session, "quiet", "calm", schedule="0 3 * * *")

    database.run(add)
    return database


def ran(database: Database, target: str, *hours: float, status: str = "done") -> None:
    """Runs of the target, the last one first."""

    def add(session: Session) -> None:
        for number, took in enumerate(hours):
            finished_job(session, target, ago=timedelta(days=number), seconds=took * HOUR, status=status)

    database.run(add)


def booked(database: Database, rate_key: str | None = None) -> dict[str, float]:
    """Hours a day of each key."""
    with database.reading() as session:
        found = bookings(session, clock.now(session), rate_key=rate_key)
    return {one.rate_key: round(one.seconds_a_day / HOUR, 2) for one in found}


def kept(database: Database) -> dict[str, int]:
    note_overbooked_keys(database)
    with database.reading() as session:
        return dict(overbooked_keys(session))


def test_a_key_is_booked_for_ticks_times_the_usual_run_of_all_its_targets(example: Database) -> None:
    assert booked(example) == {}, "what never ran is booked for nothing"
    ran(example, "news", 2.5, 9, 2)
    ran(example, "archive", 2)
    ran(example, "quiet", 1)
    assert booked(example) == {KEY: 6 * 2.5 + 6 * 2, "calm.example.org": 1}
    assert booked(example, KEY) == {KEY: 27}
    with example.reading() as session:
        booking: Booking = bookings(session, clock.now(session), rate_key=KEY)[0]
    assert [(one.target, one.ticks_a_day, one.usual_seconds) for one in booking.targets] == [
        ("news", 6, 2.5 * HOUR),
        ("archive", 6, 2 * HOUR),
    ]
    assert booking.is_too_much


def test_runs_that_were_done_tell_how_long_it_takes_else_those_that_were_not(example: Database) -> None:
    ran(example, "archive", 3, status="failed")
    assert booked(example) == {KEY: 18}
    ran(example, "archive", 1)
    assert booked(example) == {KEY: 6}


def test_tries_and_skipped_ticks_tell_nothing(example: Database) -> None:
    ran(example, "news", *[0.01] * 3)
    example.run(lambda s: s.execute(update(Job).values(source=JobSource.TRY)))
    ran(example, "news", 5)

    def skip(session: Session) -> None:
        now = clock.now(session)
        jobs.skip_ticks(session, "news", {now + timedelta(hours=n): "overlap" for n in range(30)})

    example.run(skip)
    assert booked(example) == {KEY: 30}, "the more is skipped, the more it matters"


@pytest.mark.parametrize(
    "values",
    [
        {"enabled": False},
        {"paused_at": True},
        {"start_at": True},
        {"schedule": None},
        {"schedule": "0 3 * *"},
        {"timezone": "Mars/Olympus"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_what_does_not_tick_books_nothing(example: Database, values: dict[str, object]) -> None:
    ran(example, "news", 5)

    def stop(session: Session) -> None:
        soon = clock.now(session) + timedelta(days=1)
        changed = {name: soon if value is True else value for name, value in values.items()}
        session.execute(update(Target).where(Target.code == "news").values(**changed))

    example.run(stop)
    assert booked(example) == {}


def test_the_scheduler_keeps_what_it_found_and_writes_only_what_changed(example: Database) -> None:
    ran(example, "news", 3.9)
    assert kept(example) == {}
    ran(example, "archive", 1)
    ran(example, "quiet", 23)
    assert kept(example) == {KEY: 29}
    stored = select(StoredSetting.changed_at).where(StoredSetting.name == OVERBOOKED)
    with example.reading() as session:
        before = session.scalar(stored)
    assert kept(example) == {KEY: 29}
    with example.reading() as session:
        assert session.scalar(stored) == before
    example.run(lambda s: add_target(s, "news", "example", schedule="0 3 * * *"))
    assert kept(example) == {}


def test_more_than_a_day_is_never_told_as_a_day(example: Database) -> None:
    ran(example, "quiet", 24.1)
    assert kept(example) == {"calm.example.org": 25}


def test_the_fullest_key_comes_first(example: Database) -> None:
    ran(example, "quiet", 26)
    ran(example, "news", 7)
    assert list(kept(example).items()) == [(KEY, 42), ("calm.example.org", 26)]


def test_a_scheduler_that_starts_looks_at_once(example: Database) -> None:
    ran(example, "news", 5)
    scheduler = Scheduler(example)
    scheduler.start()
    try:

        def found() -> bool:
            with example.reading() as session:
                return overbooked_keys(session) == {KEY: 30}

        wait_until(found)
    finally:
        scheduler.stop()
