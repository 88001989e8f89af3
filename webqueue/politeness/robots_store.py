"""robots.txt kept for a day, in the database, for every process and every job (RFC 9309 §2.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from sqlalchemy.orm import Session

from webqueue.database import Database
from webqueue.database.types import storable
from webqueue.models import RobotsFile
from webqueue.models.visits import ORIGIN_LENGTH

KEPT_FOR: Final = timedelta(days=1)
# A server that fails may be well again soon; a job that failed of it is tried again after 300 s, by default.
UNREACHABLE_FOR: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class RobotsText:
    """What a host answered for its robots.txt.

    Attributes:
        body: the file; None: there is none, and everything is allowed.
        unreachable: why it could not be had, which forbids everything; None: it could.
        status: HTTP status of an unreachable one, where there was one.
        at: when it was asked for; None: just now.
    """

    body: str | None = None
    unreachable: str | None = None
    status: int | None = None
    at: datetime | None = None


class RobotsStore(Protocol):
    """Where robots.txt files outlive a job. `origin` is scheme, host and port."""

    def get(self, origin: str) -> RobotsText | None:
        """What is kept and still holds; None: it has to be fetched."""

    def put(self, origin: str, text: RobotsText) -> None:
        """Keep what was just fetched."""


class NoStore:
    """Keeps nothing: every job asks anew."""

    def get(self, origin: str) -> RobotsText | None:
        return None

    def put(self, origin: str, text: RobotsText) -> None:
        """Forget it."""


class DatabaseRobots:
    """Keeps files in the table `robots_files`.

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
        if self._fresh or len(origin) > ORIGIN_LENGTH:
            return None
        with self._database.reading() as session:
            row = session.get(RobotsFile, origin)
            if row is None or row.expires_at <= self._now():
                return None
            return RobotsText(row.body, row.unreachable, row.status, row.fetched_at)

    def put(self, origin: str, text: RobotsText) -> None:
        if len(origin) <= ORIGIN_LENGTH:
            self._database.run(lambda session: self._put(session, origin, text))

    def _put(self, session: Session, origin: str, text: RobotsText) -> None:
        now = self._now()
        session.merge(
            RobotsFile(
                origin=origin,
                body=None if text.body is None else storable(text.body),
                unreachable=text.unreachable,
                status=text.status,
                fetched_at=now,
                expires_at=now + (KEPT_FOR if text.unreachable is None else UNREACHABLE_FOR),
            )
        )
