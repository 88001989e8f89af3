"""Fixtures for every ring of tests: an instance folder, and fresh migrated databases of both engines."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import hypothesis
import pytest

from tests.helpers.memory import use_memory_for_files
from tests.helpers.postgres import PostgresServer
from tests.helpers.postgres_copies import PostgresCopies
from tests.helpers.requirements import MissingRequirementError, lacking
from tests.helpers.servers.base import Server, Site
from tests.helpers.statements import CompiledStatements
from webqueue import settings as webqueue_settings
from webqueue.settings import Settings

if TYPE_CHECKING:
    from webqueue.database import Database

SQLITE_FILE = "webqueue.sqlite3"


def pytest_configure(config: pytest.Config) -> None:
    """Make runs alike, whatever they are started by."""
    use_memory_for_files(config.args)
    # How long an example takes says something about the machine, and nothing about the code.
    hypothesis.settings.register_profile(
        "webqueue",
        parent=hypothesis.settings(),  # in CI it tries the same examples each time
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("webqueue")
    # A run in the background of a script ignores Ctrl-C, and so would each process that a test stops by it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what is imported by now: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests must not reach them."""
    for name in list(os.environ):
        if name.startswith(("WEBQUEUE_", "TASK_QUEUE_")):
            monkeypatch.delenv(name)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """An empty instance folder."""
    folder = tmp_path / "instance"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL server of this test run, shared. A test that stops or kills one has its own (`server`)."""
    with _started_postgres(durable=False) as started:
        yield started


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of the test's own, to be taken away. Durable: what it says is committed must outlive a kill."""
    with _started_postgres(durable=True) as started:
        yield started


@pytest.fixture(scope="session")
def _postgres_copies(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> PostgresCopies:
    url = postgres_server.create_database(empty=True)
    migrate(url, tmp_path_factory.mktemp("postgresql-template"))
    template = url.rpartition("/")[2]
    postgres_server.use_template(template)
    return PostgresCopies(postgres_server, template)


@pytest.fixture(autouse=True, scope="session")
def _cheap_password_hashes() -> Iterator[None]:
    """The same kind of hash at a hundredth of its cost: most tests of the pages log in, few are about that."""
    from webqueue.access import login, users

    with pytest.MonkeyPatch.context() as patched:
        for module in (login, users):
            patched.setattr(module, "HASH_METHOD", "scrypt:1024:8:1")
        yield


@pytest.fixture(autouse=True, scope="session")
def _compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile a template once for all the applications of this process: it takes longer than to fill it in."""
    from flask import Flask
    from jinja2 import FileSystemBytecodeCache

    compiled = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Flask, "jinja_options", {"bytecode_cache": compiled})
        yield


@pytest.fixture(autouse=True, scope="session")
def _compiled_statements() -> Iterator[None]:
    """Compile a statement once for all the databases of this process."""
    from sqlalchemy import create_engine

    from webqueue.database import engine

    shared = {"compiled_cache": CompiledStatements()}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "create_engine", partial(create_engine, execution_options=shared))
        yield


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sqlite-template")
    template = folder / SQLITE_FILE
    migrate(f"sqlite:///{template}", folder)
    connection = sqlite3.connect(template)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return template


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Runs a test once on each engine."""
    name: str = request.param
    return name


@pytest.fixture
def empty_database_url(engine_name: str, instance: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database without a table, for tests of the migrations."""
    if engine_name == "sqlite":
        yield f"sqlite:///{instance / SQLITE_FILE}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database(empty=True)
    yield url
    server.drop_database(url)


@pytest.fixture
def database_url(engine_name: str, instance: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a fresh, migrated database that nobody has opened."""
    if engine_name == "sqlite":
        # A copy of a migrated file takes a millisecond, the migrations take a hundred.
        shutil.copyfile(request.getfixturevalue("_sqlite_template"), instance / SQLITE_FILE)
        yield f"sqlite:///{instance / SQLITE_FILE}"
        return
    copies: PostgresCopies = request.getfixturevalue("_postgres_copies")
    url = copies.take()
    yield url
    copies.give_back(url)


@pytest.fixture
def database(database_url: str, instance: Path) -> Iterator[Database]:
    """A fresh, migrated database, opened."""
    from webqueue.database import Database

    opened = Database(database_url, instance_path=instance)
    yield opened
    opened.close()


@pytest.fixture
def open_database(database_url: str, instance: Path) -> Iterator[Callable[[], Database]]:
    """Opens the test's database once more, as another process would."""
    from webqueue.database import Database

    with ExitStack() as stack:

        def opener() -> Database:
            opened = Database(database_url, instance_path=instance)
            stack.callback(opened.close)
            return opened

        yield opener


@pytest.fixture
def settings(database_url: str, instance: Path) -> Settings:
    """The settings of an instance with a fresh, migrated database; private addresses are allowed."""
    return webqueue_settings.load(
        instance_path=instance, database_url=database_url, allow_private_addresses=True
    )


class Serve(Protocol):
    """Starts a server for a site; the fixture `serve` stops it at the end of the test."""

    def __call__(self, site: Site, *, host: str = "127.0.0.1", delay_sec: float = 0.0) -> Server:
        """See `tests.helpers.servers.base.Server`."""


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers for sites; they are stopped at the end of the test."""
    with ExitStack() as servers:

        def start(site: Site, *, host: str = "127.0.0.1", delay_sec: float = 0.0) -> Server:
            return servers.enter_context(Server(site, host=host, delay_sec=delay_sec))

        yield start


@contextmanager
def _started_postgres(*, durable: bool) -> Iterator[PostgresServer]:
    try:
        made = PostgresServer(durable=durable)
    except MissingRequirementError as error:
        lacking(str(error))
    with made:
        yield made


def migrate(url: str, instance: Path) -> None:
    """Bring the database to the newest version of the tables."""
    from webqueue import migrations
    from webqueue.database import Database

    database = Database(url, instance_path=instance)
    try:
        migrations.upgrade(database)
    finally:
        database.close()
