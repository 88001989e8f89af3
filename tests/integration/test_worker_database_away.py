"""A worker whose database goes away and comes back: nothing is lost, and nothing is done on an ended lease."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import migrate
from tests.helpers.pools import QUICK, pool_of
from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from tests.integration.test_worker_runs import final
from webqueue import settings as webqueue_settings
from webqueue.database import Database
from webqueue.handlers.protocol import Context
from webqueue.outcomes import Blocked, Cancelled, Done, Outcome
from webqueue.settings import Settings
from webqueue.worker.context import RunContext
from webqueue.worker.runs import Stop

pytestmark = pytest.mark.postgresql


@pytest.fixture
def url(server: PostgresServer, instance: Path) -> str:
    url = server.create_database(empty=True)
    migrate(url, instance)
    return url


@pytest.fixture
def world(url: str, instance: Path) -> Iterator[World]:
    database = Database(url, instance_path=instance)
    world = World(database)
    world.add_site()
    world.add_target("news")
    yield world
    database.close()


@pytest.fixture
def settings(url: str, instance: Path) -> Settings:
    return webqueue_settings.load(instance_path=instance, database_url=url)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_end_of_a_run_is_written_when_the_database_is_back(
    world: World, settings: Settings, server: PostgresServer, how: str
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def run(ctx: Context) -> Outcome:
        ctx.checkpoint(1)
        reached.set()
        assert go_on.wait(60)
        ctx.log("told while the database is away")
        return Done({"survived": True})

    with pool_of(world.database, settings, run) as pool:
        job_id = world.submit("news").id
        assert reached.wait(20)
        server.kill() if how == "kill" else server.stop()
        go_on.set()
        wait_until(lambda: pool.problems != [], timeout=30, message="the trouble to be shown")
        server.start()
        job = final(world, job_id, timeout=60)
        assert (job.status, job.result, job.attempt_count) == ("done", {"survived": True}, 0)
        wait_until(lambda: pool.problems == [], timeout=60, message="the pool to be well again")
        assert final(world, world.submit("news").id, timeout=60).status == "done"


def test_while_the_database_is_away_a_handler_stops_at_the_end_of_its_lease(
    world: World, settings: Settings, server: PostgresServer
) -> None:
    reached, stopped = threading.Event(), threading.Event()
    runs: list[int] = []

    def run(ctx: Context) -> Outcome:
        runs.append(ctx.checkpoint_at_start.page)
        if len(runs) > 1:
            return Done()
        ctx.checkpoint(1)
        reached.set()
        wait_until(ctx.should_stop, timeout=60)
        stopped.set()
        return Cancelled()

    timing = dataclasses.replace(QUICK, lease_sec=4.0, margin_sec=1.0, heartbeat_sec=0.5)
    with pool_of(world.database, settings, run, timing=timing):
        job_id = world.submit("news").id
        assert reached.wait(20)
        server.kill()
        assert stopped.wait(30)
        server.start()
        job = final(world, job_id, timeout=90)
    assert job.status == "done"
    assert runs == [0, 1], "it was handed back with its checkpoint, and went on from there"


def test_a_program_that_ends_while_the_database_is_away_keeps_its_outcome_and_the_distance_after_it(
    world: World, settings: Settings, server: PostgresServer
) -> None:
    noted = threading.Event()

    def run(ctx: Context) -> Outcome:
        assert isinstance(ctx, RunContext)
        server.kill()
        ctx.run.request_stop(Stop.SHUTDOWN)
        ctx.requested()
        noted.set()
        return Blocked("the program said so")

    with pool_of(world.database, settings, run):
        job_id = world.submit("news").id
        assert noted.wait(30)
        server.start()
        job = final(world, job_id, timeout=60)
    assert job.error_msg is not None
    assert job.error_msg.startswith("cooldown_abort"), "a block is news in any case"
    assert world.key("www.example.org").last_request_at is not None
