"""Bearer tokens of the API: shown once, stored as a hash."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from webqueue.access.hashing import hash_of
from webqueue.access.rules import checked_role, token_name_problems
from webqueue.database import take_turn
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, Role, Token
from webqueue.sentences import say

PREFIX: Final = "wq_"  # lets people and secret scanners recognise one
_TURN: Final = "tokens"
_USE_NOTED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Bearer:
    """Whoever holds a token. `use_is_due`: `note_use` should be called (at most once a minute)."""

    token_id: int
    name: str
    role: Role
    use_is_due: bool


def add_token(
    session: Session, name: str, role: str, expires_at: datetime | None = None, *, by: str, now: datetime
) -> str:
    """Make a token and give its text, which nobody can find out again.

    Raises:
        InvalidInputError: name, role or expiry are not taken.
        ConflictError: the name is taken, if only by a revoked token: the audit log speaks of tokens by name.
    """
    take_turn(session, _TURN)
    name = name.strip()
    problems = token_name_problems(name)
    if problems:
        raise InvalidInputError(problems)
    checked = checked_role(role)
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError.of(
            "expires_at", say("%(time)s is past already.", time=expires_at.isoformat())
        )
    if session.scalar(select(Token.id).where(Token.name == name)) is not None:
        raise ConflictError(say("There is, or was, a token %(name)s; choose another name.", name=repr(name)))
    # 256 random bits: no slow hash is needed, and each request can afford this one.
    plaintext = PREFIX + secrets.token_urlsafe(32)
    session.add(
        Token(
            name=name,
            token_hash=hash_of(plaintext),
            role=checked,
            created_at=now,
            created_by=by,
            expires_at=expires_at,
        )
    )
    after = {"role": str(checked), "expires_at": None if expires_at is None else expires_at.isoformat()}
    AuditEntry.record(session, at=now, by=by, action="created", kind="token", name=name, after=after)
    return plaintext


def bearer_of(session: Session, plaintext: str, now: datetime) -> Bearer | None:
    """Who holds this token; None when there is none, or it is revoked or has expired. Reads only."""
    # Looked up by hash: an index that compares byte by byte tells nothing about the token itself.
    row = session.scalar(select(Token).where(Token.token_hash == hash_of(plaintext)))
    if row is None or row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        return None
    due = row.last_used_at is None or row.last_used_at <= now - _USE_NOTED_EVERY
    return Bearer(row.id, row.name, Role(row.role), due)


def note_use(session: Session, token_id: int, now: datetime) -> None:
    """Write down that a token was used, at most once a minute."""
    session.execute(
        update(Token)
        .where(
            Token.id == token_id,
            or_(Token.last_used_at.is_(None), Token.last_used_at <= now - _USE_NOTED_EVERY),
        )
        .values(last_used_at=now)
    )


def list_tokens(session: Session) -> list[Token]:
    """Every token, also revoked and expired ones, by name."""
    return list(session.scalars(select(Token).order_by(Token.name)))


def revoke_token(session: Session, name: str, *, by: str, now: datetime) -> None:
    """End a token at once; a revoked one stays as it is.

    Raises:
        NotFoundError: there is no such token.
    """
    row = session.scalar(select(Token).where(Token.name == name.strip()).with_for_update())
    if row is None:
        raise NotFoundError("token", name)
    if row.revoked_at is None:
        row.revoked_at = now
        AuditEntry.record(session, at=now, by=by, action="revoked", kind="token", name=row.name)


def working_tokens(session: Session, now: datetime, *, made_by: str | None = None) -> list[Token]:
    """The tokens that open the API now, by name.

    Args:
        made_by: only those that this user made.
    """
    works = select(Token).where(
        Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > now)
    )
    if made_by is not None:
        works = works.where(Token.created_by == made_by)
    return list(session.scalars(works.order_by(Token.name)))
