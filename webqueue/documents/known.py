"""Which URLs are stored already, and since when (DESIGN section 6, "Known pages")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, literal, null, or_, select, union_all
from sqlalchemy.orm import Session

from webqueue.documents.hashes import url_hash
from webqueue.models import Document, DocumentAlias, DocumentState, ForgottenDocument

NEW: Final = "new"
KNOWN: Final = "known"
IN_CHAIN: Final = "in_chain"

_PAGES: Final = ("text/html", "application/xhtml")
# SQLite takes 32,766 parameters in a statement; each URL is bound three times.
_URLS_IN_A_STATEMENT: Final = 5_000


def known(
    session: Session, target_code: str, urls: Iterable[str], *, root_id: str, chain_began_at: datetime
) -> dict[str, str]:
    """What is stored of `urls`, in one statement.

    Args:
        session: of the caller's transaction.
        target_code: documents of other targets do not count.
        urls: as links led to them; other URLs of a document are found too.
        root_id: first job of the chain that asks.
        chain_began_at: when that job first began.

    Returns:
        For each URL `new` (not stored), `known` (stored before the chain began, and not again by it) or `in_chain`
        (stored since: not fetched again, but no reason to stop).
    """
    wanted = {url_hash(url): url for url in urls}
    states = dict.fromkeys(wanted.values(), NEW)
    for hashes in _batches(list(wanted)):
        own = select(Document.url_hash, Document.first_seen_at, Document.last_root_id, literal(1)).where(
            Document.target_code == target_code, Document.url_hash.in_(hashes)
        )
        other = (
            select(DocumentAlias.url_hash, Document.first_seen_at, Document.last_root_id, literal(0))
            .join(Document, Document.id == DocumentAlias.document_id)
            .where(DocumentAlias.target_code == target_code, DocumentAlias.url_hash.in_(hashes))
        )
        # What retention has deleted stays known, else every old page of a list would look new.
        forgotten = select(
            ForgottenDocument.url_hash, ForgottenDocument.forgotten_at, null(), literal(-1)
        ).where(ForgottenDocument.target_code == target_code, ForgottenDocument.url_hash.in_(hashes))
        # A document's own URL counts more than one that led to another document: it comes last and stays.
        rows: list[Any] = sorted(
            session.execute(union_all(own, other, forgotten)).all(), key=lambda row: int(row[3])
        )
        for found, first_seen_at, last_root_id, _ in rows:
            if last_root_id is None:
                states[wanted[found]] = KNOWN
                continue
            before = first_seen_at < chain_began_at and last_root_id != root_id
            states[wanted[found]] = KNOWN if before else IN_CHAIN
    return states


@dataclass(frozen=True)
class StoredTimes:
    """When a stored document was published, as far as that is known, first stored, and last found by a request."""

    published_at: datetime | None
    first_seen_at: datetime
    last_seen_at: datetime


def times(session: Session, target_code: str, urls: Iterable[str]) -> dict[str, StoredTimes]:
    """When the documents that have `urls`, as their own or as others that led to them, were stored.

    Args:
        session: of the caller's transaction.
        target_code: documents of other targets do not count.
        urls: what is not stored is left out of the answer.
    """
    wanted = {url_hash(url): url for url in urls}
    found: dict[str, StoredTimes] = {}
    columns = (Document.published_at, Document.first_seen_at, Document.last_seen_at)
    for hashes in _batches(list(wanted)):
        own = select(Document.url_hash, *columns, literal(1)).where(
            Document.target_code == target_code, Document.url_hash.in_(hashes)
        )
        other = (
            select(DocumentAlias.url_hash, *columns, literal(0))
            .join(Document, Document.id == DocumentAlias.document_id)
            .where(DocumentAlias.target_code == target_code, DocumentAlias.url_hash.in_(hashes))
        )
        rows = sorted(session.execute(union_all(own, other)).all(), key=lambda row: int(row[4]))
        found |= {wanted[row[0]]: StoredTimes(row[1], row[2], row[3]) for row in rows}
    return found


def recent_unmet(
    session: Session, target_code: str, *, since: datetime, root_id: str, limit: int
) -> list[str]:
    """URLs of documents that are recent and not gone, and that a chain has not asked for; the newest first.

    Args:
        session: of the caller's transaction.
        target_code: whose documents.
        since: published then or later; where that is not known, first stored.
        root_id: first job of the chain; what it stored, saw or missed is left out.
        limit: at most so many.
    """
    dated = func.coalesce(Document.published_at, Document.first_seen_at)
    statement = (
        select(Document.url)
        .where(
            Document.target_code == target_code,
            dated >= since,
            Document.state == DocumentState.LIVE,
            Document.last_root_id != root_id,
            # Files belong to their articles, and are asked for with them.
            or_(*(Document.content_type.startswith(kind) for kind in _PAGES)),
        )
        .order_by(Document.id.desc())
        .limit(limit)
    )
    return list(session.scalars(statement))


def last_found_at(session: Session, target_code: str) -> datetime | None:
    """When the newest document of a target was first stored."""
    return session.scalar(select(func.max(Document.first_seen_at)).where(Document.target_code == target_code))


def validators(session: Session, target_code: str, url: str) -> Mapping[str, str]:
    """Headers that make a request for a stored document conditional (RFC 9110 section 13); empty when there are none."""
    row = session.execute(
        select(Document.etag, Document.last_modified).where(
            Document.id == document_id(session, target_code, url)
        )
    ).one_or_none()
    headers = {} if row is None else {"if-none-match": row.etag, "if-modified-since": row.last_modified}
    return {name: value for name, value in headers.items() if value}


def document_id(session: Session, target_code: str, url: str) -> int | None:
    """The document that has `url`, as its own or as another one that led to it."""
    wanted = url_hash(url)
    own = select(Document.id).where(Document.target_code == target_code, Document.url_hash == wanted)
    found = session.execute(own).scalar_one_or_none()
    if found is not None:
        return found
    other = select(DocumentAlias.document_id).where(
        DocumentAlias.target_code == target_code, DocumentAlias.url_hash == wanted
    )
    return session.execute(other).scalar_one_or_none()


def _batches(hashes: list[str]) -> Iterable[list[str]]:
    for start in range(0, len(hashes), _URLS_IN_A_STATEMENT):
        yield hashes[start : start + _URLS_IN_A_STATEMENT]
