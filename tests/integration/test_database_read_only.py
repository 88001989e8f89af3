"""A connection to SQLite that can only read is not kept: the file may be written again, but it would not know."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.helpers.world import World
from webqueue.database import Database


@pytest.fixture(autouse=True)
def _sqlite_only(engine_name: str) -> None:
    if engine_name != "sqlite":
        pytest.skip("PostgreSQL tells each transaction anew whether it may write")


def make_read_only(database: Database) -> None:
    """Leave a pooled connection behind that answers SQLITE_READONLY to every write."""
    with database.engine.connect() as connection:
        connection.execute(text("PRAGMA query_only = ON"))


def test_the_next_try_has_a_connection_that_writes(database: Database) -> None:
    make_read_only(database)
    tries = []

    def write(session: Session) -> None:
        tries.append(1)
        session.execute(text("DELETE FROM jobs"))

    database.run(write)
    assert tries == [1], "it is refused when it begins, before any work"
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_file_that_stays_read_only_is_an_error_that_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda *_: 0.01)
    tries = []

    def write(session: Session) -> None:
        tries.append(1)
        session.execute(text("PRAGMA query_only = ON"))
        session.execute(text("DELETE FROM jobs"))

    with pytest.raises(DBAPIError, match="readonly database") as raised:
        database.run(write, attempts=3)
    assert len(tries) == 3
    assert raised.value.connection_invalidated
    assert isinstance(raised.value.orig, sqlite3.OperationalError)
    World(database).add_site()
