"""Turns between transactions that change the same small thing (configuration, users, one name's logins)."""

from __future__ import annotations

import hashlib

from sqlalchemy import text
from sqlalchemy.orm import Session


def take_turn(session: Session, name: str) -> None:
    """Wait until no other transaction holds the turn `name`, and hold it until this one ends.

    SQLite has one writer at a time already. On PostgreSQL a check ("is the name free", "how many administrators are
    left") would otherwise not see what a concurrent transaction is about to commit.
    """
    _lock(session, "pg_advisory_xact_lock", name)


def share_turn(session: Session, name: str) -> None:
    """Hold the turn `name` together with others that share it, until this transaction ends.

    Whoever takes the turn afterwards waits for all of them, and so knows that what they read holds no longer.
    """
    _lock(session, "pg_advisory_xact_lock_shared", name)


def _lock(session: Session, function: str, name: str) -> None:
    if session.get_bind().dialect.name != "postgresql":
        return
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    session.execute(text(f"SELECT {function}(:number)"), {"number": number})
