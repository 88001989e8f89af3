"""Documents that crawls stored."""

from __future__ import annotations

import re

from flask import Response

from webqueue import queries
from webqueue.access import Action
from webqueue.api import shapes
from webqueue.api.asked import Query
from webqueue.api.problems import json_response
from webqueue.api.routes import Asked, Route
from webqueue.errors import NotFoundError
from webqueue.queries.documents import document_texts

_LIMIT = 50
_LARGEST_ID = 2**31 - 1  # of PostgreSQL's integer


def list_documents(ask: Asked) -> Response:
    query = Query("target", "job", "since", "q", "state", "cursor", "limit")
    texts = {name: query.text(name) for name in ("target", "job", "q", "state")}
    since, cursor = query.moment("since"), query.cursor()
    limit = query.whole("limit", _LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    filters = queries.DocumentFilter(**texts, since=since)
    with ask.database.reading() as session:
        page = queries.list_documents(session, filters, cursor=cursor, limit=limit)
        found = document_texts(session, [row.id for row in page.items])
    return json_response(
        shapes.listing([shapes.document(row, found.get(row.id, "")) for row in page.items], page.next_cursor)
    )


def get_document(ask: Asked, number: str) -> Response:
    query = Query("version")
    version = query.whole("version", 0, 1, _LARGEST_ID)
    query.done()
    if re.fullmatch(r"[0-9]{1,10}", number, re.ASCII) is None or int(number) > _LARGEST_ID:
        raise NotFoundError("document", number)
    with ask.database.reading() as session:
        return json_response(
            shapes.document_detail(queries.get_document(session, int(number), version=version or None))
        )


ROUTES = (
    Route("GET", "/documents", Action.READ, list_documents),
    Route("GET", "/documents/<number>", Action.READ, get_document),
)
