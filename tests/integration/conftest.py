"""Fixtures of the tests of real databases and servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.world import Clock
from webqueue import clock


@pytest.fixture
def now() -> Iterator[Clock]:
    """The clock of the database, which stands until the test moves it."""
    moving = Clock()
    with clock.replaced(moving):
        yield moving
