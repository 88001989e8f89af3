"""Documents: what crawls stored, with versions. Their text is text, never markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from flask import Blueprint, Response, current_app, render_template, request, url_for
from sqlalchemy.orm import Session

from webqueue import queries
from webqueue.db import database, reading
from webqueue.documents import OriginalStore
from webqueue.queries import Diff, DocumentDetail, DocumentFilter, document_export, document_search
from webqueue.queries.csv_lines import for_spreadsheets
from webqueue.settings import Settings
from webqueue.web.languages import gettext, told

pages = Blueprint("documents", __name__)

FILTERS: Final = ("q", "target", "job", "state")
PAGE_LENGTH: Final = 50
_LONGEST_FILTER: Final = 200
# Characters; a browser gets slow with much more, and nobody reads a book on this page.
_SHOWN_TEXT: Final = 200_000


@pages.get("/documents")
def index() -> str:
    """The newest documents, or those that a search finds."""
    chosen = _chosen()
    filters = DocumentFilter(**chosen)
    session = reading()
    page = queries.list_documents(session, filters, cursor=request.args.get("cursor"), limit=PAGE_LENGTH)
    return render_template(
        "documents.html",
        section="documents",
        page=page,
        chosen=chosen,
        search=filters.search,
        snippets=queries.snippets(session, filters.search, [row.id for row in page.items]),
        marked=queries.marked,
        notices=_notices(session, filters),
        url=lambda **more: url_for("documents.index", **{**chosen, **more}),
    )


@pages.get("/documents.jsonl")
def as_jsonl() -> Response:
    """The documents that match the filters, a JSON object a line."""
    lines = document_export.jsonl_lines(database(), DocumentFilter(**_chosen()))
    return _download(lines, "application/jsonl", "jsonl")


@pages.get("/documents.csv")
def as_csv() -> Response:
    """The documents that match the filters, as CSV."""
    lines = document_export.csv_lines(database(), DocumentFilter(**_chosen()))
    return _download(for_spreadsheets(lines), "text/csv", "csv")


@pages.get("/documents/<int:number>")
def show(number: int) -> str:
    """One document with one version's text, and what changed between two of its versions."""
    session = reading()
    document = queries.get_document(session, number, version=request.args.get("version", type=int))
    return render_template(
        "document.html",
        section="documents",
        document=document,
        shown_text=_SHOWN_TEXT,
        diff=_diff(session, document),
    )


@pages.get("/documents/<int:number>/text.txt")
def text(number: int) -> Response:
    """The whole text of one version, to download."""
    document = queries.get_document(reading(), number, version=request.args.get("version", type=int))
    name = f"document-{document.id}-version-{document.shown_version}.txt"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(document.text, content_type="text/plain; charset=utf-8", headers=headers)


def _chosen() -> dict[str, Any]:
    """The filters that are set; a longer text than anything can have is cut, as its field shows."""
    args = request.args
    return {name: value for name in FILTERS if (value := args.get(name, "").strip()[:_LONGEST_FILTER])}


def _notices(session: Session, filters: DocumentFilter) -> list[str]:
    """What somebody who searches has to know."""
    if not filters.search.words:
        return []
    notices = []
    if not queries.reaches_all(session, filters.search):
        notices.append(
            gettext(
                "Words of one or two characters are looked for in the newest %(count)s documents only; three or more "
                "are looked for in all.",
                count=f"{document_search.SHORT_REACH:,}",
            )
        )
    state = document_search.state(session)
    return [*notices, told(state.message)] if state.message else notices


def _diff(session: Session, document: DocumentDetail) -> Diff | None:
    """Of the versions asked for, else of the last two."""
    if document.version < 2:
        return None
    newer = request.args.get("to", type=int) or document.shown_version
    older = request.args.get("from", type=int) or max(1, newer - 1)
    if "to" not in request.args and older == newer:
        newer = older + 1  # the first version is shown: what came of it
    return queries.version_diff(session, document.id, min(older, newer), max(older, newer))


def _download(lines: Iterator[str], kind: str, ending: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="documents.{ending}"'}
    return Response(lines, content_type=f"{kind}; charset=utf-8", headers=headers)


@pages.get("/kept/<key>")
def kept(key: str) -> Response:
    """An original, or a kept page, as a file to download.

    It comes from anybody: the browser must neither show it in the admin's origin nor guess a type for it.
    """
    settings: Settings = current_app.extensions["webqueue_settings"]
    body = OriginalStore(settings.store).get(key)
    ending = "bin" if b"\0" in body[:4096] else "txt"
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="page-{key[:12]}.{ending}"'
    return response
