"""What a transaction holds from its first moment on."""

from __future__ import annotations

import sqlite3

import pytest

from webqueue.database import Database


@pytest.mark.parametrize("kind", ["transaction", "heartbeat"])
def test_a_transaction_of_sqlite_holds_the_write_lock_before_its_first_statement(
    database: Database, kind: str
) -> None:
    """Times are read in it before anything is sent: they must not be older than the wait for the lock."""
    if not database.is_sqlite:
        pytest.skip("PostgreSQL locks rows, and the verbs read the time after that")
    with getattr(database, kind)():
        other = sqlite3.connect(str(database.url.database), timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
