"""Fixtures of the tests of real databases and servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.installation import Installation, copy_of
from tests.helpers.world import Clock, World
from webqueue import clock
from webqueue.database import Database


@pytest.fixture
def now() -> Iterator[Clock]:
    """The clock of the database, which stands until the test moves it."""
    moving = Clock()
    with clock.replaced(moving):
        yield moving


@pytest.fixture
def world(database: Database) -> World:
    """A site with the target `news`."""
    world = World(database)
    world.add_site()
    world.add_target("news")
    return world


@pytest.fixture
def installation(instance: Path, _sqlite_template: Path) -> Iterator[Installation]:
    """An instance for commands and processes."""
    with Installation(copy_of(_sqlite_template, instance)) as installed:
        yield installed
