"""One change of many targets, as a whole or not at all."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy.orm import Session

from webqueue.config.editing import put_target
from webqueue.config.report import What
from webqueue.config.rows import target_data
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.models import Target
from webqueue.sentences import say


def set_schedule(
    session: Session, codes: Collection[str], schedule: str | None, *, by: str, now: datetime
) -> int:
    """Give many targets the same schedule; it counts from now.

    Args:
        session: a writing transaction.
        codes: of the targets.
        schedule: five cron fields, or None for targets that are only run by hand.

    Returns:
        How many had another schedule before.

    Raises:
        NotFoundError: there is no such target.
        InvalidInputError: the schedule is none, or none in the zone of one of the targets (`schedule`).
    """
    changed = 0
    for code in sorted(codes):  # everybody who locks several targets takes them by code
        row = session.get(Target, code)
        if row is None:
            raise NotFoundError("target", code)
        try:
            change = put_target(session, code, {**target_data(row), "schedule": schedule}, by=by, now=now)
        except InvalidInputError as error:
            raise InvalidInputError(
                [
                    Problem(problem.field, say("%(value)s (%(code)s)", value=problem.message, code=code))
                    for problem in error.problems
                ]
            ) from None
        changed += change.what is not What.UNCHANGED
    return changed
