"""A site with two targets, and keys that are as they have to be when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.helpers.interleaving import Meeting
from tests.helpers.verbs import settled
from tests.helpers.world import Clock, World
from webqueue.database import Database


@pytest.fixture
def world(database: Database, now: Clock) -> Iterator[World]:
    """A site with the targets `news` and `law`; afterwards every key has to be settled."""
    world = World(database)
    world.add_site()
    world.add_target("news")
    world.add_target("law")
    yield world
    settled(world)


@pytest.fixture
def meeting(database: Database, open_database: Callable[[], Database]) -> Meeting:
    """Two connections whose transactions meet."""
    return Meeting(database, open_database())
