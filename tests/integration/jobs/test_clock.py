"""Leases when the database's clock is set forward or back while jobs run (DESIGN P1, P5)."""

from __future__ import annotations

import pytest

from tests.helpers.world import Clock, World
from webqueue import jobs
from webqueue.database import Database

HOUR = 3600.0


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    world = World(database)
    world.add_site()
    world.add_target("news", max_runtime_sec=600)
    return world


def renew(world: World, claimed: jobs.Claimed) -> set[jobs.Lease]:
    return world.database.run(
        lambda session: jobs.renew(session, claimed.lease.worker_id, [claimed.lease], lease_sec=60)
    )


def test_an_hour_forward_takes_no_job_from_a_living_worker(world: World, now: Clock) -> None:
    """Beyond its time limit by the clock that jumped, but not by the one that its worker counts by."""
    world.submit("news")
    claimed = world.claim_one("w1")
    world.life["w1"] = jobs.Life.ALIVE
    now.advance(HOUR)
    assert world.claim("w2") == []
    assert renew(world, claimed) == set(), "its next heartbeat finds its lease"
    now.advance(30)
    assert world.claim("w2") == []
    assert world.finish(claimed).status == "done"


def test_a_living_worker_that_stays_silent_gets_one_lease_and_no_more(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one("w1")
    world.life["w1"] = jobs.Life.ALIVE
    now.advance(HOUR)
    assert world.claim("w2") == []
    now.advance(61)
    [taken_over] = world.claim("w2")
    assert taken_over.lease.token > claimed.lease.token
    assert renew(world, claimed) == {claimed.lease}


@pytest.mark.parametrize("life", [jobs.Life.DEAD, jobs.Life.UNKNOWN])
def test_an_hour_forward_ends_the_leases_of_everybody_else(world: World, now: Clock, life: jobs.Life) -> None:
    """Nothing is known of another machine's worker but its lease: the database's clock must not be set while jobs run."""
    world.submit("news")
    world.claim_one("w1")
    world.life["w1"] = life
    now.advance(HOUR)
    assert len(world.claim("w2")) == 1


def test_an_hour_back_leaves_a_lease_to_its_worker(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one("w1")
    now.advance(-HOUR)
    assert world.claim("w2") == []
    assert renew(world, claimed) == set()
    now.advance(61)
    assert world.claim("w2") == []
    assert world.job(claimed.job.id).status == "queued", "renewed by the new time, it ends by the new time"
    now.advance(HOUR)
    assert world.claim_one("w2").job.id == claimed.job.id, "and the job is due when it was"


def test_an_hour_back_makes_what_is_queued_wait_for_its_time(world: World, now: Clock) -> None:
    """Due times stay what they are; what is submitted afterwards is due before."""
    early = world.submit("news")
    now.advance(-HOUR)
    late = world.submit("news", force=True)
    claimed = world.claim_one()
    assert claimed.job.id == late.id
    world.finish(claimed)
    assert world.claim() == []
    now.advance(HOUR)
    assert world.claim_one().job.id == early.id
