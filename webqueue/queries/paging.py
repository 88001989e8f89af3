"""Keyset paging: page 100 costs what page 1 costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from webqueue.errors import InvalidInputError
from webqueue.queries.numbers import bounded, whole
from webqueue.sentences import say

MAX_LIMIT = 200
T = TypeVar("T")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a listing.

    Attributes:
        next_cursor: continues the listing (older rows), None at its end.
        previous_cursor: the page before (newer rows), None at the start.
    """

    items: tuple[T, ...]
    next_cursor: str | None = None
    previous_cursor: str | None = None


def checked_limit(limit: int) -> int:
    """`limit`, when it lies between 1 and MAX_LIMIT. Raises InvalidInputError (`limit`)."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError.of(
            "limit", say("%(limit)s is not between 1 and %(max_limit)s.", limit=limit, max_limit=MAX_LIMIT)
        )
    return limit


def by_code(
    session: Session,
    statement: Select[Row],
    code: InstrumentedAttribute[str],
    *,
    cursor: str | None,
    limit: int,
) -> tuple[Sequence[Row], str | None]:
    """One page of `statement` in the order of a code; the cursor is the last code of the page before.

    Returns:
        The rows, and the cursor of the next page.
    """
    limit = checked_limit(limit)
    if cursor:
        statement = statement.where(code > cursor)
    rows = session.scalars(statement.order_by(code).limit(limit + 1)).all()
    more = len(rows) > limit
    return rows[:limit], str(getattr(rows[limit - 1], code.key)) if more else None


def newest_first(
    session: Session,
    statement: Select[Row],
    number: InstrumentedAttribute[int],
    *,
    cursor: str | None,
    limit: int,
) -> tuple[Sequence[Row], str | None, str | None]:
    """One page of `statement` by a growing number, newest first.

    A cursor is a number: older than it, or, behind a `+`, newer than it.

    Returns:
        The rows, and the cursors of the next (older) and the previous (newer) page.
    """
    limit = checked_limit(limit)
    newer = bool(cursor and cursor.startswith("+"))
    if cursor:
        edge = cursor_number(cursor.removeprefix("+"))
        statement = statement.where(number > edge if newer else number < edge)
    ordered = statement.order_by(number.asc() if newer else number.desc()).limit(limit + 1)
    rows = list(session.scalars(ordered))
    more = len(rows) > limit
    rows = rows[:limit]
    if newer:
        rows.reverse()
    if not rows:
        return [], None, None
    older_exist = more if not newer else True
    newer_exist = more if newer else bool(cursor)
    return (
        rows,
        str(getattr(rows[-1], number.key)) if older_exist else None,
        f"+{getattr(rows[0], number.key)}" if newer_exist else None,
    )


def cursor_number(cursor: str) -> int:
    """The number that a cursor is. Raises InvalidInputError (`cursor`)."""
    number = whole(cursor, 0, 10**18 - 1)
    if number is None:
        raise InvalidInputError.of(
            "cursor",
            say("%(cursor)s is not a cursor; use the one of the last answer.", cursor=repr(cursor[:40])),
        )
    return bounded(number)
