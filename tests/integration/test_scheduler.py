"""Ticks: each makes exactly one job or says why not, whatever runs, was missed, or overlaps (DESIGN P7, section 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, select, update
from sqlalchemy.orm import Session

from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from webqueue import clock, config, jobs, processes, scheduler
from webqueue.config.ticks import fires_at, restart_ticks
from webqueue.database import Database
from webqueue.models import Job, Process, Site, Target
from webqueue.scheduler import Scheduler, mend_schedules, tick_all, tick_target

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture
def now() -> Iterator[Clock]:
    moving = Clock(NOON)
    with clock.replaced(moving):
        yield moving


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    world = World(database)
    world.add_site()
    return world


def add_target(world: World, code: str = "news", schedule: str = "0 * * * *", **more: Any) -> str:
    """A target whose schedule counts from now."""
    world.add_target(code, schedule=schedule, **more)
    restart(world, code)
    return code


def restart(world: World, code: str, **changes: Any) -> None:
    """Edit a target as the configuration does."""

    def edit(session: Session) -> None:
        target = session.get_one(Target, code)
        for name, value in changes.items():
            setattr(target, name, value)
        restart_ticks(target, session.get_one(Site, target.site_code), clock.now(session))

    world.database.run(edit)


def edit(world: World, **changes: Any) -> None:
    """Give the target "news" other values, as its form does."""

    def put(session: Session) -> None:
        data = config.target_data(session.get_one(Target, "news")) | changes
        config.put_target(session, "news", data, by="anna", now=clock.now(session))

    world.database.run(put)


@contextmanager
def noted(database: Database) -> Iterator[list[str]]:
    """The statements of the block; BEGIN of a reading transaction is none."""
    statements: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement != "BEGIN":
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def ticks(world: World, code: str = "news") -> list[tuple[datetime | None, str]]:
    """Tick and status of the target's jobs, by tick."""
    with world.database.reading() as session:
        rows = session.execute(
            select(Job.tick, Job.status)
            .where(Job.target_code == code, Job.tick.is_not(None))
            .order_by(Job.tick)
        )
        return [(row.tick, row.status) for row in rows]


def at(hour: int, minute: int = 0, day: int = 29) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_a_tick_makes_one_job_with_its_nominal_time(world: World, now: Clock) -> None:
    add_target(world)
    assert tick_all(world.database) == 0
    now.advance(3600 + 7)
    assert tick_all(world.database) == 1
    assert tick_all(world.database) == 0
    (job,) = world.jobs()
    assert (job.tick, job.source, job.status, job.due_at) == (at(13), "schedule", "queued", now())
    assert world.target("news").next_tick_at == at(14)


def test_any_number_of_schedulers_make_one_job_a_tick(
    world: World, now: Clock, open_database: Callable[[], Database]
) -> None:
    codes = [add_target(world, f"t{number}", overlap="allow") for number in range(6)]
    databases = [world.database, open_database(), open_database()]
    for _ in range(4):
        now.advance(3600)
        start = threading.Barrier(len(databases) * 2)
        errors: list[BaseException] = []

        def run(
            database: Database, start: threading.Barrier = start, errors: list[BaseException] = errors
        ) -> None:
            try:
                start.wait(20)
                tick_all(database)
            except BaseException as error:  # noqa: BLE001 - told by the test's own thread
                errors.append(error)

        threads = [threading.Thread(target=run, args=(database,)) for database in databases * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
    for code in codes:
        assert ticks(world, code) == [(at(hour), "queued") for hour in (13, 14, 15, 16)]


@pytest.mark.parametrize(
    ("overlap", "with_running", "with_queued"),
    [("skip", "skipped", "skipped"), ("queue_one", "queued", "skipped"), ("allow", "queued", "queued")],
)
def test_overlap_is_judged_by_the_jobs_status(
    world: World, now: Clock, overlap: str, with_running: str, with_queued: str
) -> None:
    add_target(world, overlap=overlap)
    running = world.submit("news")
    world.claim_one()
    now.advance(3600)
    tick_all(world.database)
    assert ticks(world)[-1] == (at(13), with_running)
    if with_running == "skipped":
        reason = world.jobs()[-1].error_msg
        assert reason == f"overlap: job #{running.seq} was still running, and its target says {overlap}"
        world.database.run(
            lambda session: jobs.submit(session, "news", source="manual", by="anna", from_page=2)
        )
    now.advance(3600)
    tick_all(world.database)
    assert ticks(world)[-1] == (at(14), with_queued)


def test_a_trial_overlaps_nothing(world: World, now: Clock) -> None:
    add_target(world, overlap="skip")
    world.submit("news", source="try")
    now.advance(3600)
    tick_all(world.database)
    assert ticks(world)[-1] == (at(13), "queued")


@pytest.mark.parametrize(
    ("catch_up", "statuses"),
    [
        ("none", ["skipped", "skipped", "skipped"]),
        ("one", ["skipped", "skipped", "queued"]),
        ("all", ["skipped", "queued", "queued"]),
    ],
)
def test_missed_ticks_are_caught_up_as_the_target_says(
    world: World, now: Clock, catch_up: str, statuses: list[str]
) -> None:
    add_target(world, catch_up=catch_up, catch_up_limit=2, overlap="allow")
    now.advance(3 * 3600 + 1800)
    tick_all(world.database)
    assert ticks(world) == list(zip([at(13), at(14), at(15)], statuses, strict=True))
    reasons = {job.error_msg for job in world.jobs() if job.status == "skipped"}
    assert reasons == {f"missed: no scheduler ran at its time (catch_up: {catch_up})"}
    assert world.target("news").next_tick_at == at(16)


def test_missed_ticks_are_coalesced_into_one_on_time(world: World, now: Clock) -> None:
    add_target(world, catch_up="one", overlap="allow")
    now.advance(2 * 3600 + 5)
    tick_all(world.database)
    assert ticks(world) == [(at(13), "skipped"), (at(14), "queued")]


def test_a_tick_that_is_a_little_late_was_not_missed(world: World, now: Clock) -> None:
    add_target(world, catch_up="none")
    now.advance(3600 + 59)
    tick_all(world.database)
    assert ticks(world) == [(at(13), "queued")]


def test_a_long_absence_leaves_a_row_for_each_tick_and_one_job(world: World, now: Clock) -> None:
    add_target(world, schedule="*/5 * * * *", catch_up="one")
    now.advance(86_400 + 150)
    while tick_all(world.database):
        pass
    rows = ticks(world)
    assert len(rows) == 288
    assert [status for _, status in rows[:-1]] == ["skipped"] * (len(rows) - 1)
    assert rows[-1][1] == "queued"


def test_jitter_delays_the_job_and_not_its_tick(world: World, now: Clock) -> None:
    add_target(world, jitter_sec=600)
    fires = world.target("news").fires_at
    assert fires is not None
    delay = fires - at(13)
    assert timedelta(0) < delay < timedelta(seconds=600)
    now.now = at(13) + delay - timedelta(seconds=1)
    assert tick_all(world.database) == 0
    assert ticks(world) == []
    now.advance(2)
    assert tick_all(world.database) == 1
    assert ticks(world) == [(at(13), "queued")]
    assert fires_at(world.target("news"), at(13)) == fires, "every scheduler waits as long"
    assert fires_at(world.target("news"), at(14)) != at(14) + delay


@pytest.fixture
def waiting(world: World, now: Clock) -> list[str]:
    """More targets than a round looks at, each with a day of jitter before its job."""
    codes = [f"waiting{number}" for number in range(600)]
    with world.database.transaction() as session:
        site = session.get_one(Site, "example")
        for code in codes:
            target = Target(
                code=code, site_code="example", handler="python", interval_sec=0.0, jitter_sec=86_400,
                schedule="0 13 * * *", enabled=True, created_at=now(), changed_at=now(),
            )  # fmt: skip
            restart_ticks(target, site, now())
            session.add(target)
    return codes


@pytest.mark.usefixtures("waiting")
def test_ticks_that_wait_for_their_jitter_hold_up_no_other(world: World, now: Clock) -> None:
    add_target(world, schedule="5 13 * * *", catch_up="none")
    now.now = at(13)
    tick_all(world.database)
    now.now = at(13, 5)
    tick_all(world.database)
    assert ticks(world) == [(at(13, 5), "queued")]


@pytest.mark.usefixtures("waiting")
def test_a_tick_that_waits_for_its_jitter_costs_nothing(world: World, now: Clock) -> None:
    now.now = at(13)
    tick_all(world.database)
    with noted(world.database) as statements:
        tick_all(world.database)
    assert len(statements) == 1, "the look for what is due"


def test_ticks_that_waited_for_the_one_before_were_not_missed(world: World, now: Clock) -> None:
    """A jitter longer than the time between two ticks."""
    add_target(world, schedule="*/10 * * * *", jitter_sec=7200, overlap="allow", catch_up="none")
    for _ in range(6 * 60):
        now.advance(60)
        tick_all(world.database)
    made = ticks(world)
    assert len(made) > 20
    assert {status for _, status in made} == {"queued"}


def test_an_edited_jitter_holds_for_the_next_tick(world: World, now: Clock) -> None:
    add_target(world, jitter_sec=86_400, catch_up="none", params={"function": "os.path:join"})
    delay = fires_at(world.target("news"), at(13)) - at(13)
    assert delay > timedelta(hours=1)
    now.now = at(13, 30)
    tick_all(world.database)
    assert ticks(world) == []
    edit(world, jitter_sec=0)
    assert world.target("news").next_tick_at == at(13)
    tick_all(world.database)
    assert ticks(world) == [(at(13), "queued")], "it waited as it was told to, nobody missed it"
    edit(world, jitter_sec=86_400)
    assert world.target("news").next_tick_at == at(14)
    assert world.target("news").fires_at == fires_at(world.target("news"), at(14))


def test_a_tick_of_a_version_without_jitter_in_its_rows_waits_for_it(world: World, now: Clock) -> None:
    add_target(world, jitter_sec=86_400)
    fires = world.target("news").fires_at
    with world.database.transaction() as session:
        session.execute(update(Target).values(fires_at=at(13)))  # what the migration writes
    now.now = at(13)
    assert tick_all(world.database) == 0
    assert (world.target("news").next_tick_at, world.target("news").fires_at) == (at(13), fires)
    with world.database.transaction() as session:
        session.execute(update(Target).values(fires_at=None))  # an edit by a process of the version before
    world.database.run(mend_schedules)
    assert (world.target("news").next_tick_at, world.target("news").fires_at) == (at(13), fires)


def test_ticks_begin_and_end_when_the_target_says(world: World, now: Clock) -> None:
    add_target(world, start_at=at(14), end_at=at(15), overlap="allow")
    for _ in range(6):
        now.advance(3600)
        tick_all(world.database)
    assert ticks(world) == [(at(14), "queued"), (at(15), "queued")]
    assert world.target("news").next_tick_at is None


def test_targets_that_are_paused_or_disabled_make_none(world: World, now: Clock) -> None:
    for code in ("paused", "disabled"):
        add_target(world, code)
    with world.database.transaction() as session:
        session.execute(update(Target).where(Target.code == "paused").values(paused_at=now()))
        session.execute(update(Target).where(Target.code == "disabled").values(enabled=False))
    now.advance(3600)
    assert tick_all(world.database) == 0
    assert world.jobs() == []


def test_a_schedule_that_cannot_be_read_shows_its_error_and_the_others_go_on(
    world: World, now: Clock
) -> None:
    add_target(world, "broken")
    add_target(world, "sound")
    with world.database.transaction() as session:
        session.execute(update(Target).where(Target.code == "broken").values(timezone="Mars/Olympus"))
    now.advance(3600)
    tick_all(world.database)
    broken = world.target("broken")
    assert broken.next_tick_at is None
    assert broken.schedule_error is not None
    assert "Mars/Olympus" in broken.schedule_error
    assert ticks(world, "sound") == [(at(13), "queued")]
    assert ticks(world, "broken") == []


def test_a_schedule_that_can_be_read_again_goes_on_from_now(world: World, now: Clock) -> None:
    add_target(world, "broken")
    add_target(world, "still_broken")
    with world.database.transaction() as session:
        session.execute(update(Target).values(timezone="Mars/Olympus"))
    now.advance(3600)
    tick_all(world.database)
    with world.database.transaction() as session:
        # As an update of the timezone data would.
        session.execute(update(Target).where(Target.code == "broken").values(timezone="UTC"))
    now.advance(1800)
    world.database.run(mend_schedules)
    mended = world.target("broken")
    assert (mended.schedule_error, mended.next_tick_at) == (None, at(14))
    assert world.target("still_broken").schedule_error is not None


def test_one_targets_trouble_holds_up_no_other(
    world: World, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_target(world, "first")
    add_target(world, "second")
    real = scheduler.tick_target

    def fails_for_first(session: Session, code: str) -> bool:
        if code == "first":
            raise RuntimeError("trouble")
        return real(session, code)

    monkeypatch.setattr(scheduler, "tick_target", fails_for_first)
    now.advance(3600)
    assert tick_all(world.database) == 1
    assert ticks(world, "second") == [(at(13), "queued")]
    monkeypatch.undo()
    assert tick_all(world.database) == 1, "it is due again in the next round"
    assert ticks(world, "first") == [(at(13), "queued")]


def test_an_edit_between_look_and_tick_wins(world: World, now: Clock) -> None:
    """The schedule is another, but its next tick happens to be the same."""
    add_target(world)
    now.advance(3600)

    def tick_while_edited(session: Session) -> None:
        with world.database.reading() as reading:
            seen = reading.get_one(Target, "news")
        # What the edit does, from another connection, would wait for this transaction on SQLite: the same in its own.
        target = session.get_one(Target, "news")
        target.schedule = "0 9 * * *"
        target.ticks_from = now() + timedelta(seconds=1)
        session.flush()
        session.expunge(target)
        scheduler._advance(session, seen, (at(13), at(13)), scheduler.Tick(at(14), at(14)), None)

    with pytest.raises(scheduler._OvertakenError):
        world.database.run(tick_while_edited)
    assert world.target("news").schedule == "0 * * * *", "the whole transaction was rolled back"


def test_a_crash_in_the_middle_leaves_neither_job_nor_next_tick(world: World, now: Clock) -> None:
    add_target(world)
    now.advance(3600)

    def crash(session: Session) -> None:
        assert tick_target(session, "news")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.database.run(crash)
    assert ticks(world) == []
    assert world.target("news").next_tick_at == at(13)
    tick_all(world.database)
    assert ticks(world) == [(at(13), "queued")]


def test_the_look_for_due_ticks_uses_its_index(world: World, now: Clock) -> None:
    with noted(world.database) as looks:
        tick_all(world.database)
    assert len(looks) == 1, "one statement a second while nothing is due"
    if not world.database.is_sqlite:
        return
    with world.database.reading() as session:
        parameters = [now(), 500, 0][: looks[0].count("?")]
        plan = session.connection().exec_driver_sql(
            "EXPLAIN QUERY PLAN " + looks[0], tuple(str(value) for value in parameters)
        )
        assert "ix_targets_fires" in " ".join(str(row) for row in plan)


@pytest.fixture
def started(world: World) -> Iterator[Scheduler]:
    one = Scheduler(world.database)
    one.start()
    yield one
    one.stop()


def test_a_started_scheduler_ticks_and_tells_that_it_lives(
    world: World, now: Clock, started: Scheduler
) -> None:
    def rows() -> list[tuple[str, str]]:
        with world.database.reading() as session:
            return [(row.id, row.role) for row in session.scalars(select(Process))]

    add_target(world)
    wait_until(lambda: rows() == [(started.id, "scheduler")])
    now.advance(3600)
    wait_until(lambda: ticks(world) == [(at(13), "queued")], timeout=20)
    assert started.problems == []
    started.stop()
    assert rows() == []
    started.stop()


def test_processes_that_were_killed_are_forgotten_after_an_hour(world: World, now: Clock) -> None:
    world.database.run(lambda session: processes.beat(session, "killed", role="scheduler"))
    now.advance(3601)
    one = Scheduler(world.database)

    def ids() -> list[str]:
        with world.database.reading() as session:
            return list(session.scalars(select(Process.id)))

    one.start()
    try:
        wait_until(lambda: ids() == [one.id])
    finally:
        one.stop()


def test_an_edit_takes_effect_in_a_running_scheduler(world: World, now: Clock, started: Scheduler) -> None:
    add_target(world, schedule="0 9 * * *")
    restart(world, "news", schedule="30 12 * * *")
    now.advance(1800)
    wait_until(lambda: ticks(world) == [(at(12, 30), "queued")], timeout=20)


def test_a_scheduler_that_was_never_started_stops(world: World) -> None:
    one = Scheduler(world.database)
    one.stop()
    one.stop()
    assert one.problems == []
    with world.database.reading() as session:
        assert list(session.scalars(select(Process.id))) == []


def test_a_clock_that_was_set_back_holds_no_tick_up(
    world: World, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SILENCE_SEC", 1.5)
    add_target(world)
    one = Scheduler(world.database)
    one.start()
    try:
        began = datetime.now(UTC)
        wait_until(lambda: one._ticker.get_job("mend").next_run_time > began + timedelta(minutes=30))
        # What APScheduler makes of a clock that was set back by an hour: its next round is an hour away.
        for job in one._ticker.get_jobs():
            one._ticker.modify_job(job.id, next_run_time=datetime.now(UTC) + timedelta(hours=1))
        now.advance(3600)
        wait_until(lambda: ticks(world) == [(at(13), "queued")], timeout=20)
    finally:
        one.stop()


def test_a_round_that_fails_is_shown_and_the_next_one_tries_again(
    world: World, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_database: Database) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr(scheduler, "tick_all", fail)
    one = Scheduler(world.database)
    one.start()
    try:
        wait_until(lambda: one.problems == ["the scheduler's last round failed: OSError: the disk is full"])
        monkeypatch.undo()
        add_target(world)
        now.advance(3600)
        wait_until(lambda: ticks(world) == [(at(13), "queued")], timeout=20)
        assert one.problems == []
    finally:
        one.stop()


def test_a_scheduler_may_be_stopped_while_it_starts(world: World) -> None:
    """APScheduler's thread fails when a job that runs once has ended, and is to be removed, during the stop."""
    for _ in range(40):
        ticker = Scheduler(world.database)
        ticker.start()
        ticker.stop()
        assert ticker.problems == []
