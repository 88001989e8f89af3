"""What may stand in the address of a page."""

from __future__ import annotations

from typing import Any

from flask import Flask
from werkzeug.routing import IntegerConverter, Map

from webqueue.queries.numbers import LARGEST


class RowNumber(IntegerConverter):
    """The number of a row. One that no row can have is an address that does not exist."""

    def __init__(self, url_map: Map, *args: Any, **kwargs: Any) -> None:
        super().__init__(url_map, *args, **{"max": LARGEST, **kwargs})


def init_app(app: Flask) -> None:
    """Let `<int:…>` in the rules of the pages mean a row's number; before the pages are added."""
    app.url_map.converters["int"] = RowNumber
