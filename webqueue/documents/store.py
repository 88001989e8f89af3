"""Storing what a crawl found. The caller has fenced the job, and commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Insert, case, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from webqueue.database.types import storable
from webqueue.documents.hashes import content_hash, url_hash
from webqueue.documents.known import document_id
from webqueue.models import Document, DocumentAlias, DocumentState, DocumentVersion

NEW: Final = "new"
CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
GONE: Final = DocumentState.GONE.value

MISSES_UNTIL_GONE: Final = 2  # DESIGN section 6: 404 or 410 twice
_FOUND: Final = {"misses": 0, "state": DocumentState.LIVE, "gone_at": None}
_TITLE_LENGTH: Final = 1_000  # characters; a title beyond it is an attack or a mistake
_CONTENT_TYPE_LENGTH: Final = 255


@dataclass(frozen=True)
class DocumentDraft:
    """A page or file as a handler found it.

    Attributes:
        url: its identity within the target.
        text: the main text; versions are told apart by it, less what `ignore_selectors` match.
        hashed_text: what the version is judged by, when it differs from `text`.
        original: the bytes as they came, kept in the store.
        etag: validator of the response, sent back with the next conditional request; so is `last_modified`.
        aliases: other URLs that led to it; they are known from then on.
    """

    url: str
    title: str
    text: str
    published_at: datetime | None = None
    hashed_text: str | None = None
    original: bytes | None = None
    content_type: str = "text/html"
    etag: str | None = None
    last_modified: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stored:
    """What storing did: `new`, `changed` (a new version) or `unchanged`; a trial stores nothing, and has no id."""

    what: str
    document_id: int | None


@dataclass(frozen=True)
class _Found:
    id: int
    version: int
    content_hash: str
    title: str


def store(
    session: Session,
    draft: DocumentDraft,
    *,
    target_code: str,
    job_id: str,
    root_id: str,
    now: datetime,
    original: str | None = None,
) -> Stored:
    """Store a document: once per target and URL, with one version for each text it had.

    A draft that came by an alias is the document of its `url` only when that one has the same text or title: pages
    that name a wrong address of their own (every article its section, say) must not overwrite each other.

    Args:
        session: a writing transaction in which the caller locked the job; nothing is committed here.
        draft: what was found.
        target_code: the target that it belongs to.
        job_id: the job that found it; `root_id` is the first job of its chain.
        root_id: see `job_id`.
        now: the database's time.
        original: the key under which the `OriginalStore` keeps the draft's bytes already.
    """
    draft_hash = content_hash(draft.text if draft.hashed_text is None else draft.hashed_text)
    stamp = {"last_job_id": job_id, "last_root_id": root_id, "last_seen_at": now}
    found = _find(session, target_code, draft, draft_hash)
    url = draft.url
    if found is None:
        if draft.aliases and document_id(session, target_code, draft.url) is not None:
            url = draft.aliases[0]  # its own address belongs to another page
        values = (
            _values(draft, original)
            | stamp
            | {"content_hash": draft_hash, "first_seen_at": now, "changed_at": now}
        )
        inserted = session.execute(
            _insert(session, Document)
            .values(
                target_code=target_code,
                url=url,
                url_hash=url_hash(url),
                first_job_id=job_id,
                version=1,
                **values,
            )
            .on_conflict_do_nothing(index_elements=["target_code", "url_hash"])
            .returning(Document.id)
        ).scalar_one_or_none()
        if inserted is not None:
            _add_version(session, inserted, 1, draft, draft_hash, original, job_id, now)
            _add_aliases(session, inserted, target_code, draft, url)
            return Stored(NEW, inserted)
        # Another transaction stored it first, and has committed: the insert waited for it.
        found = _lock(session, target_code, url)
    what = UNCHANGED if found.content_hash == draft_hash else CHANGED
    values = _values(draft, original) | stamp | _FOUND
    if what == CHANGED:
        values |= {"content_hash": draft_hash, "version": found.version + 1, "changed_at": now}
        _add_version(session, found.id, found.version + 1, draft, draft_hash, original, job_id, now)
    else:
        # The text may differ in what versions do not compare; the stored one stays that of its version.
        del values["text"], values["original"]
    session.execute(update(Document).where(Document.id == found.id).values(**values))
    _add_aliases(session, found.id, target_code, draft, url)
    return Stored(what, found.id)


def seen(session: Session, *, target_code: str, url: str, job_id: str, root_id: str, now: datetime) -> bool:
    """Note that a stored document was found unchanged (HTTP 304); False when there is none."""
    changed = session.execute(
        update(Document)
        .where(Document.id == document_id(session, target_code, url))
        .values(last_seen_at=now, last_job_id=job_id, last_root_id=root_id, **_FOUND)
        .returning(Document.id)
    ).all()
    return bool(changed)


def mark_missing(session: Session, *, target_code: str, url: str, root_id: str, now: datetime) -> str | None:
    """Note that a document's page answered 404 or 410: twice in a row marks it gone and keeps it.

    Two answers to one chain count once: a chain that is retried has asked for the same reason twice.

    Args:
        session: a writing transaction in which the caller locked the job.
        target_code: of the document.
        url: its own, or another one that led to it.
        root_id: first job of the chain that asked; its links are not fetched again by that chain.
        now: the database's time, kept as the time since when it is gone.

    Returns:
        The document's state now, None when there is no such document.
    """
    counted = (Document.misses > 0) & (Document.last_root_id == root_id)
    misses = case((counted, Document.misses), else_=Document.misses + 1)
    gone = misses >= MISSES_UNTIL_GONE
    states = session.execute(
        update(Document)
        .where(Document.id == document_id(session, target_code, url))
        .values(
            misses=misses,
            state=case((gone, DocumentState.GONE.value), else_=Document.state),
            gone_at=case((gone & (Document.state != DocumentState.GONE.value), now), else_=Document.gone_at),
            last_root_id=root_id,
        )
        .returning(Document.state)
    ).all()
    return str(states[0].state) if states else None


def _find(session: Session, target_code: str, draft: DocumentDraft, draft_hash: str) -> _Found | None:
    """The document that the draft is a newer state of."""
    for link in draft.aliases:
        found = _by_id(session, document_id(session, target_code, link))
        if found is not None:
            return found
    found = _by_id(session, document_id(session, target_code, draft.url))
    if found is None or not draft.aliases:
        return found
    same = found.content_hash == draft_hash or found.title == _title(draft)
    return found if same else None


def _by_id(session: Session, wanted: int | None) -> _Found | None:
    if wanted is None:
        return None
    # Locked (PostgreSQL; SQLite has one writer), so that two writers cannot make the same version.
    row = session.execute(
        select(Document.id, Document.version, Document.content_hash, Document.title)
        .where(Document.id == wanted)
        .with_for_update()
    ).one_or_none()
    return None if row is None else _Found(row.id, row.version, row.content_hash, row.title)


def _lock(session: Session, target_code: str, url: str) -> _Found:
    found = _by_id(session, document_id(session, target_code, url))
    if found is None:
        raise RuntimeError(f"The document {url} was deleted while it was stored.")
    return found


def _title(draft: DocumentDraft) -> str:
    return storable(draft.title)[:_TITLE_LENGTH]


def _values(draft: DocumentDraft, original: str | None) -> dict[str, Any]:
    return {
        "title": _title(draft),
        "text": draft.text,
        "published_at": draft.published_at,
        "original": original,
        "content_type": storable(draft.content_type)[:_CONTENT_TYPE_LENGTH],
        "etag": draft.etag,
        "last_modified": draft.last_modified,
    }


def _add_version(
    session: Session,
    document: int,
    version: int,
    draft: DocumentDraft,
    draft_hash: str,
    original: str | None,
    job_id: str,
    now: datetime,
) -> None:
    session.execute(
        _insert(session, DocumentVersion).values(
            document_id=document,
            version=version,
            stored_at=now,
            job_id=job_id,
            title=_title(draft),
            text=draft.text,
            content_hash=draft_hash,
            original=original,
        )
    )


def _add_aliases(session: Session, document: int, target_code: str, draft: DocumentDraft, url: str) -> None:
    rows = [
        {"target_code": target_code, "url_hash": url_hash(alias), "document_id": document}
        for alias in _unique(draft.aliases)
        if alias != url
    ]
    if rows:
        session.execute(_insert(session, DocumentAlias).values(rows).on_conflict_do_nothing())


def _unique(urls: Iterable[str]) -> list[str]:
    return sorted(set(urls))


def _insert(session: Session, table: type[Any]) -> Any:
    """INSERT with ON CONFLICT, which both databases have and Core's own INSERT has not."""
    dialect = session.get_bind().dialect.name
    statement: Insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return statement
