"""What crawls stored. Listings load no text; `document_texts` reads those of a page for who wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, CompoundSelect, literal_column, select, union
from sqlalchemy.orm import Session, undefer

from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Document, DocumentState, DocumentVersion
from webqueue.queries import document_search
from webqueue.queries.document_search import Search
from webqueue.queries.numbers import is_number
from webqueue.queries.paging import Page, newest_first
from webqueue.sentences import say

MAX_VERSIONS = 100


@dataclass(frozen=True)
class DocumentRow:
    """A document in the fields of DESIGN section 8, without its text."""

    id: int
    url: str
    target: str
    title: str
    published_at: datetime | None
    first_seen_at: datetime
    last_seen_at: datetime
    changed_at: datetime
    state: str
    gone_at: datetime | None
    version: int
    content_hash: str
    content_type: str
    job: str


@dataclass(frozen=True)
class DocumentVersionRow:
    """One version, without its text."""

    version: int
    stored_at: datetime
    job_id: str
    title: str
    content_hash: str


@dataclass(frozen=True)
class DocumentDetail(DocumentRow):
    """A document with one version's text; `shown_version` is the version whose text and title these are."""

    text: str = ""
    shown_version: int = 1
    original: str | None = None
    versions: tuple[DocumentVersionRow, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class DocumentFilter:
    """Which documents a listing shows; None means any.

    Attributes:
        job: id of a job that stored a version of it, the first one too, or was the last to find it.
        since: changed at or after.
        q: words, each found in title, text or URL, whatever the case (`document_search`).
    """

    target: str | None = None
    job: str | None = None
    since: datetime | None = None
    q: str | None = None
    state: str | None = None

    def __post_init__(self) -> None:
        states = [state.value for state in DocumentState]
        if self.state is not None and self.state not in states:
            raise InvalidInputError.of(
                "state",
                say("%(value)s is none of %(known)s.", value=repr(self.state), known=", ".join(states)),
            )
        Search.of(self.q)

    @property
    def search(self) -> Search:
        """The words of `q`."""
        return Search.of(self.q)


def list_documents(
    session: Session,
    filters: DocumentFilter | None = None,
    *,
    cursor: str | None = None,
    limit: int = 50,
    found: Sequence[ColumnElement[bool]] | None = None,
) -> Page[DocumentRow]:
    """Documents, the newest first.

    Args:
        session: of the caller's transaction.
        filters: which documents; None: all.
        cursor: of the page; None: the first one.
        limit: documents of a page.
        found: the conditions of the search (`document_search.conditions`), for who reads many pages of one.
    """
    filters = filters or DocumentFilter()
    if found is None:
        found = document_search.conditions(session, filters.search, goes_on=cursor is not None)
    statement = select(Document)
    if filters.target is not None:
        statement = statement.where(Document.target_code == filters.target)
    if filters.job is not None:
        statement = statement.where(Document.id.in_(_documents_of(filters.job)))
    if filters.since is not None:
        statement = statement.where(Document.changed_at >= filters.since)
    if filters.state is not None:
        # Written out, because SQLite uses a partial index only for what it can read in the statement; the filter
        # has checked it.
        statement = statement.where(
            Document.state == literal_column(f"'{DocumentState(filters.state).value}'")
        )
    statement = statement.where(*found)
    rows, older, newer = newest_first(session, statement, Document.id, cursor=cursor, limit=limit)
    return Page(tuple(_row(row) for row in rows), older, newer)


def _documents_of(job_id: str) -> CompoundSelect[int]:
    """The documents of a job. A union, not an OR: each half goes through its own index on either database."""
    return union(
        select(Document.id).where(Document.last_job_id == job_id),
        select(DocumentVersion.document_id).where(DocumentVersion.job_id == job_id),
    )


def get_document(session: Session, document_id: int, *, version: int | None = None) -> DocumentDetail:
    """One document with the text of its present version, or of the one asked for.

    Raises:
        NotFoundError: no such document, or no such version.
    """
    if not is_number(document_id):
        raise NotFoundError("document", str(document_id))
    document = session.get(Document, document_id, options=[undefer(Document.text)])
    if document is None:
        raise NotFoundError("document", str(document_id))
    if version is not None and not is_number(version):
        raise NotFoundError(say("version of document %(number)s", number=document_id), str(version))
    versions = session.scalars(
        select(DocumentVersion)
        .where(DocumentVersion.document_id == document_id)
        .order_by(DocumentVersion.version.desc())
        .limit(MAX_VERSIONS)
    ).all()
    title, text, shown = document.title, document.text, document.version
    if version is not None and version != document.version:
        old = session.scalars(
            select(DocumentVersion)
            .where(DocumentVersion.document_id == document_id, DocumentVersion.version == version)
            .options(undefer(DocumentVersion.text))
        ).one_or_none()
        if old is None:
            raise NotFoundError(say("version of document %(number)s", number=document_id), str(version))
        title, text, shown = old.title, old.text, old.version
    row = _row(document)
    return DocumentDetail(
        **{**vars(row), "title": title},
        text=text,
        shown_version=shown,
        original=document.original,
        versions=_versions(versions),
    )


def _versions(rows: Sequence[DocumentVersion]) -> tuple[DocumentVersionRow, ...]:
    return tuple(
        DocumentVersionRow(row.version, row.stored_at, row.job_id, row.title, row.content_hash)
        for row in rows
    )


def _row(document: Document) -> DocumentRow:
    return DocumentRow(
        id=document.id,
        url=document.url,
        target=document.target_code,
        title=document.title,
        published_at=document.published_at,
        first_seen_at=document.first_seen_at,
        last_seen_at=document.last_seen_at,
        changed_at=document.changed_at,
        state=document.state,
        gone_at=document.gone_at,
        version=document.version,
        content_hash=document.content_hash,
        content_type=document.content_type,
        job=document.last_job_id,
    )


def document_texts(session: Session, document_ids: Sequence[int]) -> dict[int, str]:
    """The present texts of a few documents, by id."""
    rows = session.execute(select(Document.id, Document.text).where(Document.id.in_(document_ids)))
    return {number: text for number, text in rows}  # noqa: C416 - rows are no plain tuples
