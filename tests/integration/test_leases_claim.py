"""What is due, and who may have it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text, update

from tests.helpers.queue_models import Binary, Crawl, Key, ago, change, create_tables, insert, load, now_of
from webqueue import clock
from webqueue.database import Database
from webqueue.leases import RETRY_AT_MAX

MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def queue(database: Database) -> Database:
    return create_tables(database)


def due_ids(database: Database) -> list[int]:
    with database.reading() as session:
        return [crawl.id for crawl in session.scalars(Crawl.get_queue())]


def test_a_new_row_is_queued_and_due_now(queue: Database) -> None:
    before = now_of(queue)
    crawl = insert(queue, Crawl())
    assert crawl.status == "queued"
    assert crawl.retry_at is not None
    assert before <= crawl.retry_at <= now_of(queue)
    assert before <= crawl.modified_at <= now_of(queue)
    assert due_ids(queue) == [crawl.id]


def test_a_new_row_of_replaced_states(queue: Database) -> None:
    assert insert(queue, Binary(name="wget", version=1)).status == "queued"
    key = insert(queue, Key(key="www.example.org"))
    assert (key.status, key.retry_at) == ("idle", None)


def test_the_oldest_is_first(queue: Database) -> None:
    for seconds in (10, 30, 20):
        insert(queue, Crawl(retry_at=ago(queue, seconds)))
    assert due_ids(queue) == [2, 3, 1]


def test_equally_old_rows_come_in_the_order_of_their_keys(queue: Database) -> None:
    due = ago(queue, 5)
    for _ in range(3):
        insert(queue, Crawl(retry_at=due))
    assert due_ids(queue) == [1, 2, 3]


def test_paused_future_and_null_rows_are_absent(queue: Database) -> None:
    insert(queue, Crawl(status="paused", retry_at=RETRY_AT_MAX))
    insert(queue, Crawl(status="paused", retry_at=ago(queue, 5)))
    insert(queue, Crawl(retry_at=ago(queue, -60)))
    insert(queue, Crawl(retry_at=None))
    assert due_ids(queue) == []


def test_a_final_row_with_a_due_time_is_in_the_queue(queue: Database) -> None:
    sealed = insert(queue, Crawl(status="sealed", retry_at=ago(queue, 5)))
    assert due_ids(queue) == [sealed.id]


def test_the_queue_of_a_given_time(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=datetime(2026, 1, 1, 12, 0, 0, 7, tzinfo=UTC)))
    assert crawl.retry_at is not None
    with queue.reading() as session:
        assert session.scalars(Crawl.get_queue(crawl.retry_at)).all() != []
        assert session.scalars(Crawl.get_queue(crawl.retry_at - MICROSECOND)).all() == []


def test_the_queue_looks_at_the_clock_when_it_is_read(queue: Database) -> None:
    query = Crawl.get_queue()
    insert(queue, Crawl())
    with queue.reading() as session:
        assert len(session.scalars(query).all()) == 1


def test_the_queue_obeys_a_replaced_clock(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=datetime(2030, 1, 1, tzinfo=UTC)))
    assert due_ids(queue) == []
    with clock.replaced(lambda: datetime(2030, 1, 1, tzinfo=UTC)):
        assert due_ids(queue) == [crawl.id]


def test_the_queue_is_read_from_its_index(queue: Database) -> None:
    query = Crawl.get_queue(now_of(queue) if queue.is_sqlite else None)
    with queue.reading() as session:
        compiled = query.compile(session.connection(), compile_kwargs={"literal_binds": True})
        if queue.is_sqlite:
            plan = " ".join(row.detail for row in session.execute(text(f"EXPLAIN QUERY PLAN {compiled}")))
            assert "USING INDEX ix_test_crawls_retry_at (retry_at<?)" in plan
        else:
            session.execute(text("SET LOCAL enable_seqscan = off"))
            plan = " ".join(session.scalars(text(f"EXPLAIN {compiled}")))
            assert "Index Cond: (retry_at <= statement_timestamp())" in plan


def test_a_claim_moves_the_due_time_and_nothing_else(queue: Database) -> None:
    crawl = insert(queue, Crawl(title="a"))
    change(queue, crawl, title="b")
    with queue.transaction() as session:
        session.add(crawl)
        before = clock.now(session)
        assert Crawl.claim_for_worker(crawl, lock_seconds=90)
        after = clock.now(session)
        assert crawl not in session.dirty
    assert crawl.retry_at is not None
    assert before <= crawl.retry_at - timedelta(seconds=90) == crawl.modified_at <= after
    # Only these two are changed in memory; the caller refreshes.
    assert (crawl.status, crawl.title) == ("queued", "a")
    stored = load(queue, crawl)
    assert (stored.status, stored.title) == ("queued", "b")
    assert (stored.retry_at, stored.modified_at) == (crawl.retry_at, crawl.modified_at)


def test_a_lease_is_sixty_seconds_when_nothing_is_said(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()
    assert crawl.retry_at == crawl.modified_at + timedelta(seconds=60)


def test_who_loaded_another_due_time_loses(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=ago(queue, 30)))
    assert crawl.retry_at is not None
    loaded = crawl.retry_at
    for other in (loaded + MICROSECOND, loaded - MICROSECOND):
        change(queue, crawl, retry_at=other)
        with queue.transaction() as session:
            session.add(crawl)
            assert not Crawl.claim_for_worker(crawl)
        assert crawl.retry_at == loaded
        assert load(queue, crawl).retry_at == other
    change(queue, crawl, retry_at=loaded)
    with queue.transaction() as session:
        session.add(crawl)
        assert Crawl.claim_for_worker(crawl)


def test_a_row_is_claimed_once(queue: Database) -> None:
    first = insert(queue, Crawl())
    second = load(queue, first)
    with queue.transaction() as session:
        session.add(first)
        assert Crawl.claim_for_worker(first)
        assert not Crawl.claim_for_worker(first)
    with queue.transaction() as session:
        session.add(second)
        assert not Crawl.claim_for_worker(second)


def test_a_row_is_due_to_the_microsecond(queue: Database) -> None:
    due = datetime(2030, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    crawl = insert(queue, Crawl(retry_at=due))
    with queue.transaction() as session:
        session.add(crawl)
        with clock.replaced(lambda: due - MICROSECOND):
            assert not Crawl.claim_for_worker(crawl)
        with clock.replaced(lambda: due):
            assert Crawl.claim_for_worker(crawl)


def test_an_ended_lease_can_be_claimed(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="started", retry_at=ago(queue, 1)))
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()


def test_final_rows_are_claimed_for_cleanup_but_not_for_work(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="sealed"))
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.claim_processing_lock()
        assert Crawl.claim_for_worker(crawl)


def test_a_row_without_a_due_time_is_not_claimed(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=None))
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.claim_processing_lock()
        assert not Crawl.claim_for_worker(crawl)


def test_a_deleted_row_is_not_claimed(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    other = load(queue, crawl)
    with queue.transaction() as session:
        session.add(other)
        session.delete(other)
    with queue.transaction() as session:
        session.add(crawl)
        assert not crawl.claim_processing_lock()
        session.expire(crawl)
        assert not crawl.claim_processing_lock()
        assert not Crawl.claim_for_worker(crawl)


def test_a_row_not_yet_written_is_written_first(queue: Database) -> None:
    with queue.transaction() as session:
        # A time that was certainly reached, since the column's default is the time of the insert.
        crawl = Crawl(retry_at=clock.now(session))
        crawl.status = "queued"
        session.add(crawl)
        assert crawl.claim_processing_lock()


@pytest.mark.parametrize("seconds", [0, -1, 1e-9])
def test_a_lease_of_no_length_is_refused(queue: Database, seconds: float) -> None:
    crawl = insert(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        with pytest.raises(ValueError, match="lock_seconds must be more than zero"):
            crawl.claim_processing_lock(lock_seconds=seconds)


def test_a_claim_writes_nothing_that_was_changed_in_memory(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=ago(queue, 5)))
    with queue.transaction() as session:
        session.add(crawl)
        crawl.bump_retry_at(-1)
        assert not Crawl.claim_for_worker(crawl)
        stored = session.connection().execute(select(Crawl.__table__.c.retry_at)).scalar_one()
        assert stored != crawl.retry_at
        session.rollback()


def test_a_claim_is_undone_with_its_transaction(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    with queue.transaction() as session:
        copy = session.get_one(Crawl, crawl.id)
        assert copy.claim_processing_lock()
        session.rollback()
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()


def test_a_key_of_several_columns(queue: Database) -> None:
    first = insert(queue, Binary(name="wget", version=1))
    second = insert(queue, Binary(name="wget", version=2))
    with queue.transaction() as session:
        session.add(first)
        assert first.claim_processing_lock()
    assert load(queue, first).retry_at == first.retry_at
    assert load(queue, second).retry_at == second.retry_at


def test_modified_at_is_set_by_an_update_of_the_orm_and_of_core(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    times = [crawl.modified_at]
    with queue.transaction() as session:
        session.add(crawl)
        crawl.title = "changed"
        session.flush()
        session.refresh(crawl)
        times.append(crawl.modified_at)
        session.execute(update(Crawl).values(title="changed again"))
        session.refresh(crawl)
        times.append(crawl.modified_at)
    assert times == sorted(set(times))
