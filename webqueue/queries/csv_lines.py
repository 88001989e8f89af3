"""Lines of CSV (RFC 4180) in which no cell is a formula to a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

# A cell that starts so is worked out by spreadsheets (CSV injection, OWASP); an apostrophe makes it text.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

# Excel takes a file without it for the encoding of its country, and shows Chinese titles as garbage.
BYTE_ORDER_MARK: Final = "\ufeff"


def for_spreadsheets(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a file that people open: UTF-8 is told by a byte order mark (Unicode 23.8)."""
    yield BYTE_ORDER_MARK
    yield from lines


def csv_line(cells: Sequence[str]) -> str:
    """One line of CSV in which no cell is a formula."""
    buffer = io.StringIO()
    csv.writer(buffer).writerow([harmless(cell) for cell in cells])
    return buffer.getvalue()


def harmless(cell: str) -> str:
    """`cell`, so that a spreadsheet takes it for text."""
    return f"'{cell}" if cell.lstrip(" \n\u3000").startswith(_FORMULA) else cell
