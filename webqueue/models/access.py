"""Who may do what, and who did."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, Session, mapped_column

from webqueue.database import JSONData, Text
from webqueue.models.base import Base


class Role(StrEnum):
    """Viewers read; operators run, cancel, retry, pause and lift; admins change the rest."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class User(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(15))
    theme: Mapped[str] = mapped_column(String(8), default="auto")
    # None: as the browser says.
    language: Mapped[str | None] = mapped_column(String(8))
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    last_login_at: Mapped[datetime | None]


class UserSession(Base):
    """One browser in which a user is logged in; only the hash of its key is stored."""

    __tablename__ = "user_sessions"
    __table_args__ = (Index("ix_user_sessions_user", "user_id", "last_seen_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    # At most a minute behind.
    last_seen_at: Mapped[datetime]
    address: Mapped[str] = mapped_column(String(64))
    # What the browser says of itself.
    agent: Mapped[str] = mapped_column(String(255))


class Token(Base):
    """A bearer token of the API; only its hash is stored."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(15))
    created_at: Mapped[datetime]
    # The user's name, or who was at the command line, as the audit log has it.
    created_by: Mapped[str | None] = mapped_column(String(128))
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """One change: who, what, before, after.

    What one act changes has one time, also where it takes several transactions.
    """

    __tablename__ = "audit"
    # For each filter of the list, in the order of the list.
    __table_args__ = (
        Index("ix_audit_at", "at", "id"),
        Index("ix_audit_by", "by", "at", "id"),
        Index("ix_audit_kind", "object_kind", "at", "id"),
        Index("ix_audit_object", "object_kind", "object_name", "at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    by: Mapped[str] = mapped_column(String(128))
    action: Mapped[str] = mapped_column(String(64))
    object_kind: Mapped[str] = mapped_column(String(32))
    object_name: Mapped[str] = mapped_column(Text)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONData)
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONData)

    def of_same_act(self) -> tuple[ColumnElement[bool], ...]:
        """What the entries of the act have in common that this one belongs to; what else it did is another act."""
        return AuditEntry.at == self.at, AuditEntry.by == self.by, AuditEntry.action == self.action

    @classmethod
    def record(
        cls,
        session: Session,
        *,
        at: datetime,
        by: str,
        action: str,
        kind: str,
        name: str,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Write one change down, in the transaction that makes it; the caller has masked the secrets.

        Args:
            by: the user's name, or `token:NAME`.
            action: `created`, `changed`, `deleted`, ...
            kind: of the object: `site`, `target`, `rate_group`, `user`, `token`.
        """
        session.add(
            cls(at=at, by=by, action=action, object_kind=kind, object_name=name, before=before, after=after)
        )
