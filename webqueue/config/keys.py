"""What people write about a rate key: who looks after it, and what others should know."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.orm import Session

from webqueue import queries
from webqueue.config.problems import found_problems
from webqueue.config.specs import KeyNoteSpec
from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.models import AuditEntry, RateKey, RateKeyNote

_TURN = "rate key notes"


def describe_key(session: Session, key: str, *, owner: str, note: str, by: str, now: datetime) -> None:
    """Give a rate key an owner and a note; empty ones are none.

    Args:
        session: a writing transaction.

    Raises:
        NotFoundError: there is no such key.
        InvalidInputError: a text is too long, or the owner has more than one line.
    """
    try:
        spec = KeyNoteSpec(owner=owner, note=note)
    except ValidationError as error:
        raise InvalidInputError(
            [Problem(str(found.path[0]), found.message) for found in found_problems(error, KeyNoteSpec)]
        ) from None
    take_turn(session, _TURN)
    if session.get(RateKey, key) is None and key not in queries.sites_by_key(session):
        raise NotFoundError("rate key", key)
    row = session.get(RateKeyNote, key, populate_existing=True)
    before = {"owner": "", "note": ""} if row is None else {"owner": row.owner, "note": row.note}
    after = spec.model_dump()
    if before == after:
        return
    if row is None:
        session.add(RateKeyNote(key=key, **after))
    else:
        row.owner, row.note = spec.owner, spec.note
    changed = [name for name in after if before[name] != after[name]]
    AuditEntry.record(
        session,
        at=now,
        by=by,
        action="changed",
        kind="rate_key",
        name=key,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
