"""Wake-ups between processes: what one commits, the other hears. They are hints; the poll is the truth."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until
from webqueue.database import Database, Listener, request_wakeup
from webqueue.database.listener import open_connection
from webqueue.database.sockets import WakeupSockets


@contextmanager
def listening(database: Database, name: str) -> Iterator[list[int]]:
    """Counts the wake-ups that arrive."""
    heard: list[int] = []
    listener = Listener(database, name, on_wakeup=lambda: heard.append(1))
    listener.start()
    try:
        yield heard
    finally:
        listener.stop()


def commit_work(database: Database) -> None:
    database.run(request_wakeup)


def hears(database: Database, heard: list[int], sender: Database) -> None:
    """Wait until the listener stands, and one wake-up went through."""
    before = len(heard)

    def arrived() -> bool:
        commit_work(sender)
        return len(heard) > before

    wait_until(arrived, message="a wake-up to arrive")


def test_what_one_process_commits_wakes_the_other(
    database: Database, open_database: Callable[[], Database]
) -> None:
    other = open_database()
    with listening(other, "listener") as heard:
        hears(other, heard, database)


def test_a_rolled_back_transaction_wakes_nobody(
    database: Database, open_database: Callable[[], Database]
) -> None:
    other = open_database()
    with listening(other, "listener") as heard:
        hears(other, heard, database)
        wait_until(lambda: _is_quiet(heard))
        before = len(heard)
        generation = database.wakeup.generation
        with pytest.raises(RuntimeError, match="rolled back"):
            database.run(_fail_after_request)
        assert database.wakeup.generation == generation
        commit_work(database)
        wait_until(lambda: len(heard) > before)
        wait_until(lambda: _is_quiet(heard))
        assert len(heard) == before + 1


def _fail_after_request(session: Session) -> None:
    request_wakeup(session)
    raise RuntimeError("rolled back")


_last: dict[int, tuple[int, int]] = {}


def _is_quiet(heard: list[int]) -> bool:
    """Whether nothing new was heard for 60 looks in a row (0.6 s, longer than the data version needs)."""
    count, looks = _last.get(id(heard), (-1, 0))
    looks = looks + 1 if count == len(heard) else 0
    _last[id(heard)] = (len(heard), looks)
    return looks > 60


def test_nobody_is_woken_by_what_it_committed_itself(database: Database) -> None:
    with listening(database, "listener") as heard:
        wait_until(lambda: _is_quiet(heard))
        before = len(heard)
        generation = database.wakeup.generation
        commit_work(database)
        assert database.wakeup.generation == generation + 1, "its own threads were told directly"
        wait_until(lambda: _is_quiet(heard))
        assert len(heard) == before


@pytest.mark.postgresql
def test_the_connection_is_made_again_when_the_server_cuts_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.create_database(empty=True)
    database, other = Database(url, instance_path=tmp_path), Database(url, instance_path=tmp_path)
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )
    try:
        with listening(other, "listener") as heard:
            hears(other, heard, database)
            with database.reading() as session:
                assert session.execute(text(cut)).all() == [(True,)]
            hears(other, heard, database)
            before = len(heard)
            wait_until(lambda: _is_quiet(heard))
            hears(other, heard, database)
            assert len(heard) > before
    finally:
        database.close()
        other.close()
        postgres_server.drop_database(url)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Callable[[Path], Database]]:
    opened: list[Database] = []

    def opener(instance: Path) -> Database:
        database = Database(f"sqlite:///{tmp_path / 'db.sqlite3'}", instance_path=instance)
        opened.append(database)
        return database

    yield opener
    for database in opened:
        database.close()


def test_without_a_socket_the_data_version_tells(sqlite: Callable[[Path], Database], tmp_path: Path) -> None:
    """A path over 107 bytes is no address of a socket."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    database, other = sqlite(deep), sqlite(deep)
    with listening(other, "listener") as heard:
        assert list((deep / "workers").glob("*") if (deep / "workers").exists() else []) == []
        with database.transaction() as session:
            session.execute(text("CREATE TABLE t (n INTEGER)"))
        wait_until(lambda: bool(heard))


def test_the_sockets_of_killed_processes_are_cleared_away(
    sqlite: Callable[[Path], Database], tmp_path: Path
) -> None:
    database = sqlite(tmp_path)
    program = (
        "import os, pathlib, signal, sys\n"
        "from webqueue.database.sockets import WakeupSockets\n"
        "s = WakeupSockets(pathlib.Path(sys.argv[1])).listen('victim')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "workers")], check=False)
    assert (tmp_path / "workers" / "victim.sock").exists()
    commit_work(database)
    assert not (tmp_path / "workers" / "victim.sock").exists()


def test_a_full_socket_does_not_hold_a_commit_up(sqlite: Callable[[Path], Database], tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    assert database.sockets is not None
    receiver = sqlite(tmp_path).sockets.listen("deaf")  # type: ignore[union-attr]
    assert isinstance(receiver, socket.socket)
    try:
        for _ in range(2_000):
            database.sockets.notify()
    finally:
        receiver.close()


def test_a_listener_leaves_nothing_behind(sqlite: Callable[[Path], Database], tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    with listening(database, "listener"):
        wait_until((tmp_path / "workers" / "listener.sock").exists)
    assert list((tmp_path / "workers").iterdir()) == []


def test_open_connection_is_the_databases_own(database: Database) -> None:
    connection = open_connection(database)
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM jobs")
        assert cursor.fetchone()[0] == 0
    finally:
        connection.close()


def test_sockets_that_cannot_be_listed_are_told_and_stop_no_writer(tmp_path: Path) -> None:
    WakeupSockets(tmp_path / "nobody").notify()
    in_its_place = tmp_path / "workers"
    in_its_place.write_text("no folder")
    with capture_logs() as lines:
        WakeupSockets(in_its_place).notify()
    [line] = lines
    assert line["event"] == "no wake-up sent: the sockets cannot be listed"
    assert line["path"] == str(in_its_place)
