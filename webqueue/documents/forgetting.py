"""Retention of documents: their own, off by default, and apart from the history of jobs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, literal, select
from sqlalchemy.orm import Session

from webqueue.models import Document, DocumentAlias, ForgottenDocument


def forget_documents(session: Session, *, before: datetime, now: datetime, limit: int) -> int:
    """Delete documents, with their versions, that no request has found since `before`.

    Their addresses stay known: a list that still names them must not make a crawl fetch its whole archive again. The
    originals stay in the store, since equal bytes may belong to another document.

    Args:
        session: a writing transaction.
        before: documents last found earlier go.
        now: the database's time.
        limit: at most so many.

    Returns:
        How many were deleted.
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
