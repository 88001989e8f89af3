"""robots.txt kept for a day, in the database, for every process and every job (RFC 9309 §2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from sqlalchemy.orm import Session

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


def kept_robots(session: Session, origin: str, now: datetime) -> RobotsText | None:
    """What the table `robots_files` keeps of an origin, while it holds."""
    if len(origin) > ORIGIN_LENGTH:
        return None
    row = session.get(RobotsFile, origin)
    if row is None or row.expires_at <= now:
        return None
    return RobotsText(row.body, row.unreachable, row.status, row.fetched_at)


def keep_robots(session: Session, origin: str, text: RobotsText, now: datetime) -> None:
    """Keep what was just fetched, for a day; that it could not be had, for five minutes."""
    if len(origin) > ORIGIN_LENGTH:
        return
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
