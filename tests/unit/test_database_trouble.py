"""What a user is told when the database is in trouble; and that what only concerns the request is not taken for it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError

from webqueue.database import trouble_of


def error_of(*statements: str) -> DBAPIError:
    """What SQLite makes of the last of these statements."""
    with create_engine("sqlite://").connect() as connection:
        for statement in statements[:-1]:
            connection.execute(text(statement))
        with pytest.raises(DBAPIError) as raised:
            connection.execute(text(statements[-1]))
    return raised.value


def test_a_full_disk() -> None:
    error = error_of(
        "CREATE TABLE t (x)", "PRAGMA max_page_count = 2", "INSERT INTO t VALUES (randomblob(100000))"
    )
    assert "The disk of the database is full." in str(trouble_of(error))


def test_a_file_that_cannot_be_written() -> None:
    error = error_of("PRAGMA query_only = ON", "CREATE TABLE t (x)")
    assert "The database cannot be written." in str(trouble_of(error))


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as raised:
        create_engine(f"sqlite:///{tmp_path / 'no' / 'such.sqlite3'}").connect()
    assert "The database cannot be opened." in str(trouble_of(raised.value))


def test_a_server_whose_disk_is_full() -> None:
    error = OperationalError("INSERT", {}, psycopg.errors.DiskFull("No space left on device"))
    assert "The disk of the database is full." in str(trouble_of(error))


def test_a_server_that_is_away_without_its_address() -> None:
    told = trouble_of(
        OperationalError("SELECT", {}, psycopg.OperationalError("connection to server at 10.0.0.7 failed"))
    )
    assert told == "The database does not answer. Try again."


def test_what_is_the_requests_own() -> None:
    unique = error_of("CREATE TABLE t (x UNIQUE)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)")
    assert isinstance(unique, IntegrityError)
    assert trouble_of(unique) is None
    assert trouble_of(ProgrammingError("SELECT", {}, sqlite3.ProgrammingError("no"))) is None
