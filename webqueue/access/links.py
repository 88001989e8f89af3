"""Links that work once: for the first administrator, and into the demo. Only hashes of them are stored."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from webqueue.access.hashing import hash_of
from webqueue.access.users import NewUser, create_user, has_users
from webqueue.errors import WebqueueError
from webqueue.models import AuditEntry, Role, StoredSetting, User
from webqueue.sentences import say

SETUP_VALID_FOR: Final = timedelta(hours=24)
LOGIN_VALID_FOR: Final = timedelta(minutes=30)

_SETUP: Final = "setup_link"
_LOGIN: Final = "login_link:"


class LinkRefusedError(WebqueueError):
    """The link was used, has expired, or never was one."""

    def __init__(self) -> None:
        super().__init__(
            say(
                "This link does not work: it was used already, or is too old. Start webqueue again for a "
                "new one."
            )
        )


def new_setup_link(session: Session, now: datetime) -> str:
    """The token of a link that makes the first administrator once, within 24 hours; an older one ends."""
    token = secrets.token_urlsafe(32)
    session.execute(delete(StoredSetting).where(StoredSetting.name == _SETUP))
    _store(session, _SETUP, token, now + SETUP_VALID_FOR, now, {})
    return token


def setup_link_works(session: Session, token: str, now: datetime) -> bool:
    """Whether the link would make an administrator now; does not use it up."""
    kept = session.scalar(select(StoredSetting.value).where(StoredSetting.name == _SETUP))
    return _fits(kept, token, now) and not has_users(session)


def use_setup_link(session: Session, token: str, new: NewUser, now: datetime) -> User:
    """Make the first administrator, whatever role `new` has.

    Raises:
        LinkRefusedError: the link does not work (any more).
    """
    kept = session.scalar(
        delete(StoredSetting).where(StoredSetting.name == _SETUP).returning(StoredSetting.value)
    )
    if not _fits(kept, token, now) or has_users(session):
        raise LinkRefusedError
    user = create_user(session, replace(new, role=Role.ADMIN), by="set-up link", now=now)
    user.last_login_at = now
    return user


def new_login_link(
    session: Session, user: User, now: datetime, *, valid_for: timedelta = LOGIN_VALID_FOR
) -> str:
    """The token of a link that logs `user` in once. Links that have expired are removed on the way."""
    token = secrets.token_urlsafe(32)
    for kept in session.scalars(select(StoredSetting).where(StoredSetting.name.startswith(_LOGIN))).all():
        if datetime.fromisoformat(kept.value["expires_at"]) <= now:
            session.delete(kept)
    _store(session, _login_name(token), token, now + valid_for, now, {"user_id": user.id})
    return token


def use_login_link(session: Session, token: str, now: datetime) -> User:
    """The user whom the link logs in.

    Raises:
        LinkRefusedError: the link does not work (any more).
    """
    kept = session.scalar(
        delete(StoredSetting).where(StoredSetting.name == _login_name(token)).returning(StoredSetting.value)
    )
    if not _fits(kept, token, now):
        raise LinkRefusedError
    user = session.get(User, kept["user_id"]) if kept else None
    if user is None or user.disabled_at is not None:
        raise LinkRefusedError
    user.last_login_at = now
    AuditEntry.record(session, at=now, by=user.name, action="logged in by link", kind="user", name=user.name)
    return user


def _store(
    session: Session, name: str, token: str, expires_at: datetime, now: datetime, more: dict[str, Any]
) -> None:
    value = {"hash": hash_of(token), "expires_at": expires_at.isoformat(), **more}
    session.add(StoredSetting(name=name, value=value, changed_at=now))
    session.flush()


def _fits(kept: Any, token: str, now: datetime) -> bool:
    return (
        isinstance(kept, dict)
        and secrets.compare_digest(kept["hash"], hash_of(token))
        and now < datetime.fromisoformat(kept["expires_at"])
    )


def _login_name(token: str) -> str:
    """Found by a part of the hash, which is no way back to the token."""
    return _LOGIN + hash_of(token)[:32]
