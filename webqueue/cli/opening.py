"""Opening the database of the settings, for every command."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from webqueue import logs, migrations, settings
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.settings import Settings


def load_settings(**overrides: object) -> Settings:
    """The settings, with logging set up as they say."""
    loaded = settings.load(**{name: value for name, value in overrides.items() if value is not None})
    logs.configure(json=loaded.log_json, level=loaded.log_level)
    return loaded


@contextmanager
def opened(loaded: Settings | None = None) -> Iterator[tuple[Database, Settings]]:
    """The database, with tables that fit this version.

    SQLite's are brought up to date here; elsewhere `webqueue db upgrade` does it, because other processes may run.

    Raises:
        WebqueueError: the database cannot be reached, or its tables are of another version.
    """
    loaded = loaded or load_settings()
    database = Database(loaded.url, instance_path=loaded.instance_path, synchronous=loaded.sqlite_synchronous)
    try:
        prepare(database)
        yield database, loaded
    except DBAPIError as error:
        url = database.url.render_as_string(hide_password=True)
        raise WebqueueError(f"The database {url} cannot be used: {error.orig}") from error
    finally:
        database.close()


def prepare(database: Database) -> None:
    """Upgrade SQLite; refuse another database whose tables are not those of this version."""
    if database.is_sqlite:
        migrations.upgrade(database)
    elif not migrations.is_current(database):
        url = database.url.render_as_string(hide_password=True)
        raise WebqueueError(f"The tables of {url} are not up to date: run `webqueue db upgrade` first.")


def person() -> str:
    """Who is at the command line, for histories and the audit log."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return "cli"
