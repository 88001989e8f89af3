"""Documents: what crawls stored, with versions. Their text is text, never markup."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, current_app, render_template, request, url_for

from webqueue import queries
from webqueue.db import reading
from webqueue.documents import OriginalStore
from webqueue.queries import DocumentFilter
from webqueue.settings import Settings

pages = Blueprint("documents", __name__)

FILTERS = ("q", "target", "job", "state")
PAGE_LENGTH = 50


@pages.get("/documents")
def index() -> str:
    """The newest documents, or those that a search finds."""
    chosen: dict[str, Any] = {
        name: value for name in FILTERS if (value := request.args.get(name, "").strip()[:200])
    }
    page = queries.list_documents(
        reading(), DocumentFilter(**chosen), cursor=request.args.get("cursor"), limit=PAGE_LENGTH
    )
    return render_template(
        "documents.html",
        section="documents",
        page=page,
        chosen=chosen,
        url=lambda **more: url_for("documents.index", **{**chosen, **more}),
    )


@pages.get("/documents/<int:number>")
def show(number: int) -> str:
    """One document with one version's text."""
    document = queries.get_document(reading(), number, version=request.args.get("version", type=int))
    return render_template("document.html", section="documents", document=document)


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
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response
