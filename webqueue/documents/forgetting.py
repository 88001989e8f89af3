"""Retention of documents: their own, off by default, and apart from the history of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, insert, literal, select
from sqlalchemy.orm import Session

from webqueue.models import Document, DocumentAlias, DocumentVersion, ForgottenDocument

# A document may be a line or a book, and SQLite's other writers wait while it is taken out of the index of the search.
CHARACTERS_AT_ONCE: Final = 500_000
_MEASURED_AT_ONCE: Final = 10


def forget_documents(
    session: Session, *, before: datetime, now: datetime, limit: int, characters: int = CHARACTERS_AT_ONCE
) -> int:
    """Delete documents, with their versions, that no request has found since `before`.

    Their addresses stay known: a list that still names them must not make a crawl fetch its whole archive again. The
    originals stay in the store, since equal bytes may belong to another document.

    Args:
        session: a writing transaction.
        before: documents last found earlier go.
        now: the database's time.
        limit: at most so many.
        characters: no more, once their texts, with those of the versions, have so many together.

    Returns:
        How many were deleted; to be called again, in a new transaction, until that is 0.
    """
    chosen = list(
        session.scalars(
            select(Document.id)
            .where(Document.last_seen_at < before)
            .order_by(Document.last_seen_at)
            .limit(limit)
            # PostgreSQL: a crawl that is finding one of them just now keeps it, and nobody waits.
            .with_for_update(skip_locked=True)
        )
    )
    if not chosen:
        return 0
    chosen = _first(session, chosen, characters)
    addresses = (
        select(Document.target_code, Document.url_hash)
        .where(Document.id.in_(chosen))
        .union(
            select(DocumentAlias.target_code, DocumentAlias.url_hash).where(
                DocumentAlias.document_id.in_(chosen)
            )
        )
        .subquery()
    )
    already = (
        select(literal(1))
        .where(
            ForgottenDocument.target_code == addresses.c.target_code,
            ForgottenDocument.url_hash == addresses.c.url_hash,
        )
        .exists()
    )
    session.execute(
        insert(ForgottenDocument).from_select(
            ["target_code", "url_hash", "forgotten_at"],
            select(
                addresses.c.target_code,
                addresses.c.url_hash,
                literal(now, ForgottenDocument.forgotten_at.type),
            ).where(~already),
        )
    )
    session.execute(
        delete(Document).where(Document.id.in_(chosen)).execution_options(synchronize_session=False)
    )
    return len(chosen)


def _first(session: Session, numbers: Sequence[int], characters: int) -> list[int]:
    """The first of these documents, one at least, up to the one with which their texts are as long as wanted."""
    first: list[int] = []
    for start in range(0, len(numbers), _MEASURED_AT_ONCE):
        # A few at a time: to measure a text is to read it.
        some = numbers[start : start + _MEASURED_AT_ONCE]
        lengths = dict.fromkeys(some, 0)
        for number, length in [
            *session.execute(select(Document.id, func.length(Document.text)).where(Document.id.in_(some))),
            *session.execute(
                select(DocumentVersion.document_id, func.sum(func.length(DocumentVersion.text)))
                .where(DocumentVersion.document_id.in_(some))
                .group_by(DocumentVersion.document_id)
            ),
        ]:
            lengths[number] += int(length)
        for number in some:
            first.append(number)
            characters -= lengths[number]
            if characters <= 0:
                return first
    return first
