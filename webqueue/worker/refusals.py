"""Errors that say: not this value, whenever it is tried; all others may pass when the database is back."""

from __future__ import annotations

from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError, StatementError


def is_refused(error: Exception) -> bool:
    """Whether the database refuses this very value, so that trying it again is of no use."""
    if isinstance(error, DataError | IntegrityError):
        return True
    if isinstance(error, SQLAlchemyError):
        # A StatementError itself is a value that could not be bound. Its subclasses come from the database, and the
        # rest (no connection to be had in time, say) is about no value at all.
        return type(error) is StatementError
    # The driver's own words for a value: a number that is too large, a text that cannot be encoded.
    return isinstance(error, ValueError | TypeError | ArithmeticError | RecursionError | AssertionError)
