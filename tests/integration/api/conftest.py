"""A client of the API, and something that it may ask for."""

from __future__ import annotations

import pytest

from tests.helpers.api import ApiClient
from webqueue.database import Database


@pytest.fixture
def client(database: Database) -> ApiClient:
    """A site with a target, and tokens of every role."""
    made = ApiClient(database)
    made.example()
    return made
