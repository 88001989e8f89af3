"""Migrations of the database, inside the package: Alembic, in batch mode for SQLite.

They run by themselves on SQLite at start, after a copy made by SQLite's own backup, and by `webqueue db upgrade`
elsewhere; one process at a time.
"""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect, text

from webqueue import logs
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.migrations import search_index

log = logs.get(__name__)
# Any number does, as long as nobody else in this database uses it: "webqueue" on a telephone's keys.
ADVISORY_LOCK: Final = 93278373
# A copy needs the file's size, and the migration itself about as much again.
_ROOM_FACTOR: Final = 2


class MigrationError(WebqueueError):
    """The database's tables do not fit this version of webqueue."""


def upgrade(database: Database) -> bool:
    """Bring the tables up to this version; True when something was to be done.

    Raises:
        MigrationError: the database was written by a newer webqueue.
    """
    if is_current(database) and _is_searchable(database):
        return False
    with one_at_a_time(database):
        return upgrade_alone(database)


def upgrade_alone(database: Database) -> bool:
    """As `upgrade`, for who is in `one_at_a_time` already."""
    if is_current(database):
        return _build_search_index(database)
    if database.is_sqlite:
        copy_before(database)
    # Alembic runs its own transaction on this connection. It is one that writes from its beginning: a worker or a page of
    # the version before may write between its first look and its first change, and SQLite would refuse that change.
    with database.write_engine.connect() as connection, _foreign_keys_off(connection):
        _run(connection)
    # The migration that makes it may have run long ago, where it could not be made.
    _build_search_index(database)
    log.info("database upgraded", revision=_script().get_current_head())
    return True


def is_current(database: Database) -> bool:
    """Whether the tables are those of this version.

    Raises:
        MigrationError: they were made by a newer one.
    """
    with database.engine.connect() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None:
        return False
    script = _script()
    try:
        script.get_revision(revision)
    except CommandError:
        raise MigrationError(
            f"The database {database.url.render_as_string(hide_password=True)} was written by a newer webqueue "
            f"(revision {revision}). Install that version, or restore the copy made before its upgrade."
        ) from None
    return revision == script.get_current_head()


def has_tables(database: Database) -> bool:
    """Whether there is an installation in this database, of whatever version."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() is not None


def knows(revision: str) -> bool:
    """Whether this version can bring tables of that revision up to date."""
    try:
        _script().get_revision(revision)
    except CommandError:
        return False
    return True


def _is_searchable(database: Database) -> bool:
    with database.engine.connect() as connection:
        return search_index.exists(connection)


def _build_search_index(database: Database) -> bool:
    """Make the index that an earlier upgrade could not make; whether it was made now."""
    if _is_searchable(database):
        return False
    with database.engine.connect() as connection:
        built = search_index.build(connection)
        connection.commit()
    return built


def copy_before(database: Database) -> Path | None:
    """Copy the SQLite file beside itself before a migration, where there is room; the copy's path."""
    source = Path(str(database.url.database))
    with database.engine.connect() as connection:
        if not inspect(connection).get_table_names():
            return None
        revision = MigrationContext.configure(connection).get_current_revision()
    if shutil.disk_usage(source.parent).free < source.stat().st_size * _ROOM_FACTOR:
        log.warning("no room for a copy before the migration", file=str(source))
        return None
    target = source.with_name(f"{source.name}.before-upgrade-from-{revision}")
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as copy:
        # Page by page, as one state, also while another process writes.
        old.backup(copy)
    return target


@contextmanager
def _foreign_keys_off(connection: Connection) -> Iterator[None]:
    """While batch mode rebuilds tables on SQLite, what points to the old ones is not broken, nor deleted with them."""
    if connection.dialect.name != "sqlite":
        yield
        return
    # Past SQLAlchemy, which would begin a transaction first: within one, the pragma does nothing.
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        connection.rollback()
        driver.execute("PRAGMA foreign_keys = ON")


def _run(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


@contextmanager
def one_at_a_time(database: Database) -> Iterator[None]:
    """Wait until no other process upgrades, or replaces, the tables of this database, and let none begin.

    On PostgreSQL one connection of the pool is used for it meanwhile.
    """
    if not database.is_sqlite:
        with database.engine.connect() as connection:
            connection.execute(text("SET lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": ADVISORY_LOCK})
            connection.commit()
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": ADVISORY_LOCK})
                connection.execute(text("RESET lock_timeout"))
                connection.commit()
        return
    database.instance_path.mkdir(parents=True, exist_ok=True)
    with (database.instance_path / "migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
