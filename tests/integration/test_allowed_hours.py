"""Jobs of sites that may be visited at certain hours only (DESIGN section 6, "When")."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import update

from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World, assert_settled
from webqueue import clock, config, jobs, queries
from webqueue.database import Database
from webqueue.handlers.protocol import Context
from webqueue.models import Site
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome, OutOfHours
from webqueue.queries.waiting import Waiting
from webqueue.settings import Settings

# START of the clock is 12:00 UTC, 20:00 in Shanghai.
NIGHT = "22:00-06:00"
OPENS = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
CLOSES = datetime(2026, 11, 29, 22, 0, tzinfo=UTC)


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    world = World(database)
    world.add_site(timezone="Asia/Shanghai", allowed_hours=NIGHT)
    world.add_target("news")
    world.add_target("more")
    return world


def waiting(world: World, job_id: str) -> Waiting:
    with world.database.reading() as session:
        found = queries.get_job(session, job_id).waiting
    assert found is not None
    return found


def settled(world: World) -> None:
    with world.database.reading() as session:
        assert_settled(session)


def test_run_now_waits_for_the_opening_and_says_so(world: World, now: Clock) -> None:
    job_id = world.submit("news", source="manual").id

    job = world.job(job_id)
    assert (job.due_at, job.retry_at, job.due_before_hours) == (OPENS, OPENS, now.now)
    assert world.key().retry_at == OPENS
    assert world.claim() == []
    told = waiting(world, job_id)
    assert (told.reason, told.also) == (
        "closed",
        ("No worker is alive: start one with `webqueue serve` or `webqueue worker`.",),
    )
    assert told.message == (
        "Site example is visited 22:00-06:00 (Asia/Shanghai) only; it opens 2026-11-29 22:00 +08:00."
    )
    now.now = OPENS
    assert world.claim_one().lease.job_id == job_id
    settled(world)


def test_what_is_queued_while_open_and_not_reached_waits_for_the_next_opening(
    world: World, now: Clock
) -> None:
    now.now = CLOSES - timedelta(seconds=10)
    first = world.submit("news").id
    second = world.submit("more").id
    claimed = world.claim_one()
    assert claimed.open_for_sec == 10
    now.now = CLOSES + timedelta(seconds=1)
    world.finish(claimed)

    assert world.claim() == []

    tomorrow = OPENS + timedelta(days=1)
    job = world.job(second)
    assert (job.due_at, job.due_before_hours) == (tomorrow, CLOSES - timedelta(seconds=10))
    assert world.key().retry_at == tomorrow
    assert world.job(first).status == "done"
    settled(world)


def test_an_open_site_of_the_same_key_is_not_held_up(world: World, now: Clock) -> None:
    world.add_site("day", "http://day.example.org/", rate_key="www.example.org")
    world.add_target("daily", "day")
    now.now = CLOSES - timedelta(seconds=1)
    night = [world.submit("news").id, world.submit("more").id]
    now.now = CLOSES
    day = world.submit("daily").id

    assert world.claim_one().lease.job_id == day
    assert {world.job(job_id).due_at for job_id in night} == {OPENS + timedelta(days=1)}
    settled(world)


def test_the_order_is_kept_and_the_front_stays_the_front(world: World, now: Clock) -> None:
    for number in range(4):
        world.add_target(f"t{number}")
    ids = [world.submit(f"t{number}").id for number in range(4)]
    for chosen in (ids[2], ids[3]):
        world.database.run(partial(jobs.move_to_front, job_id=chosen, by="anna"))
        assert world.claim() == []  # moved to the front of a closed site: it does not open earlier for that
        settled(world)
    late = world.submit("news").id

    now.now = OPENS
    order = []
    while claimed := world.claim():
        order.append(claimed[0].lease.job_id)
        world.finish(claimed[0])
        settled(world)
    assert order == [ids[3], ids[2], ids[0], ids[1], late]


@pytest.mark.parametrize("lifted", [True, False])
def test_the_front_stays_the_front_when_the_hours_are_lifted(world: World, now: Clock, lifted: bool) -> None:
    """Also when it was moved long after the others were queued, and when it was the first of those put off."""
    first = world.submit("news").id
    now.advance(60)
    last = world.submit("more").id
    now.advance(60)
    world.database.run(partial(jobs.move_to_front, job_id=last, by="anna"))
    assert world.job(last).due_before_hours is None
    settled(world)
    assert world.claim() == []
    now.advance(60)
    if lifted:
        put_site(world, now, allowed_hours=None)
    else:
        now.now = OPENS
    settled(world)
    claimed = world.claim_one()
    assert claimed.lease.job_id == last
    world.finish(claimed)
    assert world.claim_one().lease.job_id == first


def test_a_retry_that_falls_into_closed_hours_waits_for_the_opening(world: World, now: Clock) -> None:
    now.now = CLOSES - timedelta(seconds=60)
    world.submit("news")
    again = world.finish(world.claim_one(), Blocked("HTTP 429")).follow_up_id
    assert again is not None

    now.now = CLOSES + timedelta(seconds=540)  # the cooldown is over, and the site is closed
    assert world.claim() == []
    told = waiting(world, again)
    assert told.reason == "closed"
    now.now = OPENS + timedelta(days=1)
    assert world.claim_one().lease.job_id == again


def test_the_cooldown_holds_after_the_opening_too(world: World, now: Clock) -> None:
    now.now = CLOSES - timedelta(seconds=60)
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429", retry_after=86_400))

    now.now = OPENS + timedelta(days=1)
    assert world.claim() == []
    now.now = CLOSES + timedelta(days=1) - timedelta(seconds=60)
    assert len(world.claim()) == 1


def put_site(world: World, now: Clock, **fields: object) -> None:
    data = {"base_url": "http://www.example.org/", "timezone": "Asia/Shanghai", **fields}
    world.database.run(lambda session: config.put_site(session, "example", data, by="anna", now=now.now))


def test_hours_that_are_taken_away_hold_no_job_back(world: World, now: Clock) -> None:
    job_id = world.submit("news").id

    put_site(world, now, allowed_hours=None)

    job = world.job(job_id)
    assert (job.due_at, job.retry_at, job.due_before_hours) == (now.now, now.now, None)
    settled(world)
    assert world.claim_one().lease.job_id == job_id


def test_hours_that_change_move_the_jobs(world: World, now: Clock) -> None:
    job_id = world.submit("news").id

    put_site(world, now, allowed_hours="21:00-06:00")
    assert world.claim() == []

    assert world.job(job_id).due_at == OPENS - timedelta(hours=1)
    assert world.key().retry_at == OPENS - timedelta(hours=1)
    settled(world)


def test_hours_that_are_set_while_jobs_wait(world: World, now: Clock) -> None:
    put_site(world, now, allowed_hours=None)
    job_id = world.submit("news").id
    put_site(world, now, allowed_hours=" 22:00 - 6:00 ")

    assert waiting(world, job_id).reason == "closed"
    assert waiting(world, job_id).earliest_start is None  # no worker
    assert world.claim() == []
    assert world.job(job_id).due_at == OPENS
    settled(world)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"allowed_hours": "at night"}, "'at night' are no hours"),
        ({"timezone": "Nowhere/At_all"}, "no time zone 'Nowhere/At_all'"),
    ],
)
def test_a_site_whose_hours_cannot_be_read_is_not_visited(
    world: World, now: Clock, broken: dict[str, str], told: str
) -> None:
    """Written by something else than webqueue, which checks them: a limit was meant, so nothing is started."""
    now.now = OPENS
    world.database.run(lambda session: session.execute(update(Site).values(broken)))
    job_id = world.submit("news").id
    for _look in range(3):
        assert world.claim() == []
        settled(world)
        now.advance(601)
    assert world.job(job_id).status == "queued"
    found = waiting(world, job_id)
    assert found.reason == "closed"
    assert told in found.message
    assert "until they are corrected" in found.message
    assert found.earliest_start is None

    put_site(world, now, allowed_hours=NIGHT)
    assert world.claim_one().lease.job_id == job_id


@pytest.mark.parametrize("completed", [0, 3])
def test_a_run_that_is_stopped_at_closing_is_continued(world: World, now: Clock, completed: int) -> None:
    now.now = CLOSES - timedelta(seconds=60)
    world.submit("news", force=True)
    claimed = world.claim_one()
    if completed:
        world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, completed, {"at": 1}))
    now.now = CLOSES

    finished = world.finish(claimed, OutOfHours({"new": 2}))

    job = world.job(claimed.lease.job_id)
    assert (job.status, job.error_msg) == ("done", None)
    assert job.result == {
        "new": 2,
        "continued_by": finished.follow_up_id,
        "stopped_because": "allowed hours 22:00-06:00 (Asia/Shanghai)",
    }
    again = world.job(str(finished.follow_up_id))
    assert (again.source, again.force, again.root_id) == ("continue", True, job.root_id)
    assert (again.due_at, again.last_completed_page) == (OPENS + timedelta(days=1), completed)
    settled(world)


def test_a_stop_wins_over_the_closing(world: World, now: Clock) -> None:
    now.now = CLOSES - timedelta(seconds=60)
    world.submit("news")
    claimed = world.claim_one()
    world.cancel(claimed.lease.job_id)

    finished = world.finish(claimed, OutOfHours())

    assert (finished.status, finished.follow_up_id) == ("cancelled", None)


def test_a_trial_is_not_continued(world: World, now: Clock) -> None:
    now.now = CLOSES - timedelta(seconds=60)
    world.submit("news", source="try")

    assert world.finish(world.claim_one(), OutOfHours()).status == "failed"


def _polls(ctx: Context) -> Outcome:
    ctx.checkpoint(2, {})
    while not ctx.should_stop():
        threading.Event().wait(0.01)
    return Cancelled({"new": 1})


def _returns_nothing_special(ctx: Context) -> Outcome:
    _polls(ctx)
    return Done({"new": 1})


def _fails_because_of_it(ctx: Context) -> Outcome:
    _polls(ctx)
    return Failed("interrupted")


@pytest.mark.parametrize("handler", [_polls, _returns_nothing_special, _fails_because_of_it])
def test_a_worker_stops_its_run_at_closing(database: Database, settings: Settings, handler: object) -> None:
    world = World(database)
    # Two seconds before the end; those are waited by the clock that nobody replaces.
    with clock.replaced(Clock(datetime(2026, 11, 29, 21, 59, 58, tzinfo=UTC))):
        world.add_site(timezone="UTC", allowed_hours="08:00-22:00")
        world.add_target("news")
        with pool_of(database, settings, handler):  # type: ignore[arg-type]
            job_id = world.submit("news").id
            wait_until(lambda: world.job(job_id).finished_at, timeout=20)
    job = world.job(job_id)
    assert (job.status, job.error_msg) == ("done", None)
    assert job.result is not None
    again = world.job(job.result["continued_by"])
    assert (again.source, again.status, again.last_completed_page) == ("continue", "queued", 2)
