"""The database's own part in the promises: the unique index, locks of a frozen process, answers that are lost."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.helpers.interleaving import Meeting
from tests.helpers.lossy import LossyProxy
from tests.helpers.verbs import (
    KEY,
    claim,
    finish,
    settled,
)
from tests.helpers.waiting import wait_until
from tests.helpers.world import START, Clock, World
from webqueue import jobs
from webqueue.database import Database
from webqueue.database import engine as engine_module
from webqueue.models import Job, JobStatus
from webqueue.outcomes import Blocked


def test_the_unique_index_keeps_a_second_run_out(world: World, meeting: Meeting, now: Clock) -> None:
    """A running row that came past the key's lock, and is not committed yet, so that no query sees it."""
    if meeting.one.is_sqlite:
        pytest.skip("no second writer can be under way")
    world.submit("news")

    def trespass(session: Session) -> None:
        row = dict.fromkeys(("id", "root_id"), "f" * 12)
        session.execute(
            insert(Job).values(
                **row,
                site_code="example",
                target_code="news",
                rate_key=KEY,
                source="api",
                status=JobStatus.RUNNING,
                due_at=START,
                retry_at=START + timedelta(seconds=30),
                enqueued_at=START,
                started_at=START,
                leased_by="w0",
                progress_message="",
                checkpoint={},
                counters={},
            )
        )

    _, rival = meeting.run(trespass, claim())
    assert rival.result() == [], "P1"
    assert world.key().retry_at == START + timedelta(seconds=60), "put off"
    assert [job.status for job in world.jobs()].count("running") == 1
    now.advance(60)
    assert len(world.claim()) == 1, "the trespasser is an orphan by now"


def test_a_frozen_process_loses_its_locks(
    engine_name: str, database_url: str, instance: Path, monkeypatch: pytest.MonkeyPatch, now: Clock
) -> None:
    """PostgreSQL ends a transaction in which nothing happens, as of a stopped process or a lost machine."""
    if engine_name == "sqlite":
        pytest.skip("SQLite has no server that could take a lock away")
    monkeypatch.setattr(engine_module, "IDLE_IN_TRANSACTION_MS", 1000)
    with (
        closing(Database(database_url, instance_path=instance)) as frozen,
        closing(Database(database_url, instance_path=instance)) as healthy,
    ):
        _freeze_and_thaw(frozen, World(healthy))


def _freeze_and_thaw(frozen: Database, world: World) -> None:
    world.add_site()
    world.add_target("news")
    world.submit("news")
    asked = 0

    def freeze(session: Session) -> list[jobs.Claimed]:
        nonlocal asked
        asked += 1
        claimed = jobs.claim(session, "w1", limit=1, life=lambda _worker: jobs.Life.UNKNOWN)
        if asked == 1:
            session.flush()
            assert len(claimed) == 1
            assert world.claim("w2") == [], "the key is locked"
            assert wait_until(lambda: world.claim("w2"))
        return claimed

    assert frozen.run(freeze) == [], "thawed, it is told to try again, and finds the key taken"
    assert asked == 2
    assert [job.leased_by for job in world.jobs()] == ["w2"]
    settled(world)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_to_commit(
    engine_name: str, database_url: str, instance: Path, when: str, now: Clock
) -> None:
    if engine_name == "sqlite":
        pytest.skip("SQLite answers in the process itself")
    with LossyProxy(database_url) as proxy:
        database = Database(proxy.url, instance_path=instance)
        world = World(database)
        world.add_site()
        world.add_target("news", retry_times=1)
        proxy.cut(when)
        submitted = world.submit("news")
        assert [job.id for job in world.jobs()] == [submitted.id], "accepted once, and named"
        proxy.cut(when)
        claimed = world.claim()
        if when == "after":
            assert claimed == [], (
                "its lease stands, and its worker knows nothing of it: see the worker's sweep"
            )
            now.advance(61)
            claimed = world.claim()
        [one] = claimed
        asked: list[str] = []

        def left(session: Session) -> jobs.Finished | None:
            status = session.scalars(select(Job.status).where(Job.seq == one.lease.job_seq)).one()
            asked.append(status)
            return None if status == "running" else jobs.Finished(status)

        proxy.cut(when)
        finished = database.run(finish(world, one, Blocked("HTTP 429")), read_back=left)
        assert finished.status == "failed"
        assert asked == ["running" if when == "before" else "failed"]
        assert [job.status for job in world.jobs()] == ["failed", "queued"], "one retry"
        assert proxy.cuts == 3
        settled(world)
        database.close()


def test_a_read_back_that_fails_is_asked_again(database: Database) -> None:
    """The server is often still away when the answer to a COMMIT has just got lost."""
    asked = 0
    broken = False

    def work(_session: Session) -> str:
        return "worked"

    def read_back(_session: Session) -> str | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise lost()
        return "read back"

    def lost() -> DBAPIError:
        return DBAPIError("COMMIT", None, OSError("gone"), connection_invalidated=True)

    def break_once(_session: Session) -> None:
        nonlocal broken
        if not broken:
            broken = True
            raise lost()

    event.listen(Session, "before_commit", break_once)
    try:
        assert database.run(work, read_back=read_back) == "read back"
    finally:
        event.remove(Session, "before_commit", break_once)
    assert asked == 2
