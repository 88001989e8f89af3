"""Fetchers, and a server that does everything wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.fetching import Fetchers, fetchers
from tests.helpers.servers.base import Server
from tests.helpers.servers.hostile import HostileSite


@pytest.fixture
def make(instance: Path) -> Iterator[Fetchers]:
    """Makes fetchers for addresses; they are closed at the end of the test."""
    with fetchers(instance) as made:
        yield made


@pytest.fixture
def hostile() -> Iterator[Server]:
    """A server of hostile answers."""
    with Server(HostileSite()) as server:
        yield server
