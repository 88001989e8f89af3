"""The history of jobs is bounded by count and age per target (SEEDS B; C 7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import delete, func, select

from tests.helpers.asking import counted_statements
from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import START, Clock, World
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.models import Job, JobLog
from webqueue.outcomes import Blocked, Done, Failed
from webqueue.settings import Settings

LONG_AGO = START - timedelta(days=3650)


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    world = World(database)
    world.add_site()
    world.add_target("news")
    world.add_target("more")
    return world


def forget(world: World, *, keep: int = 1000, before: object = LONG_AGO, limit: int = 500) -> int:
    return world.database.run(
        lambda session: jobs.forget_finished(session, keep=keep, before=before, limit=limit)  # type: ignore[arg-type]
    ).jobs


def run(world: World, target: str = "news") -> str:
    job_id = world.submit(target).id
    world.finish(world.claim_one(), Done())
    return job_id


def test_a_job_cancelled_while_queued_is_not_kept_for_ever(world: World, now: Clock) -> None:
    """SEEDS C 7."""
    cancelled = []
    for _ in range(5):
        cancelled.append(world.submit("news").id)
        world.cancel(cancelled[-1])
    newest = run(world)

    assert forget(world, keep=2) == 4

    assert [job.id for job in world.jobs()] == [cancelled[-1], newest]
    with world.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(JobLog)) == 1


def test_each_target_keeps_its_newest_whatever_they_came_to(world: World, now: Clock) -> None:
    kept = {target: [run(world, target) for _ in range(4)][2:] for target in ("news", "more")}
    assert forget(world, keep=2) == 4
    assert [job.id for job in world.jobs()] == [*kept["news"], *kept["more"]]
    assert forget(world, keep=2) == 0


def test_targets_that_keep_less_are_not_asked_one_by_one(world: World, now: Clock) -> None:
    for number in range(20):
        world.add_target(f"small-{number}")
    for _ in range(3):
        run(world)
    with counted_statements(world.database) as asked:
        assert forget(world, keep=2) == 1
    assert len(asked) < 20


def test_what_ended_too_long_ago_goes(world: World, now: Clock) -> None:
    run(world)
    now.advance(100)
    newest = run(world)

    assert forget(world, before=now.now - timedelta(seconds=50)) == 1
    assert [job.id for job in world.jobs()] == [newest]


def test_open_jobs_and_their_chains_stay(world: World, now: Clock) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429"))
    now.advance(600)
    world.finish(world.claim_one(), Blocked("HTTP 429"))
    before = [job.id for job in world.jobs()]
    assert len(before) == 3

    assert forget(world, keep=0, before=now.now + timedelta(days=1)) == 0
    now.advance(600)
    world.finish(world.claim_one(), Failed("no"))
    assert forget(world, keep=0, before=now.now + timedelta(days=1)) == 3
    assert world.jobs() == []


def test_in_batches(world: World, now: Clock) -> None:
    for _ in range(5):
        run(world)
    assert [forget(world, keep=0, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_no_batch_deletes_more_lines_than_it_may(world: World, now: Clock) -> None:
    for _ in range(3):
        run(world)
    with world.database.transaction() as session:
        session.execute(delete(JobLog))
        for job in session.scalars(select(Job).order_by(Job.seq)):
            for _ in range(4):
                session.add(JobLog(job_seq=job.seq, at=now.now, level="info", message="line"))

    def batch() -> jobs.Forgotten:
        return world.database.run(
            lambda s: jobs.forget_finished(s, keep=0, before=LONG_AGO, limit=500, lines=5)
        )

    batches = [batch() for _ in range(3)]
    assert [(one.lines, one.is_all) for one in batches] == [(5, False), (5, False), (2, True)]
    assert sum(one.jobs for one in batches) == 3
    assert world.jobs() == []


def test_workers_do_it_by_themselves(database: Database, settings: Settings) -> None:
    world = World(database)
    with clock.replaced(Clock(START - timedelta(days=500))):
        world.add_site()
        world.add_target("news")
        run(world)
    with pool_of(database, settings, lambda ctx: Done()):
        wait_until(lambda: not world.jobs())
