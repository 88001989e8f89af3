"""Users: made, disabled, given another password or role."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from werkzeug.security import generate_password_hash

from webqueue.access.rules import checked_role, name_problems, normal_name, password_problems
from webqueue.access.tokens import revoke_token, working_tokens
from webqueue.database import take_turn
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, Role, User, UserSession
from webqueue.sentences import say

_TURN: Final = "users"
HASH_METHOD: Final = "scrypt"


@dataclass(frozen=True)
class NewUser:
    """A user who can be made: checked, and with the hash of a password."""

    name: str
    password_hash: str
    role: Role


def new_user(name: str, password: str, role: str) -> NewUser:
    """Check a user who is to be made, and work the hash out: slow, so before the transaction, for which others wait.

    Raises:
        InvalidInputError: name, password or role are not taken; with every problem.
    """
    name = normal_name(name)
    problems = name_problems(name) + password_problems(password, name)
    if problems:
        raise InvalidInputError(problems)
    checked = checked_role(role)
    return NewUser(name, generate_password_hash(password, method=HASH_METHOD), checked)


def new_password(name: str, password: str) -> str:
    """Check another password of a user, and work its hash out: slow, so before the transaction, for which others wait.

    Raises:
        InvalidInputError: the password is not taken.
    """
    problems = password_problems(password, normal_name(name))
    if problems:
        raise InvalidInputError(problems)
    return generate_password_hash(password, method=HASH_METHOD)


def create_user(session: Session, new: NewUser, *, by: str, now: datetime) -> User:
    """Make a user.

    Raises:
        ConflictError: the name is taken.
    """
    take_turn(session, _TURN)
    if find_user(session, new.name) is not None:
        raise ConflictError(say("There is a user %(name)s already.", name=repr(new.name)))
    user = User(name=new.name, password_hash=new.password_hash, role=new.role, created_at=now)
    session.add(user)
    session.flush()
    AuditEntry.record(
        session, at=now, by=by, action="created", kind="user", name=new.name, after={"role": str(new.role)}
    )
    return user


def find_user(session: Session, name: str) -> User | None:
    """The user of this name, disabled or not."""
    return session.scalar(select(User).where(User.name == normal_name(name)))


def list_users(session: Session) -> list[User]:
    """Every user, by name."""
    return list(session.scalars(select(User).order_by(User.name)))


def has_users(session: Session) -> bool:
    """Whether there is any user; the first start without one prints a set-up link."""
    return session.scalar(select(User.id).limit(1)) is not None


def drop_sessions(session: Session, user_id: int, *, but: int | None = None) -> int:
    """End every session of a user but one, without a word in the audit log; how many there were."""
    session.flush()  # what ends them is written first: a login that comes now sees it
    gone = delete(UserSession).where(UserSession.user_id == user_id)
    if but is not None:
        gone = gone.where(UserSession.id != but)
    return len(session.execute(gone.returning(UserSession.id)).all())


def disable_user(
    session: Session, name: str, *, by: str, now: datetime, with_tokens: bool = False
) -> list[str]:
    """Shut a user out and end every session of theirs. What they did stays in the audit log.

    A token is a program's, with a name and a role of its own; it does not end with the user who made it, unless that is
    asked for.

    Args:
        with_tokens: end those that they made, too; also those of a user who was shut out before.

    Returns:
        The names of the tokens that they made and that worked until now: revoked `with_tokens`, else they work on.

    Raises:
        NotFoundError: there is no such user.
        ConflictError: it is the last administrator.
    """
    user = _locked(session, name)
    if user.disabled_at is None:
        _refuse_last_admin(session, user)
        user.disabled_at = now
        drop_sessions(session, user.id)
        AuditEntry.record(session, at=now, by=by, action="disabled", kind="user", name=user.name)
    tokens = [token.name for token in working_tokens(session, now, made_by=user.name)]
    for token in tokens if with_tokens else ():
        revoke_token(session, token, by=by, now=now)
    return tokens


def enable_user(session: Session, name: str, *, by: str, now: datetime) -> None:
    """Let a disabled user in again.

    Raises:
        NotFoundError: there is no such user.
    """
    user = _locked(session, name)
    if user.disabled_at is not None:
        user.disabled_at = None
        AuditEntry.record(session, at=now, by=by, action="enabled", kind="user", name=user.name)


def set_password(session: Session, name: str, password_hash: str, *, by: str, now: datetime) -> User:
    """Give a user another password, by its hash of `new_password`; every session of theirs ends. Raises NotFoundError."""
    user = _locked(session, name)
    user.password_hash = password_hash
    drop_sessions(session, user.id)
    AuditEntry.record(session, at=now, by=by, action="password changed", kind="user", name=user.name)
    return user


def set_role(session: Session, name: str, role: str, *, by: str, now: datetime) -> None:
    """Give a user another role.

    Raises:
        NotFoundError: there is no such user.
        InvalidInputError: there is no such role.
        ConflictError: it is the last administrator.
    """
    checked = checked_role(role)
    user = _locked(session, name)
    if user.role == checked:
        return
    _refuse_last_admin(session, user)
    before, user.role = user.role, checked
    AuditEntry.record(
        session,
        at=now,
        by=by,
        action="changed",
        kind="user",
        name=user.name,
        before={"role": before},
        after={"role": str(checked)},
    )


def _locked(session: Session, name: str) -> User:
    take_turn(session, _TURN)
    user = find_user(session, name)
    if user is None:
        raise NotFoundError("user", name)
    return user


def _refuse_last_admin(session: Session, user: User) -> None:
    if user.role != Role.ADMIN or user.disabled_at is not None:
        return
    admins = session.scalar(
        select(func.count()).select_from(User).where(User.role == Role.ADMIN, User.disabled_at.is_(None))
    )
    if admins == 1:
        raise ConflictError(
            say("%(name)s is the last administrator. Make another one first.", name=repr(user.name))
        )
