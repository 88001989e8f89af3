"""What a transaction holds from its first moment on."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import func, select

from webqueue import clock
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.db import read_anew, reading
from webqueue.models import StoredSetting
from webqueue.settings import Settings


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


def test_a_page_shows_one_moment(settings: Settings, database: Database) -> None:
    """Else a version that is read after a row would call an old row a new one, and a poll answer 204 for ever."""
    counting = select(func.count()).select_from(StoredSetting)
    with create_app(settings, database).app_context():
        before = reading().scalar(counting)
        database.run(lambda s: StoredSetting.put(s, "news", True, at=clock.now(s), by="ann"))
        assert reading().scalar(counting) == before
        read_anew()
        assert reading().scalar(counting) == (before or 0) + 1
