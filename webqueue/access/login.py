"""Logging in by name and password, with limited tries."""

from __future__ import annotations

import functools
import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from werkzeug.security import check_password_hash, generate_password_hash

from webqueue.access.rules import (
    MAX_ADDRESS,
    MAX_NAME,
    MAX_PASSWORD,
    normal_name,
    storable,
)
from webqueue.access.users import HASH_METHOD, find_user, new_password, set_password
from webqueue.database import Database, take_turn
from webqueue.errors import InvalidInputError, WebqueueError
from webqueue.models import AuditEntry, LoginAttempt, User
from webqueue.sentences import say, say_some

WINDOW: Final = timedelta(minutes=15)
TRIES_PER_NAME: Final = 10
TRIES_PER_ADDRESS: Final = 50  # a whole office may come from one


class TooManyTriesError(WebqueueError):
    """Too many logins of this name or from this address failed; `wait_sec` says for how long to wait."""

    def __init__(self, wait_sec: int) -> None:
        minutes = -(-wait_sec // 60)
        super().__init__(
            say_some(
                "Too many logins failed. Try again in %(count)s minute.",
                "Too many logins failed. Try again in %(count)s minutes.",
                minutes,
            )
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
    name = storable(normal_name(name), MAX_NAME)
    address = storable(address, MAX_ADDRESS)
    with database.reading() as session:
        _refuse_too_many(session, name, address, now)
        stored = _hash_of(find_user(session, name))
    right = _fits(stored or _hash_of_nobody(), password)
    return database.run(
        lambda session: _note_try(session, name, address, now, stored=stored if right else None)
    )


def change_own_password(
    database: Database, name: str, old: str, new: str, now: datetime, *, address: str = ""
) -> User:
    """Give oneself another password, which takes the old one: a screen left open must not lock its user out.

    Wrong tries count together with those of the login. Both slow hashes are worked out between two transactions.

    Args:
        now: the time of the try.
        address: of the client.

    Raises:
        NotFoundError: there is no such user.
        InvalidInputError: the old password is wrong (`old`), or the new one is not taken (`password`).
        TooManyTriesError: the limit is reached; the old password was not looked at.
    """
    address = storable(address, MAX_ADDRESS)
    with database.reading() as session:
        _refuse_too_many(session, name, address, now)
        stored = _hash_of(find_user(session, name))
    if not _fits(stored or _hash_of_nobody(), old):
        database.run(lambda session: _count_failure(session, name, address, now))
        raise InvalidInputError.of("old", say("The old password is wrong."))
    hashed = new_password(name, new)
    return database.run(lambda session: set_password(session, name, hashed, by=name, now=now))


def _note_try(session: Session, name: str, address: str, now: datetime, *, stored: str | None) -> User | None:
    """Count the try, or let the user in whose password fits the hash `stored`, if it is still theirs."""
    # On PostgreSQL, parallel tries of one name would otherwise all see the count from before.
    take_turn(session, f"login {name}")
    _refuse_too_many(session, name, address, now)
    user = find_user(session, name)
    if user is None or stored is None or _hash_of(user) != stored:
        _count_failure(session, name, address, now)
        return None
    session.execute(delete(LoginAttempt).where(LoginAttempt.name == name))
    user.last_login_at = now
    AuditEntry.record(session, at=now, by=user.name, action="logged in", kind="user", name=user.name)
    return user


def _count_failure(session: Session, name: str, address: str, now: datetime) -> None:
    session.add(LoginAttempt(at=now, name=name, address=address))
    session.execute(delete(LoginAttempt).where(LoginAttempt.at < now - WINDOW))


def _fits(stored: str, password: str) -> bool:
    return len(password) <= MAX_PASSWORD and check_password_hash(
        stored, password.encode("utf-8", "replace").decode()
    )


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


@functools.cache
def _hash_of_nobody() -> str:
    return generate_password_hash(secrets.token_hex(16), method=HASH_METHOD)
