"""Guarded updates, pause and resume, and the counts by status."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from tests.helpers.queue_models import Binary, Crawl, Key, ago, change, create_tables, insert, load, now_of
from webqueue import clock
from webqueue.database import Database
from webqueue.leases import RETRY_AT_MAX

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def queue(database: Database) -> Database:
    return create_tables(database)


@pytest.fixture
def session(queue: Database) -> Iterator[Session]:
    with queue.transaction() as opened:
        yield opened


def attach(queue: Database, crawl: Crawl, **changed: Any) -> Crawl:
    """A stored row as it was loaded, before somebody else changed it."""
    insert(queue, crawl)
    if changed:
        change(queue, crawl, **changed)
    return crawl


def delete(queue: Database, crawl: Crawl) -> None:
    other = load(queue, crawl)
    with queue.transaction() as session:
        session.add(other)
        session.delete(other)


# --- safe_update -----------------------------------------------------------------------------------------------


def test_an_update_without_a_filter_is_unconditional(queue: Database) -> None:
    crawl = attach(queue, Crawl(title="a"), status="started", title="b")
    with clock.replaced(lambda: NOON), queue.transaction() as session:
        session.add(crawl)
        assert crawl.safe_update({"title": "c"})
    # Read again: what others wrote is seen as well.
    assert (crawl.title, crawl.status, crawl.modified_at) == ("c", "started", NOON)
    assert load(queue, crawl).title == "c"


def test_an_update_whose_filter_holds(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.safe_update({"status": "started"}, extra_filter={"status": "queued", "note": None})
    assert load(queue, crawl).status == crawl.status == "started"


def test_a_filter_may_name_several_values(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.safe_update({"title": "x"}, extra_filter={"status": ("started", "sealed")})
        assert crawl.safe_update({"title": "x"}, extra_filter={"status": Crawl.RUNNABLE_STATES})


def test_a_missed_filter_is_logged_and_shows_the_truth(queue: Database) -> None:
    crawl = attach(queue, Crawl(), status="started", title="theirs")
    with queue.transaction() as session, capture_logs() as logs:
        session.add(crawl)
        assert not crawl.safe_update({"title": "mine"}, extra_filter={"status": "queued"})
    assert logs == [
        {
            "event": "SafeUpdateGuardMiss",
            "log_level": "info",
            "model": "Crawl",
            "key": "1",
            "extra_filter": {"status": "queued"},
            "current_status": "started",
            "current_retry_at": str(crawl.retry_at),
            "loaded_status": "queued",
        }
    ]
    assert (crawl.title, crawl.status) == ("theirs", "started")
    assert load(queue, crawl).title == "theirs"


def test_a_deleted_row_is_tolerated(queue: Database) -> None:
    crawl = attach(queue, Crawl(title="a"))
    delete(queue, crawl)
    with queue.transaction() as session, capture_logs() as logs:
        session.add(crawl)
        assert not crawl.safe_update({"title": "b"})
        assert logs == []
        assert not crawl.safe_update({"title": "b"}, extra_filter={"status": "queued"})
        assert not crawl.update_and_requeue(title="b")
        assert not crawl.pause()
        assert (crawl.title, crawl.status) == ("a", "queued")
        assert [entry["current_status"] for entry in logs] == [None, None, None]
        session.expire(crawl)
        assert not crawl.update_and_requeue(title="b")
        assert not crawl.pause()
        assert not crawl.resume()


def test_without_refresh_memory_stays_as_it_is(queue: Database) -> None:
    crawl = attach(queue, Crawl(title="a"))
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.safe_update({"title": "b"}, refresh=False)
        assert crawl.title == "a"
        assert crawl not in session.dirty
    assert load(queue, crawl).title == "b"


def test_a_status_changed_in_memory_is_not_written_past_the_guard(queue: Database) -> None:
    crawl = attach(queue, Crawl(), status="sealed")
    with queue.transaction() as session:
        session.add(crawl)
        crawl.status = "started"
        assert not crawl.safe_update({"title": "x"}, extra_filter={"status": "queued"})
        assert crawl.status == "sealed"
        assert not session.is_modified(crawl)
    assert load(queue, crawl).status == "sealed"


def test_other_changes_in_memory_are_kept_to_be_flushed(queue: Database) -> None:
    crawl = attach(queue, Crawl(title="a"), note="theirs")
    with queue.transaction() as session:
        session.add(crawl)
        crawl.title = "mine"
        assert crawl.pause()
        assert (crawl.title, crawl.note) == ("mine", "theirs")
    stored = load(queue, crawl)
    assert (stored.title, stored.note, stored.status) == ("mine", "theirs", "paused")


def test_nothing_is_committed(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.safe_update({"title": "x"})
        assert crawl.pause()
        session.rollback()
    stored = load(queue, crawl)
    assert (stored.title, stored.status) == ("", "queued")


def test_modified_at_may_be_given(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.safe_update({"modified_at": NOON})
    assert load(queue, crawl).modified_at == NOON


# --- update_and_requeue ----------------------------------------------------------------------------------------


def test_an_update_under_the_lease(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()
        later = clock.now(session) + timedelta(seconds=60)
        assert crawl.update_and_requeue(status="started", retry_at=later)
        assert (crawl.status, crawl.retry_at) == ("started", later)
        assert crawl.update_and_requeue(status="sealed", retry_at=None)
        assert (crawl.status, crawl.retry_at) == ("sealed", None)
        assert crawl.update_and_requeue(title="NULL is a due time like any other to this guard")


def test_an_update_after_the_lease_was_taken_over(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()
    assert crawl.retry_at is not None
    theirs = crawl.retry_at + timedelta(microseconds=1)
    change(queue, crawl, retry_at=theirs)
    with queue.transaction() as session, capture_logs() as logs:
        session.add(crawl)
        assert not crawl.update_and_requeue(status="sealed", retry_at=None)
    assert (crawl.status, crawl.retry_at) == ("queued", theirs)
    assert logs[0]["event"] == "SafeUpdateGuardMiss"
    assert load(queue, crawl).retry_at == theirs


def test_a_binary_is_installed_or_tried_again_later(queue: Database) -> None:
    binary = insert(queue, Binary(name="wget", version=1))
    with queue.transaction() as session:
        session.add(binary)
        assert binary.claim_processing_lock()
        binary.bump_retry_at(120)
        later = binary.retry_at
        session.refresh(binary)
        assert binary.update_and_requeue(retry_at=later)
        assert (binary.status, binary.retry_at) == ("queued", later)
        assert binary.update_and_requeue(retry_at=None, status="installed")
    stored = load(queue, binary)
    assert (stored.status, stored.retry_at) == ("installed", None)


# --- pause, resume, bump_retry_at ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "started"])
def test_pause(queue: Database, status: str) -> None:
    crawl = attach(queue, Crawl(status=status))
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.is_paused
        assert crawl.pause()
    stored = load(queue, crawl)
    assert stored.is_paused
    assert (stored.status, stored.retry_at) == ("paused", RETRY_AT_MAX)
    assert (crawl.status, crawl.retry_at, crawl.modified_at) == ("paused", RETRY_AT_MAX, stored.modified_at)


@pytest.mark.parametrize("status", ["sealed", "paused"])
def test_final_and_paused_rows_are_not_paused(queue: Database, status: str) -> None:
    crawl = attach(queue, Crawl(status=status, retry_at=NOON))
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.pause()
        assert not crawl.pause(save=False)
    assert (crawl.status, crawl.retry_at) == (status, NOON)


def test_states_without_paused_are_not_paused(queue: Database) -> None:
    binary = insert(queue, Binary(name="wget", version=1))
    key = insert(queue, Key(key="www.example.org"))
    with queue.transaction() as session:
        session.add_all([binary, key])
        assert not binary.pause()
        assert not key.pause()
        assert not key.resume()
        assert not binary.is_paused
    assert load(queue, key).status == "idle"
    assert load(queue, binary).status == "queued"


@pytest.mark.parametrize("now_status", ["started", "sealed", "paused"])
def test_a_pause_misses_when_the_status_has_changed(queue: Database, now_status: str) -> None:
    crawl = attach(queue, Crawl(retry_at=NOON), status=now_status, retry_at=None)
    with queue.transaction() as session, capture_logs() as logs:
        session.add(crawl)
        assert not crawl.pause()
        assert (crawl.status, crawl.retry_at) == (now_status, None)
        assert crawl not in session.dirty
    assert logs[0]["event"] == "SafeUpdateGuardMiss"
    assert load(queue, crawl).status == now_status


def test_a_pause_in_memory(queue: Database) -> None:
    crawl = attach(queue, Crawl())
    assert crawl.pause(save=False)
    assert (crawl.status, crawl.retry_at) == ("paused", RETRY_AT_MAX)
    assert load(queue, crawl).status == "queued"
    assert crawl.resume(save=False, when=NOON)
    assert (crawl.status, crawl.retry_at) == ("queued", NOON)
    assert load(queue, crawl).retry_at != NOON


def test_a_new_row_may_be_stored_paused(queue: Database) -> None:
    crawl = Crawl(status="queued")
    assert crawl.pause(save=False)
    insert(queue, crawl)
    assert load(queue, crawl).is_paused


def test_resume_now(queue: Database) -> None:
    crawl = attach(queue, Crawl(status="paused", retry_at=RETRY_AT_MAX))
    before = now_of(queue)
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.resume()
    stored = load(queue, crawl)
    assert stored.status == crawl.status == "queued"
    assert stored.retry_at is not None
    assert before <= stored.retry_at <= now_of(queue)


def test_resume_later(queue: Database) -> None:
    crawl = attach(queue, Crawl(status="paused", retry_at=RETRY_AT_MAX))
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.resume(when=NOON)
    assert (crawl.status, crawl.retry_at) == ("queued", NOON)
    assert load(queue, crawl).retry_at == NOON


@pytest.mark.parametrize("status", ["queued", "started", "sealed"])
def test_only_a_paused_row_is_resumed(queue: Database, status: str) -> None:
    crawl = attach(queue, Crawl(status=status, retry_at=NOON))
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.resume()
        assert not crawl.resume(save=False)
    assert (crawl.status, crawl.retry_at) == (status, NOON)


def test_a_resume_misses_when_somebody_else_resumed(queue: Database) -> None:
    crawl = attach(queue, Crawl(status="paused", retry_at=RETRY_AT_MAX), status="started", retry_at=NOON)
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.resume()
        assert (crawl.status, crawl.retry_at) == ("started", NOON)
    assert load(queue, crawl).retry_at == NOON


def test_bump_counts_from_now_and_changes_memory_only(queue: Database) -> None:
    old = ago(queue, 3600)
    crawl = attach(queue, Crawl(retry_at=old))
    with queue.transaction() as session:
        session.add(crawl)
        with clock.replaced(lambda: NOON):
            crawl.bump_retry_at()
            assert crawl.retry_at == NOON + timedelta(seconds=10)
            crawl.bump_retry_at(seconds=30)
            # From now, not from the last value.
            assert crawl.retry_at == NOON + timedelta(seconds=30)
        with session.no_autoflush:
            assert session.scalar(select(Crawl.retry_at)) == old
        session.rollback()
    assert load(queue, crawl).retry_at == old


def test_bump_works_without_a_session() -> None:
    crawl = Crawl()
    with clock.replaced(lambda: NOON):
        crawl.bump_retry_at(1.5)
    assert crawl.retry_at == NOON + timedelta(seconds=1.5)


# --- status_counts ---------------------------------------------------------------------------------------------


@pytest.fixture
def counted(queue: Database) -> Database:
    for title, status in [("a", "queued"), ("a", "queued"), ("a", "sealed"), ("b", "queued")]:
        insert(queue, Crawl(title=title, status=status))
    return queue


def test_counts_of_a_table_in_one_statement(counted: Database) -> None:
    statements: list[str] = []
    event.listen(counted.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with counted.reading() as session:
        found = Crawl.status_counts(session)
    assert found == {"queued": 3, "started": 0, "paused": 0, "sealed": 1}
    assert list(found) == ["queued", "started", "paused", "sealed"]
    assert [statement.count("GROUP BY") for statement in statements if statement != "BEGIN"] == [1]


def test_counts_of_a_query(counted: Database) -> None:
    with counted.reading() as session:
        query = select(Crawl).where(Crawl.title == "a")
        assert Crawl.status_counts(session, query)["queued"] == 2
        assert Crawl.status_counts(session, query.order_by(Crawl.id).limit(1)) == {
            "queued": 1,
            "started": 0,
            "paused": 0,
            "sealed": 0,
        }
        assert Crawl.status_counts(session, Crawl.get_queue())["queued"] == 3


def test_counts_of_some_statuses(counted: Database) -> None:
    with counted.reading() as session:
        assert Crawl.status_counts(session, statuses=["sealed", "archived"]) == {"sealed": 1, "archived": 0}
        assert Crawl.status_counts(session, statuses=Crawl.OPEN_STATES) == {
            "queued": 3,
            "started": 0,
            "paused": 0,
        }


def test_a_status_that_the_model_does_not_know_is_not_hidden(counted: Database) -> None:
    insert(counted, Crawl(status="legacy"))
    with counted.reading() as session:
        assert Crawl.status_counts(session)["legacy"] == 1


def test_counts_of_an_empty_table(queue: Database) -> None:
    with queue.reading() as session:
        assert Binary.status_counts(session) == {"queued": 0, "installed": 0}
