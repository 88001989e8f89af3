"""Errors that say: not this value, whenever it is tried; all others may pass when the database is back."""

from __future__ import annotations

from sqlalchemy.exc import DataError, IntegrityError, StatementError


def is_refused(error: Exception) -> bool:
    """Whether the database refuses this very value, so that trying it again is of no use."""
    if isinstance(error, DataError | IntegrityError):
        return True
    # A StatementError itself is a value that could not be bound; its subclasses come from the database.
    return type(error) is StatementError or not isinstance(error, StatementError | OSError)
