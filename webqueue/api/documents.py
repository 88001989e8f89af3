"""Documents that crawls stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flask import Response, request

from webqueue import clock, queries
from webqueue.access import Action
from webqueue.api import answers, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import json_response
from webqueue.api.routes import CURSOR, Asked, Parameter, Route, limit
from webqueue.errors import NotFoundError
from webqueue.queries import DocumentFilter, document_export
from webqueue.queries.documents import document_texts
from webqueue.queries.numbers import LARGEST, whole

_LIMIT = 50
_FILTERS = ("target", "job", "since", "q", "state")


def list_documents(ask: Asked) -> Response:
    query = Query(*_FILTERS, "cursor", "limit")
    filters = _filters(query)
    cursor = query.cursor()
    limit = query.whole("limit", _LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    with ask.database.reading() as session:
        page = queries.list_documents(session, DocumentFilter(**filters), cursor=cursor, limit=limit)
        found = document_texts(session, [row.id for row in page.items])
    return json_response(
        shapes.listing([shapes.document(row, found.get(row.id, "")) for row in page.items], page.next_cursor)
    )


def get_document(ask: Asked, number: str) -> Response:
    query = Query("version")
    version = query.whole("version", 0, 1, LARGEST)
    query.done()
    wanted = whole(number, 0, LARGEST)
    if wanted is None:
        raise NotFoundError("document", number)
    with ask.database.reading() as session:
        return json_response(
            shapes.document_detail(queries.get_document(session, wanted, version=version or None))
        )


def export_jsonl(ask: Asked) -> Response:
    """Documents with their texts, a JSON object a line."""
    return _streamed(document_export.jsonl_lines(ask.database, _asked_for()), "application/jsonl", "jsonl")


def export_csv(ask: Asked) -> Response:
    """Documents with their texts as CSV."""
    return _streamed(document_export.csv_lines(ask.database, _asked_for()), "text/csv", "csv")


def feed(ask: Asked) -> Response:
    """The newest documents as an Atom feed; a reader that has them already gets 304."""
    filters = _asked_for()
    with ask.database.reading() as session:
        body = document_export.atom_feed(session, filters, feed_url=request.url, now=clock.now(session))
    response = Response(body, content_type="application/atom+xml; charset=utf-8")
    response.add_etag()
    response.headers["Cache-Control"] = "private, no-cache"
    response.make_conditional(request)
    return response


def _asked_for() -> DocumentFilter:
    query = Query(*_FILTERS)
    filters = _filters(query)
    query.done()
    return DocumentFilter(**filters)


def _filters(query: Query) -> dict[str, Any]:
    """The filters of a request; whoever calls asks `query.done()` before using them."""
    filters: dict[str, Any] = {name: query.text(name) for name in _FILTERS if name != "since"}
    return filters | {"since": query.moment("since")}


def _streamed(lines: Iterator[str], kind: str, ending: str) -> Response:
    return Response(
        lines,
        content_type=f"{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="documents.{ending}"'},
    )


_TAKES = (
    Parameter("target", "Code of the target."),
    Parameter("job", "Id of a job that stored or found it."),
    Parameter("since", "Changed at or after.", "moment"),
    Parameter("q", "Words, each found in title, text or URL."),
    Parameter("state", "live or gone."),
)
_VERSION = Parameter("version", "Which version's text; the present one when left out.", "whole", 1, LARGEST)
ROUTES = (
    Route(
        "GET", "/documents", Action.READ, list_documents, "List documents, the last changed first.",
        {200: answers.Documents}, (*_TAKES, CURSOR, limit(_LIMIT, queries.MAX_LIMIT)),
    ),
    Route(
        "GET", "/documents.jsonl", Action.READ, export_jsonl, "Documents with their texts, a JSON object a line.",
        {200: None}, _TAKES, media="application/jsonl",
    ),
    Route(
        "GET", "/documents.csv", Action.READ, export_csv, "Documents with their texts as CSV.",
        {200: None}, _TAKES, media="text/csv",
    ),
    Route(
        "GET", "/documents.atom", Action.READ, feed, "An Atom feed of the newest documents.",
        {200: None, 304: None}, _TAKES, media="application/atom+xml",
    ),
    Route(
        "GET", "/documents/<number>", Action.READ, get_document, "A document with its versions.",
        {200: answers.DocumentDetail}, (_VERSION,),
    ),
)  # fmt: skip
