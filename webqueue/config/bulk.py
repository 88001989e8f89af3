"""One change of many targets, as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.editing import put_target
from webqueue.config.importing import TURN
from webqueue.config.problems import one_of_many
from webqueue.config.report import What
from webqueue.config.rows import target_data
from webqueue.database import take_turn
from webqueue.errors import NotFoundError
from webqueue.models import Target

BulkChange = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def change_targets(
    session: Session, codes: Collection[str], change: BulkChange, *, by: str, now: datetime
) -> int:
    """Change many targets, all or none.

    Args:
        session: a writing transaction.
        codes: of the targets.
        change: gets the fields of a target as the file has them, and gives those that change.

    Returns:
        How many are not as before.

    Raises:
        NotFoundError: there is no such target.
        InvalidInputError: one of the targets cannot be so; the problem names it.
    """
    take_turn(session, TURN)  # what is read now stays so
    # Read and written in a few statements: everybody else waits for this transaction.
    rows = {row.code: row for row in session.scalars(select(Target).where(Target.code.in_(codes)))}
    if missing := sorted(set(codes) - set(rows)):
        raise NotFoundError("target", missing[0])
    with session.no_autoflush:
        changed = sum(_change(session, rows[code], change, by=by, now=now) for code in sorted(rows))
    session.flush()
    return changed


def _change(session: Session, row: Target, change: BulkChange, *, by: str, now: datetime) -> bool:
    """Change one; whether it is not as before."""
    data = target_data(row)
    with one_of_many(row.code):
        done = put_target(session, row.code, {**data, **change(data)}, by=by, now=now)
    return done.what is not What.UNCHANGED


def with_tags(*tags: str) -> BulkChange:
    """The change that adds tags."""
    return lambda data: {"tags": [*data["tags"], *(tag for tag in tags if tag not in data["tags"])]}


def without_tags(*tags: str) -> BulkChange:
    """The change that removes tags."""
    return lambda data: {"tags": [one for one in data["tags"] if one not in tags]}
