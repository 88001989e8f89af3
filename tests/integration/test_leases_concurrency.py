"""Many claim one row: one gets it."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.helpers.queue_models import Crawl, ago, claim_in_process, create_tables, insert, load, now_of
from tests.helpers.waiting import wait_until
from webqueue.database import Database

THREADS = 32
PROCESSES = 8


@pytest.fixture
def queue(database: Database) -> Database:
    return create_tables(database)


def race(queue: Database, crawl: Crawl) -> list[bool]:
    """What each of many threads is told that loaded the row before the first of them claims it."""
    barrier = threading.Barrier(THREADS)

    def claim() -> bool:
        copy = load(queue, crawl)
        barrier.wait(timeout=60)
        with queue.transaction() as session:
            session.add(copy)
            return copy.claim_processing_lock()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(claim) for _ in range(THREADS)]]


def test_of_32_threads_one_gets_the_row(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=ago(queue, 1)))
    for _ in range(5):
        assert race(queue, crawl).count(True) == 1
        held = load(queue, crawl)
        assert held.retry_at is not None
        assert held.retry_at > now_of(queue)
        with queue.transaction() as session:
            session.add(held)
            assert held.update_and_requeue(retry_at=held.modified_at - timedelta(microseconds=1))


def test_of_8_processes_one_gets_the_row(queue: Database) -> None:
    crawl = insert(queue, Crawl(retry_at=ago(queue, 1)))
    # Neither this process's threads nor its connections may be copied into the others.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.queue_models"])
    barrier, answers = context.Barrier(PROCESSES), context.SimpleQueue()
    url = queue.url.render_as_string(hide_password=False)
    processes = [
        context.Process(
            target=claim_in_process, args=(url, queue.instance_path, crawl.id, barrier, answers), daemon=True
        )
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert [answers.get() for _ in processes].count(True) == 1
    held = load(queue, crawl)
    assert held.retry_at is not None
    assert held.retry_at > now_of(queue)


@pytest.mark.parametrize("first_commits", [True, False])
def test_a_claim_waits_for_the_one_before_it(queue: Database, first_commits: bool) -> None:
    """The second sees what the first came to: it loses after a commit, and wins after a rollback."""
    first = insert(queue, Crawl(retry_at=ago(queue, 1)))
    second = load(queue, first)
    begun = threading.Event()

    def claim() -> bool:
        begun.set()
        with queue.transaction() as session:
            session.add(second)
            return Crawl.claim_for_worker(second)

    def waits() -> bool:
        if queue.is_sqlite:
            return begun.is_set()
        with queue.reading() as session:
            return bool(session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))

    with ThreadPoolExecutor(1) as pool:
        with queue.transaction() as session:
            session.add(first)
            assert Crawl.claim_for_worker(first)
            result = pool.submit(claim)
            wait_until(waits, message="the second claim to wait")
            assert not result.done()
            if not first_commits:
                session.rollback()
        assert result.result(timeout=60) is not first_commits
