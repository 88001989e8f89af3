"""A submission whose answer to COMMIT gets lost is accepted once, and named (DESIGN P2, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.lossy import LossyProxy
from tests.helpers.world import World
from webqueue import jobs
from webqueue.database import Database
from webqueue.outcomes import Failed


@pytest.fixture
def proxy(engine_name: str, database_url: str) -> Iterator[LossyProxy]:
    if engine_name == "sqlite":
        pytest.skip("SQLite answers in the process itself")
    with LossyProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def world(proxy: LossyProxy, instance: Path) -> Iterator[World]:
    database = Database(proxy.url, instance_path=instance)
    world = World(database)
    world.add_site()
    world.add_target("news")
    yield world
    database.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_trial_is_submitted_once(world: World, proxy: LossyProxy, when: str) -> None:
    """It never deduplicates, so that only its id can tell what was done before."""
    new_id = jobs.new_job_id()
    proxy.cut(when)
    submitted = world.submit("news", source="try", new_id=new_id)
    assert (submitted.id, submitted.deduplicated, submitted.position) == (new_id, False, 1)
    assert [job.id for job in world.jobs()] == [new_id]
    assert proxy.cuts == 1


def test_without_an_id_it_is_done_twice(world: World, proxy: LossyProxy) -> None:
    """Why callers make the id: what the answer was lost of has happened."""
    proxy.cut("after")
    world.submit("news", source="try")
    assert len(world.jobs()) == 2


def test_a_job_that_has_run_meanwhile_is_not_run_again(
    world: World, proxy: LossyProxy, database: Database
) -> None:
    """An equal job that stands would be found; one that has ended would be submitted anew."""
    new_id = jobs.new_job_id()
    others = World(database)
    before: list[str] = []

    def submit_slowly(session: object) -> jobs.Submitted:
        if before:
            others.finish(others.claim_one())
        before.append(new_id)
        return jobs.submit(session, "news", source="api", new_id=new_id)  # type: ignore[arg-type]

    proxy.cut("after")
    submitted = world.database.run(submit_slowly)
    assert (submitted.id, submitted.position, submitted.deduplicated) == (new_id, 0, False)
    assert [job.status for job in world.jobs()] == ["done"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_job_is_retried_once(world: World, proxy: LossyProxy, database: Database, when: str) -> None:
    failed = world.submit("news").id
    world.finish(world.claim_one(), Failed("no"))
    new_id = jobs.new_job_id()
    others = World(database)
    before: list[str] = []

    def retry_slowly(session: object) -> jobs.Submitted:
        if before and when == "after":
            others.finish(others.claim_one())
        before.append(new_id)
        return jobs.retry(session, failed, by="anna", new_id=new_id)  # type: ignore[arg-type]

    proxy.cut(when)
    again = world.database.run(retry_slowly)
    assert again.id == new_id
    assert [job.id for job in world.jobs()] == [failed, new_id]
    assert world.job(new_id).retry_of == failed
