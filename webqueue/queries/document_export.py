"""Documents as JSON lines, as CSV and as an Atom feed, for the pages, the API and the command line alike."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue.database import Database
from webqueue.models import Document
from webqueue.queries import document_search
from webqueue.queries.csv_lines import csv_line
from webqueue.queries.documents import DocumentFilter, DocumentRow, document_texts, list_documents

FIELDS: Final = (
    "id", "target", "url", "title", "text", "published_at", "first_seen_at", "last_seen_at", "changed_at", "state",
    "gone_at", "version", "content_hash",
)  # fmt: skip
FEED_ENTRIES: Final = 100
_ROWS_AT_ONCE: Final = 100
_CHARACTERS_AT_ONCE: Final = 2_000_000
_SUMMARY: Final = 500  # characters
_ATOM: Final = "http://www.w3.org/2005/Atom"
# What XML 1.0 cannot contain, not even escaped (section 2.2, Char).
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

ET.register_namespace("", _ATOM)


def jsonl_lines(database: Database, filters: DocumentFilter) -> Iterator[str]:
    """A JSON object a line, newest document first."""
    for row, text in _rows(database, filters):
        yield json.dumps(_fields(row, text), ensure_ascii=False) + "\n"


def csv_lines(database: Database, filters: DocumentFilter) -> Iterator[str]:
    """A line of names, then a line for each document, newest first."""
    yield csv_line(FIELDS)
    for row, text in _rows(database, filters):
        yield csv_line(["" if value is None else str(value) for value in _fields(row, text).values()])


def atom_feed(session: Session, filters: DocumentFilter, *, feed_url: str, now: datetime) -> bytes:
    """The newest documents as an Atom feed (RFC 4287).

    Args:
        session: of the caller's transaction.
        filters: which documents.
        feed_url: the feed's own address, which is its id too.
        now: what an empty feed calls its last change.
    """
    rows = list_documents(session, filters, limit=FEED_ENTRIES).items
    starts = _starts_of_texts(session, [row.id for row in rows])
    feed = ET.Element(f"{{{_ATOM}}}feed")
    title = f"New documents of {filters.target}" if filters.target else "New documents"
    _add(feed, "id", feed_url)
    _add(feed, "title", f"{title}: {filters.q}" if filters.q else title)
    _add(feed, "updated", _moment(max((row.changed_at for row in rows), default=now)))
    _add(feed, "link", rel="self", type="application/atom+xml", href=feed_url)
    _add(_add(feed, "author"), "name", "webqueue")
    _add(feed, "generator", "webqueue")
    for row in rows:
        entry = _add(feed, "entry")
        _add(entry, "id", uuid.uuid5(uuid.NAMESPACE_URL, f"{row.target} {row.url}").urn)
        _add(entry, "title", row.title or "(no title)")
        _add(entry, "updated", _moment(row.changed_at))
        _add(entry, "published", _moment(row.published_at or row.first_seen_at))
        if urlsplit(row.url).scheme in {"http", "https"}:
            _add(entry, "link", rel="alternate", href=row.url)
        _add(entry, "category", term=row.target)
        _add(entry, "summary", starts.get(row.id, "") or "(no text)")
    document: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _rows(database: Database, filters: DocumentFilter) -> Iterator[tuple[DocumentRow, str]]:
    """Documents with their texts.

    Each batch is a read of its own: one that lasted as long as a slow reader takes would keep old rows alive. A batch
    has so many documents as have two million characters together, so that memory does not grow with the texts.
    """
    cursor: str | None = None
    # Once: on PostgreSQL this asks the index of the search, which takes longer than a page.
    with database.reading() as session:
        found = document_search.conditions(session, filters.search)
    while True:
        with database.reading() as session:
            page = list_documents(session, filters, cursor=cursor, limit=_ROWS_AT_ONCE, found=found)
            lengths = _lengths(session, [row.id for row in page.items])
        for batch in _batches(page.items, lengths):
            with database.reading() as session:
                texts = document_texts(session, [row.id for row in batch])
            # One that retention has deleted meanwhile is left out.
            yield from ((row, texts[row.id]) for row in batch if row.id in texts)
        cursor = page.next_cursor
        if cursor is None:
            return


def _batches(rows: Sequence[DocumentRow], lengths: dict[int, int]) -> Iterator[list[DocumentRow]]:
    batch: list[DocumentRow] = []
    size = 0
    for row in rows:
        length = lengths.get(row.id, 0)
        if batch and size + length > _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch


def _lengths(session: Session, numbers: Sequence[int]) -> dict[int, int]:
    statement = select(Document.id, func.length(Document.text)).where(Document.id.in_(numbers))
    return {int(row[0]): int(row[1]) for row in session.execute(statement)}


def _starts_of_texts(session: Session, numbers: Sequence[int]) -> dict[int, str]:
    start = func.substr(Document.text, 1, _SUMMARY)
    rows = session.execute(select(Document.id, start).where(Document.id.in_(numbers)))
    return {int(row[0]): str(row[1]) for row in rows}


def _fields(row: DocumentRow, text: str) -> dict[str, object]:
    data = {name: getattr(row, name, None) for name in FIELDS} | {"text": text}
    return {name: _moment(value) if isinstance(value, datetime) else value for name, value in data.items()}


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}", {k: _xml(v) for k, v in attributes.items()})
    if text:
        element.text = _xml(text)
    return element


def _xml(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
