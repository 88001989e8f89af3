"""Opening the database of the settings, for every command."""

from __future__ import annotations

import getpass
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from webqueue import logs, migrations, settings
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.settings import Settings

_CONNECTIONS_OF_LOOPS: Final = 8


def load_settings(*, keeps_running: bool = False, **overrides: object) -> Settings:
    """The settings, with logging set up as they say.

    Args:
        keeps_running: the command is a server; others only log what is wrong, unless a level is set: what they have to
            say is their output.
        overrides: settings from options of the command; None leaves a setting as it is.
    """
    loaded = settings.load(**{name: value for name, value in overrides.items() if value is not None})
    talks = keeps_running or "log_level" in loaded.model_fields_set
    logs.configure(json=loaded.log_json, level=loaded.log_level if talks else "WARNING")
    return loaded


@contextmanager
def opened(loaded: Settings | None = None, *, creates: bool = False) -> Iterator[tuple[Database, Settings]]:
    """The database, with tables that fit this version.

    SQLite's are brought up to date here; elsewhere `webqueue db upgrade` does it, because other processes may run.

    Args:
        creates: as of `reached`.

    Raises:
        WebqueueError: the database cannot be reached, or its tables are of another version.
    """
    loaded = loaded or load_settings()
    with reached(loaded, creates=creates) as database:
        prepare(database)
        yield database, loaded


@contextmanager
def reached(loaded: Settings, *, creates: bool = False) -> Iterator[Database]:
    """The database, whatever its tables are.

    Args:
        creates: where there is no installation on SQLite, make one. Only what an installation may begin with does: any
            other command, called in a wrong folder, would look at an empty one and find nothing wrong.

    Raises:
        WebqueueError: it cannot be reached, stopped working, or is not there.
    """
    url = _checked_url(loaded)
    if not creates:
        _refuse_if_missing(loaded)
    database: Database | None = None
    try:
        database = Database(
            loaded.url,
            instance_path=loaded.instance_path,
            synchronous=loaded.sqlite_synchronous,
            # Each thread of the web and of the workers holds one connection at a time; the loops share a few more.
            pool_size=loaded.threads + loaded.web_threads + _CONNECTIONS_OF_LOOPS,
        )
        if not creates and database.is_sqlite and not migrations.has_tables(database):
            raise _no_installation(loaded)
        yield database
    except DBAPIError as error:
        raise WebqueueError(f"The database {url} cannot be used: {error.orig}") from error
    except sqlite3.Error as error:  # the file is opened past SQLAlchemy
        raise WebqueueError(f"The database {url} cannot be used: {error}") from error
    except ModuleNotFoundError as error:
        if database is not None:
            raise
        raise WebqueueError(
            f"The database {url} needs the module {error.name}: pip install 'webqueue[postgres]'"
        ) from error
    except OSError as error:
        if database is not None:
            raise
        raise WebqueueError(
            f"The folder of the database {url} cannot be made: {error.strerror}. Choose another one by "
            "WEBQUEUE_INSTANCE_PATH."
        ) from error
    finally:
        if database is not None:
            database.close()


def _refuse_if_missing(loaded: Settings) -> None:
    """Look for the SQLite file before it is opened, which would make it."""
    url = make_url(loaded.url)
    if url.get_backend_name() != "sqlite":
        return
    file = Path(str(url.database))
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise _no_installation(loaded) from None
    except OSError as error:
        raise WebqueueError(f"The database {file} cannot be used: {error.strerror}.") from error


def _no_installation(loaded: Settings) -> WebqueueError:
    file = Path(str(make_url(loaded.url).database))
    variable = "WEBQUEUE_DATABASE_URL" if loaded.database_url else "WEBQUEUE_INSTANCE_PATH"
    return WebqueueError(
        f"There is no installation in {file}. Set {variable} to the one that is meant; `webqueue serve` makes a new one."
    )


def _checked_url(loaded: Settings) -> str:
    """The database's URL without its password, for messages."""
    try:
        url = make_url(loaded.url)
    except ArgumentError:
        # What cannot be read may have a password in it: it is not repeated here.
        raise WebqueueError(
            "WEBQUEUE_DATABASE_URL cannot be read: write postgresql://user:password@host/name, or "
            "sqlite:////folder/file.sqlite3."
        ) from None
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise WebqueueError(
            f"WEBQUEUE_DATABASE_URL names {url.get_backend_name()}; webqueue works with sqlite and postgresql."
        )
    return url.render_as_string(hide_password=True)


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
