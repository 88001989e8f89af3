"""Where users are logged in: a session begins with a login, is kept alive by being used, and can be ended.

The cookie has a random key; only its hash is stored, so that a copy of the database opens no session.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.access.hashing import hash_of
from webqueue.access.rules import MAX_ADDRESS, storable
from webqueue.access.users import drop_sessions, find_user
from webqueue.errors import NotFoundError
from webqueue.models import AuditEntry, User, UserSession

# A session that was not used for so long has ended.
LIFETIME: Final = timedelta(days=30)
# Reading a page must not become a write.
_SEEN_NOTED_EVERY: Final = timedelta(minutes=1)
# A script that logs in again and again fills no table: of more, those that were unused for the longest end.
MOST: Final = 100
_LONGEST_AGENT: Final = 255


@dataclass(frozen=True)
class LoggedIn:
    """A session that is good, and whose it is.

    Attributes:
        use_is_due: `note_session` should be called (at most once a minute).
    """

    session_id: int
    user: User
    use_is_due: bool


def begin_session(session: Session, user: User, *, address: str, agent: str, now: datetime) -> str | None:
    """Let `user` in, and give the key that the browser keeps.

    Args:
        user: as who logged in was found; where they were shut out or given another password since, they do not get in.
        address: of the client.
        agent: what the browser says of itself.

    Returns:
        None: they do not get in.
    """
    # Locked: a password that is changed meanwhile either is seen here, or ends this session too.
    standing = session.get(User, user.id, with_for_update=True, populate_existing=True)
    if standing is None or standing.disabled_at is not None or standing.password_hash != user.password_hash:
        return None
    session.execute(delete(UserSession).where(UserSession.last_seen_at <= now - LIFETIME))
    newest = (
        select(UserSession.id)
        .where(UserSession.user_id == user.id)
        .order_by(UserSession.last_seen_at.desc(), UserSession.id.desc())
        .limit(MOST - 1)
    )
    session.execute(
        delete(UserSession).where(UserSession.user_id == user.id, UserSession.id.not_in(newest)),
        execution_options={"synchronize_session": False},
    )
    key = secrets.token_urlsafe(32)
    session.add(
        UserSession(
            key_hash=hash_of(key),
            user_id=user.id,
            created_at=now,
            last_seen_at=now,
            address=storable(address, MAX_ADDRESS),
            agent=storable(agent, _LONGEST_AGENT),
        )
    )
    return key


def find_session(session: Session, key: str) -> LoggedIn | None:
    """Whose session this is; None when it has ended, or its user is shut out.

    One indexed read, which asks for the time as well: every page and each of its polls comes by here, and the clock of the
    machine that serves them may be minutes away from the one that `last_seen_at` was read from.
    """
    time = clock.column(session)
    found = session.execute(
        select(UserSession.id, UserSession.last_seen_at, User, *([] if time is None else [time.label("now")]))
        .join(User, User.id == UserSession.user_id)
        .where(UserSession.key_hash == hash_of(key))
    ).one_or_none()
    if found is None:
        return None
    now = clock.now(session) if time is None else found.now
    if found.User.disabled_at is not None or found.last_seen_at <= now - LIFETIME:
        return None
    return LoggedIn(found.id, found.User, found.last_seen_at <= now - _SEEN_NOTED_EVERY)


def note_session(session: Session, session_id: int, address: str, now: datetime) -> None:
    """Write down that a session was used, and from where; at most once a minute."""
    session.execute(
        update(UserSession)
        .where(UserSession.id == session_id, UserSession.last_seen_at <= now - _SEEN_NOTED_EVERY)
        .values(last_seen_at=now, address=storable(address, MAX_ADDRESS))
    )


def list_sessions(session: Session, user_id: int, now: datetime) -> list[UserSession]:
    """Where a user is logged in; the one that was used last comes first."""
    statement = (
        select(UserSession)
        .where(UserSession.user_id == user_id, UserSession.last_seen_at > now - LIFETIME)
        .order_by(UserSession.last_seen_at.desc(), UserSession.id.desc())
    )
    return list(session.scalars(statement))


def count_sessions(session: Session, now: datetime) -> Mapping[int, int]:
    """In how many browsers each user is logged in, by the user's id."""
    rows = session.execute(
        select(UserSession.user_id, func.count())
        .where(UserSession.last_seen_at > now - LIFETIME)
        .group_by(UserSession.user_id)
    )
    return {row[0]: row[1] for row in rows}


def log_out(session: Session, session_id: int, *, by: str, now: datetime) -> None:
    """End the session of the browser that asks."""
    if session.execute(
        delete(UserSession).where(UserSession.id == session_id).returning(UserSession.id)
    ).all():
        AuditEntry.record(session, at=now, by=by, action="logged out", kind="user", name=by)


def end_session(session: Session, user_id: int, session_id: int, *, by: str, now: datetime) -> None:
    """End one session of a user: whoever has its cookie is logged out.

    Raises:
        NotFoundError: the user has no such session (any more).
    """
    gone = delete(UserSession).where(UserSession.id == session_id, UserSession.user_id == user_id)
    row = session.execute(gone.returning(UserSession.address)).one_or_none()
    if row is None:
        raise NotFoundError("session", str(session_id))
    user = session.get_one(User, user_id)
    before = {"sessions": 1, "address": row.address}
    AuditEntry.record(
        session, at=now, by=by, action="sessions ended", kind="user", name=user.name, before=before
    )


def end_sessions(session: Session, name: str, *, but: int | None = None, by: str, now: datetime) -> int:
    """End the sessions of a user; how many there were.

    Args:
        but: the one that stays.

    Raises:
        NotFoundError: there is no such user.
    """
    user = find_user(session, name)
    if user is None:
        raise NotFoundError("user", name)
    ended = drop_sessions(session, user.id, but=but)
    if ended:
        AuditEntry.record(
            session,
            at=now,
            by=by,
            action="sessions ended",
            kind="user",
            name=user.name,
            before={"sessions": ended},
        )
    return ended
