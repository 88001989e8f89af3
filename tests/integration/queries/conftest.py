"""A site with two targets, and a worker that lives."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    add_site,
    add_target,
    add_worker,
)
from tests.helpers.asking import KEY
from webqueue import clock
from webqueue.database import Database


@pytest.fixture
def example(database: Database) -> Database:
    """A site with two targets, and a worker that lives."""

    def add(session: Session) -> None:
        add_worker(session, clock.now(session), threads=2)
        add_site(session, "example", f"http://{KEY}/")
        add_target(session, "news", "example", schedule="0 3 * * *")
        add_target(session, "archive", "example", note="Old letters", owner="Ann")

    database.run(add)
    return database
