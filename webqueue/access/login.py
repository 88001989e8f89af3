"""Logging in by name and password, with limited tries."""

from __future__ import annotations

import functools
import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from werkzeug.security import check_password_hash, generate_password_hash

from webqueue.access.rules import MAX_NAME, MAX_PASSWORD, normal_name
from webqueue.access.users import HASH_METHOD, find_user
from webqueue.database import Database, take_turn
from webqueue.errors import WebqueueError
from webqueue.models import AuditEntry, LoginAttempt, User

WINDOW: Final = timedelta(minutes=15)
TRIES_PER_NAME: Final = 10
TRIES_PER_ADDRESS: Final = 50  # a whole office may come from one


class TooManyTriesError(WebqueueError):
    """Too many logins of this name or from this address failed; `wait_sec` says for how long to wait."""

    def __init__(self, wait_sec: int) -> None:
        minutes = -(-wait_sec // 60)
        super().__init__(
            f"Too many logins failed. Try again in {minutes} minute{'s' if minutes > 1 else ''}."
        )
        self.wait_sec = wait_sec


def authenticate(
    database: Database, name: str, password: str, now: datetime, *, address: str = ""
) -> User | None:
    """The user, when name and password are right and the user is not disabled; None for every other case alike.

    The same hash is worked out for a name that nobody has, so that the time does not tell which names exist. Tries
    are counted in the database, for every process together and over restarts; a refused one does not count, so a
    person who waits gets in.

    The slow hash is worked out between two transactions: within one, a few wrong logins would hold up every writer of
    SQLite. So this takes the database and not a session.

    Args:
        now: the time of the try.
        address: of the client.

    Raises:
        TooManyTriesError: the limit of the name or of the address is reached; the password was not looked at.
    """
    name = _storable(normal_name(name)[:MAX_NAME])
    address = _storable(address[:64])
    with database.reading() as session:
        _refuse_too_many(session, name, address, now)
        stored = _hash_of(find_user(session, name))
    right = len(password) <= MAX_PASSWORD and check_password_hash(
        stored or _hash_of_nobody(), password.encode("utf-8", "replace").decode()
    )
    return database.run(
        lambda session: _note_try(session, name, address, now, stored=stored if right else None)
    )


def _note_try(session: Session, name: str, address: str, now: datetime, *, stored: str | None) -> User | None:
    """Count the try, or let the user in whose password fits the hash `stored`, if it is still theirs."""
    # On PostgreSQL, parallel tries of one name would otherwise all see the count from before.
    take_turn(session, f"login {name}")
    _refuse_too_many(session, name, address, now)
    user = find_user(session, name)
    if user is None or stored is None or _hash_of(user) != stored:
        session.add(LoginAttempt(at=now, name=name, address=address))
        session.execute(delete(LoginAttempt).where(LoginAttempt.at < now - WINDOW))
        return None
    session.execute(delete(LoginAttempt).where(LoginAttempt.name == name))
    user.last_login_at = now
    AuditEntry.record(session, at=now, by=user.name, action="logged in", kind="user", name=user.name)
    return user


def _refuse_too_many(session: Session, name: str, address: str, now: datetime) -> None:
    since = now - WINDOW
    limits = [(LoginAttempt.name == name, TRIES_PER_NAME)]
    if address:
        limits.append((LoginAttempt.address == address, TRIES_PER_ADDRESS))
    for of_whom, tries in limits:
        count, first = session.execute(
            select(func.count(), func.min(LoginAttempt.at)).where(of_whom, LoginAttempt.at >= since)
        ).one()
        if count >= tries:
            wait = (first + WINDOW - now).total_seconds()
            raise TooManyTriesError(max(1, round(wait)))


def _hash_of(user: User | None) -> str | None:
    return None if user is None or user.disabled_at is not None else user.password_hash


def _storable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


@functools.cache
def _hash_of_nobody() -> str:
    return generate_password_hash(secrets.token_hex(16), method=HASH_METHOD)
