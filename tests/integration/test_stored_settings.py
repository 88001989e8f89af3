"""Stored settings: read anew, and put in the place of what stands there, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from webqueue.database import Database
from webqueue.models import StoredSetting

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "a setting"


def stored(database: Database) -> tuple[object, datetime, str]:
    with database.reading() as session:
        row = session.get_one(StoredSetting, NAME)
        return row.value, row.changed_at, row.changed_by


@pytest.mark.parametrize("value", [{"a": ["政府", None]}, [], "", 0, False, True])
def test_what_is_put_is_read(database: Database, value: object) -> None:
    with database.reading() as session:
        assert StoredSetting.read(session, NAME) is None
    database.run(lambda session: StoredSetting.put(session, NAME, value, at=NOW, by="ann"))
    with database.reading() as session:
        assert StoredSetting.read(session, NAME) == value
    assert stored(database) == (value, NOW, "ann")


def test_one_is_put_in_the_place_of_another_also_in_one_transaction(database: Database) -> None:
    def twice(session: Session) -> None:
        StoredSetting.put(session, NAME, 1, at=NOW, by="ann")
        StoredSetting.put(session, NAME, 2, at=NOW + timedelta(seconds=1), by="ben")
        assert StoredSetting.read(session, NAME) == 2

    database.run(twice)
    assert stored(database) == (2, NOW + timedelta(seconds=1), "ben")
    database.run(lambda session: StoredSetting.put(session, NAME, 3, at=NOW))
    assert stored(database) == (3, NOW, "")


def test_what_the_session_has_loaded_before_does_not_count(database: Database) -> None:
    """Another process has changed it while this one waited for its turn."""
    database.run(lambda session: StoredSetting.put(session, NAME, "old", at=NOW, by="ann"))

    def put_back(session: Session) -> None:
        assert session.get_one(StoredSetting, NAME).value == "old"
        changed = update(StoredSetting).where(StoredSetting.name == NAME).values(value="new")
        session.execute(changed, execution_options={"synchronize_session": False})
        assert StoredSetting.read(session, NAME) == "new"
        StoredSetting.put(session, NAME, "old", at=NOW, by="ann")

    database.run(put_back)
    assert stored(database)[0] == "old"
