"""The runner: due, claimed, renewed, finished, cleaned up; and what must never happen."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from tests.helpers.queue_models import (
    Binary,
    Crawl,
    Errand,
    Key,
    Snapshot,
    ago,
    change,
    create_tables,
    insert,
    load,
    now_of,
    run_for_ever,
)
from tests.helpers.waiting import wait_until
from webqueue.database import Database
from webqueue.leases import RETRY_AT_MAX, ClaimRefusedError, Lease, RunCounts, run_due

# Short enough that a test sees several renewals, long enough for a busy machine to make them in time.
SHORT_LEASE = 2.0


@pytest.fixture
def queue(database: Database) -> Database:
    return create_tables(database)


def seal(_crawl: Crawl, _lease: Lease) -> dict[str, Any]:
    return {"status": "sealed"}


def never(_row: object, _lease: Lease) -> None:
    raise AssertionError("This row must not be handled.")


def never_cleaned(_row: object) -> None:
    raise AssertionError("This row must not be cleaned up.")


def retry_at(queue: Database, crawl: Crawl) -> datetime:
    value = load(queue, crawl).retry_at
    assert value is not None
    return value


# --- the ordinary way --------------------------------------------------------------------------------------------


def test_due_rows_are_handled_oldest_first_and_leave_the_queue(queue: Database) -> None:
    for seconds in (10, 30, 20):
        insert(queue, Crawl(retry_at=ago(queue, seconds)))
    handled: list[int] = []

    def handle(crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        handled.append(crawl.id)
        return {"status": "sealed", "title": "done"}

    assert run_due(Crawl, handle, database=queue) == RunCounts(handled=3)
    assert handled == [2, 3, 1]
    for number in (1, 2, 3):
        stored = load(queue, Crawl(id=number))
        assert (stored.status, stored.title, stored.retry_at) == ("sealed", "done", None)
    assert run_due(Crawl, never, database=queue) == RunCounts()


def test_what_is_not_due_is_left_alone(queue: Database) -> None:
    insert(queue, Crawl(status="paused", retry_at=RETRY_AT_MAX))
    insert(queue, Crawl(status="paused", retry_at=ago(queue, 5)))
    insert(queue, Crawl(status="started", retry_at=ago(queue, -60)))
    insert(queue, Crawl(status="sealed", retry_at=None))
    insert(queue, Crawl(status="unheard of", retry_at=ago(queue, 5)))
    assert run_due(Crawl, never, database=queue, cleanup=never_cleaned) == RunCounts()


def test_no_more_rows_than_the_limit(queue: Database) -> None:
    for _ in range(5):
        insert(queue, Crawl())
    assert run_due(Crawl, seal, database=queue, limit=2).handled == 2
    assert run_due(Crawl, seal, database=queue).handled == 3


def test_a_row_is_active_and_leased_while_it_is_handled(queue: Database) -> None:
    insert(queue, Crawl())

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        stored = load(queue, crawl)
        assert stored.status == crawl.status == "started"
        assert stored.retry_at == crawl.retry_at
        assert lease.values == (stored.retry_at,)
        assert lease.held
        assert timedelta(seconds=50) < retry_at(queue, crawl) - now_of(queue) <= timedelta(seconds=60)
        return {"status": "sealed"}

    assert run_due(Crawl, handle, database=queue).handled == 1


def test_a_handler_may_ask_to_be_called_again(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    later = ago(queue, -300)
    assert run_due(Crawl, lambda *_: {"retry_at": later}, database=queue).handled == 1
    stored = load(queue, crawl)
    assert (stored.status, stored.retry_at) == ("started", later)


def test_without_an_answer_the_row_is_due_when_the_lease_ends(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    assert run_due(Crawl, lambda *_: None, database=queue, lock_seconds=100).handled == 1
    stored = load(queue, crawl)
    assert stored.status == "started"
    assert timedelta(seconds=90) < retry_at(queue, crawl) - now_of(queue) <= timedelta(seconds=100)


def test_an_ended_lease_is_taken_up(queue: Database) -> None:
    insert(queue, Crawl(status="started", retry_at=ago(queue, 1)))
    assert run_due(Crawl, seal, database=queue).handled == 1


def test_a_binary_stays_queued_until_it_is_installed(queue: Database) -> None:
    binary = insert(queue, Binary(name="wget", version=1))
    later = ago(queue, -120)
    assert run_due(Binary, lambda *_: {"retry_at": later}, database=queue).handled == 1
    stored = load(queue, binary)
    assert (stored.status, stored.retry_at) == ("queued", later)
    change(queue, binary, retry_at=ago(queue, 1))
    assert run_due(Binary, lambda *_: {"status": "installed"}, database=queue).handled == 1
    stored = load(queue, binary)
    assert (stored.status, stored.retry_at) == ("installed", None)


def test_a_parent_waits_for_its_children(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    for _ in range(2):
        insert(queue, Snapshot(crawl_id=crawl.id))

    def advance(parent: Crawl, _lease: Lease) -> Mapping[str, Any]:
        with queue.reading() as session:
            counts = Snapshot.status_counts(session, statuses=Snapshot.OPEN_STATES)
        if any(counts.values()):
            return {"retry_at": now_of(queue)}
        return {"status": "sealed"}

    run_due(Crawl, advance, database=queue)
    assert load(queue, crawl).status == "started"
    run_due(Snapshot, lambda *_: {"status": "sealed"}, database=queue, limit=1)
    run_due(Crawl, advance, database=queue)
    assert load(queue, crawl).status == "started"
    run_due(Snapshot, lambda *_: {"status": "sealed"}, database=queue)
    run_due(Crawl, advance, database=queue)
    assert load(queue, crawl).status == "sealed"


# --- who gets a row ----------------------------------------------------------------------------------------------


def test_many_runners_handle_each_row_once(queue: Database) -> None:
    for _ in range(40):
        insert(queue, Crawl())
    handled: list[int] = []
    barrier = threading.Barrier(8)

    def handle(crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        handled.append(crawl.id)
        return {"status": "sealed"}

    def run() -> RunCounts:
        barrier.wait(timeout=60)
        return run_due(Crawl, handle, database=queue)

    with ThreadPoolExecutor(8) as pool:
        counts = [future.result() for future in [pool.submit(run) for _ in range(8)]]
    assert sorted(handled) == list(range(1, 41))
    assert sum(count.handled for count in counts) == 40
    assert sum(count.failed for count in counts) == 0


def test_the_loser_gives_up(queue: Database) -> None:
    first, second = insert(queue, Crawl(retry_at=ago(queue, 2))), insert(queue, Crawl(retry_at=ago(queue, 1)))
    handled: list[int] = []

    def handle(crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        handled.append(crawl.id)
        # Selected in the same round, and taken by another runner meanwhile.
        change(queue, second, retry_at=ago(queue, -60))
        return {"status": "sealed"}

    assert run_due(Crawl, handle, database=queue) == RunCounts(handled=1, lost=1)
    assert handled == [first.id]


def test_a_row_deleted_or_paused_before_its_turn(queue: Database) -> None:
    for seconds in (3, 2, 1):
        insert(queue, Crawl(retry_at=ago(queue, seconds)))

    def handle(_crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        with queue.transaction() as session:
            session.delete(session.get_one(Crawl, 2))
            # By the status alone, without touching the due time.
            session.execute(update(Crawl).where(Crawl.id == 3).values(status="paused"))
        return {"status": "sealed"}

    paused_due = load(queue, Crawl(id=3)).retry_at
    assert run_due(Crawl, handle, database=queue) == RunCounts(handled=1, lost=2)
    stored = load(queue, Crawl(id=3))
    assert (stored.status, stored.retry_at) == ("paused", paused_due)


def test_a_model_that_refuses_claims_is_not_run(queue: Database) -> None:
    insert(queue, Errand())
    with pytest.raises(ClaimRefusedError, match="claimed through its key"):
        run_due(Errand, never, database=queue)


# --- renewal -----------------------------------------------------------------------------------------------------


def test_the_lease_is_renewed_while_the_handler_lives(queue: Database) -> None:
    insert(queue, Crawl())

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        claimed = retry_at(queue, crawl)
        # Longer than the lease that was claimed: without renewals somebody else would have it by now.
        wait_until(lambda: now_of(queue) > claimed, timeout=20)
        assert retry_at(queue, crawl) > now_of(queue)
        assert lease.held
        assert run_due(Crawl, never, database=queue) == RunCounts()
        return {"status": "sealed"}

    assert run_due(Crawl, handle, database=queue, lock_seconds=SHORT_LEASE).handled == 1
    assert load(queue, Crawl(id=1)).status == "sealed"


def test_the_renewing_ends_with_the_handler(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    run_due(Crawl, lambda *_: None, database=queue, lock_seconds=SHORT_LEASE)
    assert [thread.name for thread in threading.enumerate() if "lease" in thread.name] == []
    wait_until(lambda: now_of(queue) > retry_at(queue, crawl), timeout=20)
    assert run_due(Crawl, seal, database=queue).handled == 1


def change_while_handled(queue: Database, **fields: Any) -> tuple[RunCounts, Crawl, list[Any]]:
    """Write `fields` behind the handler's back, wait until it is told, and let it answer all the same."""
    insert(queue, Crawl())

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        change(queue, crawl, **fields)
        wait_until(lambda: not lease.held, timeout=20)
        return {"status": "started", "title": "mine", "retry_at": now_of(queue)}

    with capture_logs() as logs:
        counts = run_due(Crawl, handle, database=queue, lock_seconds=SHORT_LEASE)
    # The runner survives an exception of the handler, also that of an assertion.
    assert "queue row failed" not in [entry["event"] for entry in logs]
    return counts, load(queue, Crawl(id=1)), logs


def test_a_cancelled_row_is_not_revived(queue: Database) -> None:
    counts, stored, logs = change_while_handled(queue, status="sealed", retry_at=None)
    assert counts == RunCounts(lost=1)
    assert (stored.status, stored.title, stored.retry_at) == ("sealed", "", None)
    lost = [entry for entry in logs if entry["event"] == "lease of a queue row lost"]
    assert [(entry["model"], entry["key"], entry["log_level"]) for entry in lost] == [
        ("Crawl", "1", "warning")
    ]


def test_a_row_cancelled_by_its_status_alone_is_not_revived(queue: Database) -> None:
    counts, stored, _ = change_while_handled(queue, status="sealed")
    assert counts == RunCounts(lost=1)
    assert (stored.status, stored.title) == ("sealed", "")
    # Its lease runs out, and then it leaves the queue.
    change(queue, stored, retry_at=ago(queue, 1))
    assert run_due(Crawl, never, database=queue) == RunCounts(cleaned=1)


def test_a_row_paused_meanwhile_stays_paused(queue: Database) -> None:
    counts, stored, _ = change_while_handled(queue, status="paused", retry_at=RETRY_AT_MAX)
    assert counts == RunCounts(lost=1)
    assert (stored.status, stored.title, stored.retry_at) == ("paused", "", RETRY_AT_MAX)


def test_a_row_taken_over_is_not_touched(queue: Database) -> None:
    theirs = ago(queue, -1000)
    counts, stored, _ = change_while_handled(queue, retry_at=theirs, title="theirs")
    assert counts == RunCounts(lost=1)
    assert (stored.status, stored.title, stored.retry_at) == ("started", "theirs", theirs)


def test_a_row_deleted_meanwhile(queue: Database) -> None:
    insert(queue, Crawl())

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        with queue.transaction() as session:
            session.delete(session.get_one(Crawl, crawl.id))
        wait_until(lambda: not lease.held, timeout=20)
        return {"status": "sealed"}

    with capture_logs() as logs:
        assert run_due(Crawl, handle, database=queue, lock_seconds=SHORT_LEASE) == RunCounts(lost=1)
    assert "queue row failed" not in [entry["event"] for entry in logs]


def test_a_cancel_right_before_the_answer_stands(queue: Database) -> None:
    insert(queue, Crawl())

    def handle(crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        change(queue, crawl, status="sealed")
        return {"status": "queued", "retry_at": now_of(queue)}

    # No renewal came in between: the guard of the answer alone has to see it.
    assert run_due(Crawl, handle, database=queue) == RunCounts(lost=1)
    assert load(queue, Crawl(id=1)).status == "sealed"


def test_a_renewal_that_fails_once_is_made_up_for(queue: Database) -> None:
    insert(queue, Crawl())
    failures: list[str] = []

    def fail_once(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "lease" in threading.current_thread().name and statement.startswith("UPDATE") and not failures:
            failures.append(statement)
            raise OperationalError(statement, {}, Exception("the connection went away"))

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        claimed = retry_at(queue, crawl)
        wait_until(lambda: now_of(queue) > claimed, timeout=20)
        assert lease.held
        return {"status": "sealed"}

    event.listen(queue._heartbeat_engine, "before_cursor_execute", fail_once)
    with capture_logs() as logs:
        assert run_due(Crawl, handle, database=queue, lock_seconds=SHORT_LEASE).handled == 1
    assert len(failures) == 1
    assert [entry["event"] for entry in logs] == ["lease of a queue row not renewed"]
    assert load(queue, Crawl(id=1)).status == "sealed"


def test_a_renewal_whose_answer_was_lost_costs_nothing(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(queue, Crawl())
    renewing = queue.heartbeat
    lost: list[str] = []

    @contextmanager
    def losing_the_first_answer() -> Iterator[Session]:
        with renewing() as session:
            yield session
        if not lost:
            lost.append("the server had committed")
            raise OperationalError("COMMIT", {}, Exception("the connection went away"))

    def handle(crawl: Crawl, lease: Lease) -> dict[str, Any]:
        claimed = retry_at(queue, crawl)
        wait_until(lambda: lost, timeout=20)
        unheard_of = retry_at(queue, crawl)
        assert unheard_of > claimed
        assert lease.values == (claimed, unheard_of)
        wait_until(lambda: len(lease.values) == 1, timeout=20)
        assert lease.held
        return {"status": "sealed"}

    monkeypatch.setattr(queue, "heartbeat", losing_the_first_answer)
    assert run_due(Crawl, handle, database=queue, lock_seconds=SHORT_LEASE) == RunCounts(handled=1)


@pytest.mark.parametrize("engine_name", [pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_a_row_cancelled_while_it_is_being_claimed_is_not_revived(
    queue: Database, open_database: Callable[[], Database]
) -> None:
    """Between the SELECT and the UPDATE of the claim; on SQLite, nobody can write there."""
    crawl, elsewhere = insert(queue, Crawl()), open_database()
    cancelled: list[str] = []

    def cancel_first(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE test_crawls") and not cancelled:
            cancelled.append(statement)
            change(elsewhere, crawl, status="sealed")

    event.listen(queue.engine, "before_cursor_execute", cancel_first)
    assert run_due(Crawl, never, database=queue) == RunCounts(cleaned=1)
    stored = load(queue, crawl)
    assert (stored.status, stored.retry_at) == ("sealed", None)


# --- a live process ----------------------------------------------------------------------------------------------


def test_a_live_process_is_not_started_twice(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="started", retry_at=ago(queue, 5)))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:

        def is_alive(row: Crawl) -> bool:
            assert row.id == crawl.id
            return process.poll() is None

        assert run_due(Crawl, never, database=queue, is_alive=is_alive) == RunCounts(alive=1)
        stored = load(queue, crawl)
        assert stored.status == "started"
        assert timedelta(seconds=50) < retry_at(queue, crawl) - now_of(queue) <= timedelta(seconds=60)

        process.communicate(b"\n")
        change(queue, crawl, retry_at=ago(queue, 1))
        assert run_due(Crawl, seal, database=queue, is_alive=is_alive).handled == 1
    assert load(queue, crawl).status == "sealed"


def test_a_question_that_fails_starts_nothing(queue: Database) -> None:
    crawl = insert(queue, Crawl())

    def is_alive(_row: Crawl) -> bool:
        raise OSError("no such process table")

    with capture_logs() as logs:
        assert run_due(Crawl, never, database=queue, is_alive=is_alive) == RunCounts(failed=1)
    assert logs[0]["event"] == "queue row failed"
    assert retry_at(queue, crawl) > now_of(queue)


def test_the_row_of_a_killed_runner_is_taken_up(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.queue_models"])
    started = context.Event()
    url = queue.url.render_as_string(hide_password=False)
    process = context.Process(
        target=run_for_ever, args=(url, queue.instance_path, SHORT_LEASE, started), daemon=True
    )
    process.start()
    try:
        assert started.wait(timeout=60)
        assert run_due(Crawl, never, database=queue) == RunCounts()
    finally:
        process.kill()
        process.join(timeout=20)
    wait_until(lambda: run_due(Crawl, seal, database=queue).handled == 1, timeout=20)
    assert load(queue, crawl).status == "sealed"


# --- failures ----------------------------------------------------------------------------------------------------


def test_a_failure_is_logged_and_keeps_nobody_from_its_turn(queue: Database) -> None:
    bad, good = insert(queue, Crawl(retry_at=ago(queue, 2))), insert(queue, Crawl(retry_at=ago(queue, 1)))

    def handle(crawl: Crawl, _lease: Lease) -> dict[str, Any]:
        if crawl.id == bad.id:
            raise RuntimeError("no space left")
        return {"status": "sealed"}

    with capture_logs() as logs:
        counts = run_due(Crawl, handle, database=queue, failure_delay_seconds=300)
    assert counts == RunCounts(handled=1, failed=1)
    assert [(entry["event"], entry["model"], entry["key"], str(entry["exc_info"])) for entry in logs] == [
        ("queue row failed", "Crawl", "1", "no space left")
    ]
    stored = load(queue, bad)
    assert stored.status == "queued"
    assert timedelta(seconds=290) < retry_at(queue, bad) - now_of(queue) <= timedelta(seconds=300)
    assert load(queue, good).status == "sealed"


def test_an_interruption_ends_the_runner_and_leaves_the_lease_to_end(queue: Database) -> None:
    crawl = insert(queue, Crawl())

    def handle(_crawl: Crawl, _lease: Lease) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_due(Crawl, handle, database=queue)
    assert load(queue, crawl).status == "started"
    assert retry_at(queue, crawl) > now_of(queue)
    assert [thread.name for thread in threading.enumerate() if "lease" in thread.name] == []


# --- cleanup -----------------------------------------------------------------------------------------------------


def test_a_final_row_with_a_due_time_leaves_the_queue(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="sealed", retry_at=ago(queue, 1)))
    assert run_due(Crawl, never, database=queue) == RunCounts(cleaned=1)
    stored = load(queue, crawl)
    assert (stored.status, stored.retry_at) == ("sealed", None)
    assert run_due(Crawl, never, database=queue) == RunCounts()


def test_a_final_row_is_cleaned_up_before_it_leaves(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="sealed", retry_at=ago(queue, 1)))
    cleaned: list[tuple[int, str]] = []

    def cleanup(row: Crawl) -> None:
        assert retry_at(queue, row) > now_of(queue)
        cleaned.append((row.id, row.status))

    assert run_due(Crawl, never, database=queue, cleanup=cleanup) == RunCounts(cleaned=1)
    assert cleaned == [(crawl.id, "sealed")]
    assert load(queue, crawl).retry_at is None


def test_what_becomes_final_is_cleaned_up_in_the_same_round(queue: Database) -> None:
    crawl = insert(queue, Crawl())
    cleaned: list[int] = []
    counts = run_due(Crawl, seal, database=queue, cleanup=lambda row: cleaned.append(row.id))
    assert counts == RunCounts(handled=1, cleaned=1)
    assert cleaned == [crawl.id]
    assert load(queue, crawl).retry_at is None


def test_a_cleanup_that_fails_is_tried_again(queue: Database) -> None:
    crawl = insert(queue, Crawl())

    def fail(_row: Crawl) -> None:
        raise OSError("disk is busy")

    with capture_logs() as logs:
        assert run_due(Crawl, seal, database=queue, cleanup=fail) == RunCounts(handled=1, failed=1)
    assert [str(entry["exc_info"]) for entry in logs] == ["disk is busy"]
    stored = load(queue, crawl)
    assert stored.status == "sealed"
    assert stored.retry_at is not None
    change(queue, crawl, retry_at=ago(queue, 1))
    assert run_due(Crawl, never, database=queue) == RunCounts(cleaned=1)


@pytest.mark.parametrize("with_due_time", [True, False])
def test_a_row_reopened_during_its_cleanup_stays_in_the_queue(queue: Database, with_due_time: bool) -> None:
    crawl = insert(queue, Crawl(status="sealed", retry_at=ago(queue, 1)))
    due = ago(queue, 1)

    def reopen(row: Crawl) -> None:
        change(queue, row, status="queued", **({"retry_at": due} if with_due_time else {}))

    assert run_due(Crawl, never, database=queue, cleanup=reopen) == RunCounts(lost=1)
    stored = load(queue, crawl)
    assert stored.status == "queued"
    assert stored.retry_at == due if with_due_time else retry_at(queue, crawl) > due


# --- repair ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "started"])
def test_an_unfinished_row_without_a_due_time_is_repaired(queue: Database, status: str) -> None:
    crawl = insert(queue, Crawl(status=status, retry_at=None))
    with capture_logs() as logs:
        assert run_due(Crawl, seal, database=queue) == RunCounts(handled=1, repaired=1)
    assert (logs[0]["model"], logs[0]["rows"], logs[0]["log_level"]) == ("Crawl", 1, "warning")
    assert load(queue, crawl).status == "sealed"


def test_a_paused_row_without_a_due_time_stays_paused(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="paused", retry_at=None))
    assert run_due(Crawl, never, database=queue) == RunCounts(repaired=1)
    stored = load(queue, crawl)
    assert (stored.status, stored.retry_at) == ("paused", RETRY_AT_MAX)
    assert run_due(Crawl, never, database=queue) == RunCounts()


def test_a_final_row_without_a_due_time_is_as_it_should_be(queue: Database) -> None:
    crawl = insert(queue, Crawl(status="sealed", retry_at=None))
    before = load(queue, crawl).modified_at
    assert run_due(Crawl, never, database=queue, cleanup=never_cleaned) == RunCounts()
    assert load(queue, crawl).modified_at == before


def test_an_idle_key_is_not_repaired_and_a_leased_one_is(queue: Database) -> None:
    idle = insert(queue, Key(key="idle.example.org"))
    leased = insert(queue, Key(key="leased.example.org", status="leased"))
    counts = run_due(Key, lambda *_: {"status": "idle", "retry_at": None}, database=queue)
    assert counts == RunCounts(handled=1, repaired=1)
    for key in (idle, leased):
        stored = load(queue, key)
        assert (stored.status, stored.retry_at) == ("idle", None)
