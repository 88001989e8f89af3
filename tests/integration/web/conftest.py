"""Fixtures of the tests of the pages: the app, an administrator's browser, and a target to look at."""

from __future__ import annotations

import pytest
from flask import Flask
from sqlalchemy.orm import Session

from tests.helpers.admin import add_site, add_target, add_worker
from tests.helpers.browsing import Browser
from webqueue import clock
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.settings import Settings


@pytest.fixture
def engine_name() -> str:
    """What the pages read and write is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def app(settings: Settings, database: Database) -> Flask:
    """The web side of the test's database."""
    made = create_app(settings, database)
    made.testing = True
    return made


@pytest.fixture
def browser(app: Flask, database: Database) -> Browser:
    """An administrator, logged in."""
    return Browser(app, database)


@pytest.fixture
def example(database: Database) -> None:
    """A site with a scheduled target, and a worker."""

    def add(session: Session) -> None:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "news", "example", schedule="0 3 * * *")

    database.run(add)
