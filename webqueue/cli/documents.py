"""`documents`."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
from sqlalchemy.orm import Session

from webqueue import queries
from webqueue.api import shapes
from webqueue.cli.opening import opened
from webqueue.cli.output import json_option, show_one, show_rows
from webqueue.queries.documents import document_texts

_COLUMNS: Final = ("id", "target", "title", "url", "changed_at", "state", "version")
_FIELDS: Final = (
    *("id", "target", "url", "title", "text", "published_at", "first_seen_at", "last_seen_at", "changed_at"),
    *("state", "version", "content_hash"),
)
# A cell that starts with one of these is a formula to a spreadsheet.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@click.group()
def documents() -> None:
    """List, show and export what crawls stored."""


@documents.command("list")
@click.option("--target")
@click.option("--job", help="Id of a job that stored a version of them, or found them last.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, queries.MAX_LIMIT))
@json_option
def list_(target: str | None, job: str | None, limit: int, as_json: bool) -> None:
    """List documents, newest first."""
    with opened() as (database, _settings), database.reading() as session:
        page = queries.list_documents(session, queries.DocumentFilter(target=target, job=job), limit=limit)
        rows = [_without_text(shapes.document(row, "")) for row in page.items]
    show_rows(
        rows, _COLUMNS, as_json=as_json, empty="No document fits. Crawls store them: `webqueue run TARGET`."
    )


@documents.command()
@click.argument("document", type=click.IntRange(1, 2**63 - 1))
@json_option
def show(document: int, as_json: bool) -> None:
    """Show one document with its text."""
    with opened() as (database, _settings), database.reading() as session:
        show_one(shapes.document_detail(queries.get_document(session, document)), as_json=as_json)


@documents.command("export")
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Changed since (UTC).")
@click.option("--target")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
def export(since: datetime | None, target: str | None, form: str) -> None:
    """Print documents with their texts, one a line."""
    wanted = queries.DocumentFilter(target=target, since=since.replace(tzinfo=UTC) if since else None)
    with opened() as (database, _settings), database.reading() as session:
        rows = _with_texts(session, wanted)
        if form == "jsonl":
            for row in rows:
                click.echo(
                    json.dumps({name: row.get(name) for name in _FIELDS}, ensure_ascii=False, default=str)
                )
        else:
            _write_csv(rows)


def _without_text(row: dict[str, Any]) -> dict[str, Any]:
    """A listing loads no texts, and must not look as if they were empty."""
    return {name: value for name, value in row.items() if name != "text"}


def _with_texts(session: Session, wanted: queries.DocumentFilter) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = queries.list_documents(session, wanted, cursor=cursor, limit=queries.MAX_LIMIT)
        texts = document_texts(session, [row.id for row in page.items])
        for row in page.items:
            yield shapes.document(row, texts[row.id])
        cursor = page.next_cursor
        if cursor is None:
            return


def _write_csv(rows: Iterator[dict[str, Any]]) -> None:
    out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(out)
    writer.writerow(_FIELDS)
    for row in rows:
        writer.writerow([_harmless(row.get(name)) for name in _FIELDS])
    out.detach()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
