"""The warning about rows that are saved outside the runner."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from inspect import currentframe
from typing import Any

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from tests.helpers.queue_models import Binary, Crawl, create_tables, insert, load
from webqueue.database import Database
from webqueue.leases import inside_runner, run_due


@pytest.fixture
def queue(database: Database) -> Database:
    return create_tables(database)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as captured:
        yield captured


def this_line() -> int:
    frame = currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_flush_names_its_caller(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())
    with queue.transaction() as session:
        crawl = session.get_one(Crawl, 1)
        crawl.status = "started"
        # fmt: off
        session.flush(); line = this_line()  # noqa: E702 - one line on purpose
        # fmt: on
    assert logs == [
        {
            "event": "queue row saved outside the runner",
            "log_level": "warning",
            "model": "Crawl",
            "key": "1",
            "file": __file__,
            "line": line,
        }
    ]


def test_an_autoflush_names_its_caller(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())
    with queue.transaction() as session:
        session.get_one(Crawl, 1).title = "x"
        line = this_line() + 1
        session.scalars(select(Crawl)).all()
    assert [(entry["file"], entry["line"]) for entry in logs] == [(__file__, line)]


def test_a_commit_names_the_transaction_not_what_carries_it(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())
    line = this_line() + 1
    with queue.transaction() as session:
        session.get_one(Crawl, 1).title = "x"
    assert [(entry["file"], entry["line"]) for entry in logs] == [(__file__, line)]


def test_an_insert_does_not_warn(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())
    assert logs == []


def test_a_change_that_changes_nothing_does_not_warn(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl(title="same"))
    with queue.transaction() as session:
        session.get_one(Crawl, 1).title = "same"
    assert logs == []


def test_a_model_may_switch_it_off(queue: Database, logs: list[Any]) -> None:
    binary = insert(queue, Binary(name="wget", version=1))
    with queue.transaction() as session:
        session.add(binary)
        binary.status = "installed"
    assert logs == []
    assert load(queue, binary).status == "installed"


def test_the_verbs_of_the_protocol_do_not_warn(queue: Database, logs: list[Any]) -> None:
    crawl = insert(queue, Crawl())
    with queue.transaction() as session:
        session.add(crawl)
        assert crawl.claim_processing_lock()
        assert crawl.pause()
        assert crawl.resume()
        assert crawl.update_and_requeue(title="x")
        session.execute(update(Crawl).values(note="by a statement"))
    assert logs == []


def test_inside_the_runner_nothing_warns(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())
    with inside_runner(), queue.transaction() as session:
        session.get_one(Crawl, 1).title = "x"
    assert logs == []
    with queue.transaction() as session:
        session.get_one(Crawl, 1).title = "y"
    assert len(logs) == 1


def test_another_thread_is_not_inside_the_runner(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())

    def save() -> None:
        with queue.transaction() as session:
            session.get_one(Crawl, 1).title = "x"

    with inside_runner():
        thread = threading.Thread(target=save)
        thread.start()
        thread.join()
    assert [entry["event"] for entry in logs] == ["queue row saved outside the runner"]


def test_a_handler_of_the_runner_does_not_warn(queue: Database, logs: list[Any]) -> None:
    insert(queue, Crawl())

    def handle(crawl: Crawl, _lease: object) -> dict[str, Any]:
        with queue.transaction() as session:
            session.add(crawl)
            crawl.title = "by the handler"
        return {"status": "sealed"}

    assert run_due(Crawl, handle, database=queue).handled == 1
    assert logs == []
