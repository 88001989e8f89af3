"""Failed logins, in the database so that the limit holds over every process and restart."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.models.base import Base


class LoginAttempt(Base):
    """One failed login; a row lives as long as the limit looks back."""

    __tablename__ = "login_attempts"
    __table_args__ = (
        Index("ix_login_attempts_name_at", "name", "at"),
        Index("ix_login_attempts_address_at", "address", "at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    # As it was typed, normalised; there need not be such a user.
    name: Mapped[str] = mapped_column(String(64))
    address: Mapped[str] = mapped_column(String(64))
