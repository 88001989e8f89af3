"""Migrations, on both databases: they make the tables of the models, once, and lose nothing."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event, select, text

from webqueue import access, migrations
from webqueue.database import Database
from webqueue.migrations import MigrationError, copy_before, is_current, upgrade
from webqueue.migrations.search_index import is_own
from webqueue.models import Base, Token, User

FIRST = "0001"


@pytest.fixture
def empty(empty_database_url: str, instance: Path) -> Iterator[Database]:
    database = Database(empty_database_url, instance_path=instance)
    yield database
    database.close()


def upgrade_to(database: Database, revision: str) -> None:
    config = migrations._config()
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def test_the_migrations_make_the_tables_of_the_models(empty: Database) -> None:
    assert upgrade(empty) is True
    assert is_current(empty)
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_name": is_own})
        assert compare_metadata(context, Base.metadata) == []


def test_a_second_upgrade_does_nothing(empty: Database) -> None:
    upgrade(empty)
    assert upgrade(empty) is False


def test_one_of_many_does_it(empty: Database, empty_database_url: str, instance: Path) -> None:
    others = [Database(empty_database_url, instance_path=instance) for _ in range(4)]
    did: list[bool] = []
    start = threading.Barrier(len(others))

    def one(database: Database) -> None:
        start.wait()
        did.append(upgrade(database))

    threads = [threading.Thread(target=one, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.close()
    assert sorted(did) == [False, False, False, True]


def test_tables_of_a_newer_version_are_refused(empty: Database) -> None:
    upgrade(empty)
    with empty.engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    with pytest.raises(MigrationError, match=r"newer webqueue \(revision 9999\)"):
        upgrade(empty)


def test_users_of_before_read_the_language_of_their_browser(empty: Database) -> None:
    upgrade_to(empty, "0006")
    columns = "name, password_hash, role, session_key, theme, created_at"
    row = "'ann', 'x', 'viewer', 'x', 'dark', '2026-01-01 00:00:00.000000'"
    with empty.engine.connect() as connection:
        connection.execute(text(f"INSERT INTO users ({columns}) VALUES ({row})"))
        connection.commit()
    assert upgrade(empty) is True
    with empty.reading() as session:
        ann = session.scalars(select(User)).one()
        assert (ann.name, ann.theme, ann.language) == ("ann", "dark", None)
    empty.run(lambda s: access.set_language(s, ann.id, "zh"))
    with empty.reading() as session:
        assert session.scalars(select(User.language)).one() == "zh"


def test_who_made_the_tokens_of_before_is_known_from_the_audit_log(empty: Database) -> None:
    upgrade_to(empty, "0012")
    at = "'2026-01-01 00:00:00.000000'"
    with empty.engine.connect() as connection:
        for name in ("ci", "lost"):
            columns = "name, token_hash, role, created_at"
            connection.execute(
                text(f"INSERT INTO tokens ({columns}) VALUES ('{name}', '{name}', 'viewer', {at})")
            )
        for action, by in (("created", "bob"), ("revoked", "ann")):
            columns = 'at, "by", action, object_kind, object_name'
            connection.execute(
                text(f"INSERT INTO audit ({columns}) VALUES ({at}, '{by}', '{action}', 'token', 'ci')")
            )
        connection.commit()
    assert upgrade(empty) is True
    with empty.reading() as session:
        makers = {token.name: token.created_by for token in session.scalars(select(Token))}
    assert makers == {"ci": "bob", "lost": None}


class TestOfAFileInUse:
    """SQLite: a worker of the version before may write at any moment."""

    @pytest.fixture
    def old(self, instance: Path) -> Iterator[Database]:
        database = Database(f"sqlite:///{instance / 'webqueue.sqlite3'}", instance_path=instance)
        upgrade_to(database, "0009")
        yield database
        database.close()

    def test_whoever_writes_meanwhile_waits_and_ruins_nothing(self, old: Database, instance: Path) -> None:
        looks: list[str] = []
        with closing(
            sqlite3.connect(instance / "webqueue.sqlite3", timeout=0, isolation_level=None)
        ) as worker:
            worker.execute("CREATE TABLE seen (number INTEGER)")

            @event.listens_for(old.engine, "after_cursor_execute")
            def write_too(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
                if "FROM alembic_version" in statement:
                    try:
                        worker.execute("INSERT INTO seen VALUES (1)")
                        looks.append("wrote")
                    except sqlite3.OperationalError:
                        looks.append("waits")

            assert upgrade(old) is True
            worker.execute("INSERT INTO seen VALUES (2)")
            assert is_current(old)
        assert {"wrote", "waits"} == set(looks)

    def test_foreign_keys_are_off_meanwhile_and_on_again(self, old: Database) -> None:
        states: list[int] = []

        @event.listens_for(old.engine, "before_cursor_execute")
        def look(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("CREATE INDEX"):
                states.append(
                    connection.connection.driver_connection.execute("PRAGMA foreign_keys").fetchone()[0]
                )

        assert upgrade(old) is True
        assert set(states) == {0}
        with old.engine.connect() as connection:
            assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1


class TestTheCopyOfSQLite:
    """Made before the tables are touched, where there is room."""

    @pytest.fixture
    def old(self, instance: Path) -> Iterator[Database]:
        database = Database(f"sqlite:///{instance / 'webqueue.sqlite3'}", instance_path=instance)
        upgrade_to(database, FIRST)
        with database.engine.connect() as connection:
            row = {"value": '"kept"', "at": "2026-01-01 00:00:00.000000"}
            connection.execute(
                text(
                    "INSERT INTO settings (name, value, changed_at, changed_by) VALUES ('a', :value, :at, '')"
                ),
                row,
            )
            connection.commit()
        yield database
        database.close()

    def test_holds_what_was_there(self, old: Database, instance: Path) -> None:
        assert upgrade(old) is True
        copy = instance / f"webqueue.sqlite3.before-upgrade-from-{FIRST}"
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(FIRST,)]
            assert connection.execute("SELECT value FROM settings WHERE name = 'a'").fetchall() == [
                ('"kept"',)
            ]
        with old.engine.connect() as connection:
            assert (
                connection.execute(text("SELECT value FROM settings WHERE name = 'a'")).scalar_one()
                == '"kept"'
            )

    def test_is_left_out_without_room(self, old: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage("/")

        def full(_path: Any) -> Any:
            return usage._replace(free=0)

        monkeypatch.setattr(shutil, "disk_usage", full)
        assert copy_before(old) is None
        assert upgrade(old) is True

    def test_is_not_made_of_an_empty_file(self, instance: Path) -> None:
        database = Database(f"sqlite:///{instance / 'new.sqlite3'}", instance_path=instance)
        upgrade(database)
        database.close()
        assert list(instance.glob("*.before-upgrade*")) == []
