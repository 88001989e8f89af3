"""Listings as CSV files, which people open in spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from flask import Response
from sqlalchemy.orm import Session

from webqueue import queries
from webqueue.db import database
from webqueue.queries.csv_lines import csv_line, for_spreadsheets
from webqueue.queries.paging import Page

R = TypeVar("R")

MOST_ROWS: Final = 100_000


def csv_file(
    name: str,
    fields: Sequence[str],
    read_page: Callable[[Session, str | None, int], Page[R]],
    cell: Callable[[R, str], str],
) -> Response:
    """A file of everything that a listing shows, at most 100,000 rows, sent while it is read.

    Args:
        name: of the file.
        fields: the first line.
        read_page: asks for the rows from a cursor on, at most so many.
        cell: the text of a field of a row.
    """
    db = database()

    def lines() -> Iterator[str]:
        yield csv_line(fields)
        cursor: str | None = None
        for _ in range(MOST_ROWS // queries.MAX_LIMIT):
            # A read of its own for each page: one that lasted minutes would keep old rows alive.
            with db.reading() as session:
                page = read_page(session, cursor, queries.MAX_LIMIT)
            yield "".join(csv_line([cell(row, field) for field in fields]) for row in page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    return Response(
        for_spreadsheets(lines()),
        mimetype="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
