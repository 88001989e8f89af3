"""Restorations that are refused, interrupted or repeated, and those of older tables: nothing is lost by any of them."""

from __future__ import annotations

import os
import secrets
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import inspect, make_url, text
from structlog.testing import capture_logs

from tests.helpers.postgres import PostgresServer
from webqueue import backup, jobs, migrations
from webqueue import settings as webqueue_settings
from webqueue.backup import BackupError, postgresql_copy
from webqueue.database import Database
from webqueue.migrations import search_index
from webqueue.models import StoredSetting
from webqueue.settings import Settings

EVIDENCE = "requests/2026-11-01.jsonl"
ONLY_SQLITE = pytest.mark.parametrize("engine_name", ["sqlite"])
ONLY_POSTGRESQL = pytest.mark.parametrize(
    "engine_name", [pytest.param("postgresql", marks=pytest.mark.postgresql)]
)


def write(settings: Settings, name: str, content: str) -> Path:
    path = settings.instance_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def mark(database: Database, value: str) -> None:
    """Make a state of the database that is known by its mark."""
    with database.transaction() as session:
        session.execute(text("DELETE FROM settings WHERE name = 'mark'"))
        session.execute(
            text(
                "INSERT INTO settings (name, value, changed_at, changed_by) VALUES ('mark', :value, :at, 'test')"
            ),
            {"value": f'"{value}"', "at": "2026-11-01 00:00:00"},
        )


def marked(database: Database) -> str:
    with database.reading() as session:
        return str(session.get_one(StoredSetting, "mark").value)


def is_paused(database: Database) -> bool:
    with database.reading() as session:
        return jobs.paused_all(session)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def restore(database: Database, settings: Settings, archive: Path, *, paused: bool = True) -> backup.Restored:
    return backup.restore(database, settings, archive, force=True, paused=paused, by="te'st")


@pytest.fixture
def archive(database: Database, settings: Settings, tmp_path: Path) -> Path:
    """A backup with the mark `then`, of an instance that has changed since."""
    mark(database, "then")
    write(settings, EVIDENCE, "then\n")
    made = backup.back_up(database, settings, tmp_path / "one.tar.gz").path
    mark(database, "now")
    write(settings, EVIDENCE, "now\n")
    return made


def test_a_backup_that_was_told_lasts(
    database: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is in the folder, which is on the disk as well."""
    synced: list[tuple[int, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, (tmp_path / "two.tar.gz").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    backup.back_up(database, settings, tmp_path / "two.tar.gz")
    assert (tmp_path.stat().st_ino, True) in synced


def test_a_restoration_that_is_refused_late_has_changed_nothing(
    archive: Path, database: Database, open_database: Callable[[], Database], settings: Settings
) -> None:
    other = open_database()
    if database.is_sqlite:
        assert marked(other) == "now"  # its connection stays open in the pool
    else:
        with other.transaction() as session:
            session.execute(text("CREATE VIEW of_somebody_else AS SELECT code FROM targets"))
        other.close()
    before = everything_in(settings.instance_path)
    with pytest.raises(BackupError, match=r"in use|of_somebody_else"):
        restore(database, settings, archive)
    assert everything_in(settings.instance_path) == before
    assert marked(other) == "now"
    assert not is_paused(other)
    other.close()


def test_what_a_restoration_replaces_stays_under_another_name(
    archive: Path, database: Database, settings: Settings, tmp_path: Path
) -> None:
    restore(database, settings, archive, paused=False)
    assert marked(database) == "then"
    assert not is_paused(database), "as in the backup"
    evidence = settings.instance_path / EVIDENCE
    assert evidence.read_text() == "then\n"
    (kept,) = evidence.parent.glob("*.before-restore-*")
    assert kept.read_text() == "now\n"
    again = backup.back_up(database, settings, tmp_path / "two.tar.gz").manifest
    assert [name for name in again.files if "requests" in name] == [f"instance/{EVIDENCE}"]


@ONLY_SQLITE
def test_a_second_restoration_of_an_archive_keeps_what_the_first_has_kept(
    archive: Path, database: Database, settings: Settings
) -> None:
    kept = []
    for expected in ("now", "later"):
        done = restore(database, settings, archive)
        assert done.kept is not None
        kept.append((done.kept, expected))
        mark(database, "later")
    for path, expected in kept:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT value FROM settings WHERE name = 'mark'").fetchone() == (
                f'"{expected}"',
            )


@ONLY_SQLITE
def test_files_that_cannot_be_written_are_told_with_what_is_restored_and_what_is_kept(
    archive: Path, database: Database, settings: Settings
) -> None:
    evidence = settings.instance_path / EVIDENCE
    evidence.unlink()
    evidence.parent.rmdir()
    evidence.parent.write_text("a file where a folder has to be")
    with pytest.raises(BackupError, match=r"database is restored, but not all files .* kept under names"):
        restore(database, settings, archive)
    assert marked(database) == "then"
    evidence.parent.unlink()
    restore(database, settings, archive)
    assert evidence.read_text() == "then\n"


@ONLY_SQLITE
def test_files_that_no_restoration_would_take_are_left_out_and_named(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    strange = [
        write(settings, name, "x") for name in ("requests/2026-11-28.jsonl~", "warc/t/IAH-2020.warc.gz")
    ]
    write(settings, EVIDENCE, "then\n")
    with capture_logs() as captured:
        made = backup.back_up(database, settings, tmp_path / "one.tar.gz")
    warned = [line["file"] for line in captured if line["log_level"] == "warning"]
    assert warned == [str(path) for path in strange]
    restore(database, settings, made.path)
    with tarfile.open(made.path) as tar:
        assert f"instance/{EVIDENCE}" in tar.getnames()


@pytest.fixture
def database_of_a_role(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Makes databases of a role that is no superuser, with an extension that a superuser has made; their URLs."""
    role, password = f"role_{secrets.token_hex(4)}", secrets.token_hex(8)
    postgres_server.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
    made = []

    def make() -> str:
        url = postgres_server.create_database(empty=True)
        made.append(url)
        name = url.rpartition("/")[2]
        postgres_server.execute(f"ALTER DATABASE {name} OWNER TO {role}")
        postgres_server.execute("CREATE EXTENSION pg_trgm", database=name)
        return make_url(url).set(username=role, password=password).render_as_string(hide_password=False)

    yield make
    for url in made:
        postgres_server.drop_database(url)
    postgres_server.execute(f"DROP ROLE {role}")


def upgrade_to(database: Database, revision: str) -> None:
    with database.engine.connect() as connection:
        config = migrations._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@pytest.mark.postgresql
def test_older_tables_over_newer_ones_and_into_nothing_by_a_role_that_owns_no_extension(
    database_of_a_role: Callable[[], str], tmp_path: Path
) -> None:
    def opened(name: str, revision: str | None) -> tuple[Database, Settings]:
        loaded = webqueue_settings.load(instance_path=tmp_path / name, database_url=database_of_a_role())
        database = Database(loaded.url, instance_path=tmp_path / name)
        if revision is not None:
            upgrade_to(database, revision)
        return database, loaded

    old, old_settings = opened("old", "0004")
    mark(old, "then")
    archive = backup.back_up(old, old_settings, tmp_path / "old.tar.gz").path
    old.close()
    for name, revision in (("newer", "head"), ("empty", None)):
        database, loaded = opened(name, revision)
        if revision:
            mark(database, "now")
        restore(database, loaded, archive)
        assert marked(database) == "then"
        assert is_paused(database)
        assert migrations.is_current(database)
        assert not migrations.upgrade(database)
        with database.engine.connect() as connection:
            assert inspect(connection).has_table("forgotten_documents")
            assert search_index.exists(connection)
        # And a backup of what is now: its index needs the extension, too.
        again = backup.back_up(database, loaded, tmp_path / f"{name}.tar.gz").path
        restore(database, loaded, again, paused=False)
        assert is_paused(database), "as in the backup"
        with database.engine.connect() as connection:
            assert search_index.exists(connection)
        database.close()


@pytest.mark.postgresql
def test_who_is_connected_as_another_role_is_seen_too(
    database_of_a_role: Callable[[], str], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    loaded = webqueue_settings.load(instance_path=tmp_path / "one", database_url=database_of_a_role())
    database = Database(loaded.url, instance_path=tmp_path / "one")
    migrations.upgrade(database)
    archive = backup.back_up(database, loaded, tmp_path / "one.tar.gz").path
    with (
        postgres_server.connect(str(database.url.database)),
        pytest.raises(BackupError, match="connections: 1"),
    ):
        restore(database, loaded, archive)
    restore(database, loaded, archive)
    database.close()


@ONLY_POSTGRESQL
def test_a_crash_behind_the_loading_leaves_everything_paused(
    archive: Path, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_database: Database) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "upgrade_alone", crash)
    with pytest.raises(KeyboardInterrupt):
        restore(database, settings, archive, paused=False)
    assert marked(database) == "then"
    assert is_paused(database)


@ONLY_POSTGRESQL
def test_a_dump_that_ends_early_changes_nothing(archive: Path, database: Database, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        member = tar.extractfile("database.pgdump")
        assert member is not None
        whole = member.read()
    cut = tmp_path / "cut.pgdump"
    cut.write_bytes(whole[:-200])
    with pytest.raises(BackupError, match="pg_restore failed"):
        postgresql_copy.load(database.url, cut, by="test")
    assert marked(database) == "now"
    assert not is_paused(database)
