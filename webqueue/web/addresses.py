"""What may stand in the address of a page."""

from __future__ import annotations

from typing import Any

from flask import Flask, abort, request
from werkzeug.routing import IntegerConverter, Map

from webqueue.queries.numbers import LARGEST
from webqueue.web.auth import API_PREFIX


class RowNumber(IntegerConverter):
    """The number of a row. One that no row can have is an address that does not exist."""

    def __init__(self, url_map: Map, *args: Any, **kwargs: Any) -> None:
        super().__init__(url_map, *args, **{"max": LARGEST, **kwargs})


def init_app(app: Flask) -> None:
    """Let `<int:…>` in the rules of the pages mean a row's number, and no address name what no database can be asked for.

    Before the pages are added.
    """
    app.url_map.converters["int"] = RowNumber
    app.before_request(_refuse_nul)


def _refuse_nul() -> None:
    """Nothing has a NUL in its name, and PostgreSQL takes none in a question."""
    if request.path.startswith(API_PREFIX):
        return  # has rules of its own
    if "\0" in request.path:
        abort(404)
    if any("\0" in text for _, text in request.args.items(multi=True)):
        abort(400)
