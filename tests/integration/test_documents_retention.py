"""Documents are kept for ever unless the settings say otherwise; the history of jobs never takes one along."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import START, Clock, World
from webqueue import clock, documents, jobs
from webqueue.database import Database
from webqueue.models import Document, DocumentVersion, Job
from webqueue.outcomes import Done
from webqueue.settings import Settings
from webqueue.worker.keeping import DocumentKeeper

DAY = timedelta(days=1)


@pytest.fixture
def world(database: Database) -> World:
    """Ten documents, each found a day after the one before, by a job that is done."""
    now = Clock()
    with clock.replaced(now):
        world = World(database)
        world.add_site()
        world.add_target("news")
        for number in range(10):
            now.now = START + number * DAY
            job_id = world.submit("news").id
            world.finish(world.claim_one(), Done())
            with database.transaction() as session:
                documents.store(
                    session,
                    documents.DocumentDraft(f"http://www.example.org/{number}", f"No. {number}", "Harbour"),
                    target_code="news",
                    job_id=job_id,
                    root_id=job_id,
                    now=now(),
                )
    return world


def count(world: World, model: type[Document | DocumentVersion | Job]) -> int:
    with world.database.reading() as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


def keep(world: World, settings: Settings) -> None:
    with clock.replaced(Clock(START + 12 * DAY)):
        DocumentKeeper(world.database, settings).keep()


def test_the_history_of_jobs_takes_none_along(world: World) -> None:
    world.database.run(lambda s: jobs.forget_finished(s, keep=0, before=START + 1000 * DAY, limit=500))
    assert (count(world, Job), count(world, Document), count(world, DocumentVersion)) == (0, 10, 10)


def test_by_default_they_stay_for_ever(world: World, settings: Settings) -> None:
    assert settings.keep_documents_days is None
    with clock.replaced(Clock(START + 36_500 * DAY)):
        DocumentKeeper(world.database, settings).keep()
    assert count(world, Document) == 10


def test_what_nothing_found_for_the_days_of_the_settings_goes_and_jobs_stay(
    world: World, settings: Settings
) -> None:
    keep(world, settings.model_copy(update={"keep_documents_days": 5}))
    assert (count(world, Document), count(world, DocumentVersion), count(world, Job)) == (3, 3, 10)
    with world.database.reading() as session:
        states = documents.known(
            session,
            "news",
            [f"http://www.example.org/{number}" for number in range(11)],
            root_id="later",
            chain_began_at=START + 12 * DAY,
        )
    assert list(states.values()) == [documents.KNOWN] * 10 + [documents.NEW]


def test_a_batch_ends_when_its_texts_are_long(world: World, settings: Settings) -> None:
    def forget(characters: int) -> int:
        return world.database.run(
            lambda s: documents.forget_documents(
                s, before=START + 20 * DAY, now=START + 20 * DAY, limit=500, characters=characters
            )
        )

    # Each has seven characters, and its version has as many.
    assert [forget(1), forget(14), forget(15)] == [1, 1, 2]
    with world.database.reading() as session:
        assert session.scalar(select(func.min(Document.last_seen_at))) == START + 4 * DAY, "the oldest first"
    keeper = DocumentKeeper(world.database, settings.model_copy(update={"keep_documents_days": 5}))
    with clock.replaced(Clock(START + 12 * DAY)):
        assert keeper.keep() < 10, "there may be more"
        assert keeper.keep() > 100


def test_a_worker_does_it(world: World, settings: Settings) -> None:
    with (
        clock.replaced(Clock(START + 12 * DAY)),
        pool_of(
            world.database, settings.model_copy(update={"keep_documents_days": 5}), lambda _: None, threads=1
        ),
    ):
        wait_until(lambda: count(world, Document) == 3, timeout=20, message="old documents to go")
