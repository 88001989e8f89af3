"""`documents`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import click

from webqueue import clock, queries
from webqueue.api import shapes
from webqueue.cli.opening import opened
from webqueue.cli.output import json_option, show_one, show_rows
from webqueue.database import Database
from webqueue.models import DocumentState
from webqueue.queries import document_export

_COLUMNS: Final = ("id", "target", "title", "url", "changed_at", "state", "version")


@click.group()
def documents() -> None:
    """List, show and export what crawls stored."""


@documents.command("list")
@click.option("--target")
@click.option("--job", help="Id of a job that stored a version of them, or found them last.")
@click.option("--state", type=click.Choice([state.value for state in DocumentState]))
@click.option("--search", "query", help="Words, each to be found in title, text or URL.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, queries.MAX_LIMIT))
@json_option
def list_(
    target: str | None, job: str | None, state: str | None, query: str | None, limit: int, as_json: bool
) -> None:
    """List documents, newest first."""
    wanted = queries.DocumentFilter(target=target, job=job, state=state, q=query)
    with opened() as (database, _settings), database.reading() as session:
        page = queries.list_documents(session, wanted, limit=limit)
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
@click.option("--state", type=click.Choice([state.value for state in DocumentState]))
@click.option("--search", "query", help="Words, each to be found in title, text or URL.")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "atom"]), default="jsonl", show_default=True
)
def export(
    since: datetime | None, target: str | None, state: str | None, query: str | None, form: str
) -> None:
    """Print documents with their texts, newest first; as atom, the newest 100 without their whole texts."""
    wanted = queries.DocumentFilter(
        target=target, since=since.replace(tzinfo=UTC) if since else None, state=state, q=query
    )
    out = sys.stdout.buffer  # UTF-8, whatever the terminal is
    with opened() as (database, _settings):
        if form == "atom":
            with database.reading() as session:
                now = clock.now(session)
                address = f"urn:webqueue:documents:{quote(target or '')}"
                out.write(document_export.atom_feed(session, wanted, feed_url=address, now=now))
        else:
            for line in _lines(database, wanted, form):
                out.write(line.encode())
    out.flush()


def _without_text(row: dict[str, Any]) -> dict[str, Any]:
    """A listing loads no texts, and must not look as if they were empty."""
    return {name: value for name, value in row.items() if name != "text"}


def _lines(database: Database, wanted: queries.DocumentFilter, form: str) -> Iterator[str]:
    if form == "csv":
        return document_export.csv_lines(database, wanted)
    return document_export.jsonl_lines(database, wanted)
