"""What may stand in the address of a page, and in the forms that are sent to it."""

from __future__ import annotations

from typing import Any

from flask import Flask, abort, request
from werkzeug.routing import IntegerConverter, Map

from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.numbers import LARGEST
from webqueue.sentences import say
from webqueue.web.auth import API_PREFIX


class RowNumber(IntegerConverter):
    """The number of a row. One that no row can have is an address that does not exist."""

    def __init__(self, url_map: Map, *args: Any, **kwargs: Any) -> None:
        super().__init__(url_map, *args, **{"max": LARGEST, **kwargs})


def init_app(app: Flask) -> None:
    """Let `<int:…>` in the rules of the pages mean a row's number, and no request say what no database can be told.

    Before the pages are added.
    """
    app.url_map.converters["int"] = RowNumber
    app.before_request(_refuse_nul)


def _refuse_nul() -> None:
    """Nothing has a NUL in its name, and PostgreSQL takes none, neither in a question nor to be kept.

    No browser lets anybody write one: it comes from programs.
    """
    if request.path.startswith(API_PREFIX):
        return  # has rules of its own, also for JSON
    if "\0" in request.path:
        abort(404)
    if any("\0" in text for _, text in request.args.items(multi=True)):
        abort(400)
    said = request.form.items(multi=True)
    wrong = dict.fromkeys(name for name, text in said if "\0" in name or "\0" in text)
    if wrong:
        told = say("must not contain the character NUL")
        raise InvalidInputError([Problem(name.replace("\0", "�"), told) for name in wrong])
