"""robots.txt files as a run gets them: from the table, over all processes and jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webqueue.database import Database
from webqueue.politeness.robots_store import RobotsText, keep_robots, kept_robots


class DatabaseRobots:
    """A `RobotsStore` in the database.

    Args:
        database: where.
        now: the clock of the table.
        fresh: read nothing that is kept: a trial shows what holds now.
    """

    def __init__(self, database: Database, now: Callable[[], datetime], *, fresh: bool = False) -> None:
        self._database = database
        self._now = now
        self._fresh = fresh

    def get(self, origin: str) -> RobotsText | None:
        """What is kept and still holds; None: it has to be fetched."""
        if self._fresh:
            return None
        with self._database.reading() as session:
            return kept_robots(session, origin, self._now())

    def put(self, origin: str, text: RobotsText) -> None:
        """Keep what was just fetched."""
        self._database.run(lambda session: keep_robots(session, origin, text, self._now()))
