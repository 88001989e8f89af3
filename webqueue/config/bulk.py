"""One change of many targets, as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.editing import put_target
from webqueue.config.report import What
from webqueue.config.rows import target_data
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.models import Target
from webqueue.sentences import say

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
    changed = 0
    rows = {row.code: row for row in session.scalars(select(Target).where(Target.code.in_(codes)))}
    for code in sorted(codes):  # everybody who locks several targets takes them by code
        row = rows.get(code)
        if row is None:
            raise NotFoundError("target", code)
        data = target_data(row)
        try:
            done = put_target(session, code, {**data, **change(data)}, by=by, now=now)
        except InvalidInputError as error:
            raise InvalidInputError(
                [
                    Problem(problem.field, say("%(value)s (%(code)s)", value=problem.message, code=code))
                    for problem in error.problems
                ]
            ) from None
        changed += done.what is not What.UNCHANGED
    return changed


def with_tag(tag: str) -> BulkChange:
    """The change that adds a tag."""
    return lambda data: {"tags": [*data["tags"], *([] if tag in data["tags"] else [tag])]}


def without_tag(tag: str) -> BulkChange:
    """The change that removes a tag."""
    return lambda data: {"tags": [one for one in data["tags"] if one != tag]}
