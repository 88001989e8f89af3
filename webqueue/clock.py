"""Time, from one place.

Stored times come from the database's clock, so that many machines agree (DESIGN P10); lease deadlines are measured
by a monotonic clock that counts the time a machine was suspended (P1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, DateTime, func, text
from sqlalchemy.orm import Session

_replacement: Callable[[], datetime] | None = None

# CLOCK_BOOTTIME goes on while the machine is suspended; CLOCK_MONOTONIC (the fallback elsewhere) does not.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now(connection: Connection | Session) -> datetime:
    """The time of the database that `connection` belongs to, in UTC.

    PostgreSQL is asked for `clock_timestamp()`, which goes on within a transaction. SQLite has no server: its clock is
    this machine's.
    """
    if _replacement is not None:
        return _replacement()
    if (
        connection.get_bind().dialect.name == "postgresql"
        if isinstance(connection, Session)
        else (connection.dialect.name == "postgresql")
    ):
        value: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return value.astimezone(UTC)
    return datetime.now(UTC)


def column(session: Session) -> ColumnElement[datetime] | None:
    """`now` as a column of a statement that is asked anyway; None where `now` asks nobody, and costs nothing."""
    if _replacement is not None or session.get_bind().dialect.name != "postgresql":
        return None
    return func.clock_timestamp(type_=DateTime(timezone=True))


def local_now() -> datetime:
    """This machine's time in UTC, for what never reaches the database (log lines, evidence)."""
    return _replacement() if _replacement is not None else datetime.now(UTC)


def replacement() -> datetime | None:
    """What the clock of a test says; None while the real clocks hold."""
    return None if _replacement is None else _replacement()


def boot_seconds() -> float:
    """Seconds of a monotonic clock that counts suspension; only differences mean something."""
    return time.clock_gettime(_BOOT_CLOCK)


@contextmanager
def replaced(source: Callable[[], datetime]) -> Iterator[None]:
    """Let `now` and `local_now` answer what `source` says, in this process, for tests."""
    global _replacement  # noqa: PLW0603 - the one switch of the one clock
    before, _replacement = _replacement, source
    try:
        yield
    finally:
        _replacement = before
