"""Numbers of rows that come from outside, in addresses, cursors and commands: more can be written than any row has."""

from __future__ import annotations

from typing import Final

# Where PostgreSQL's integer ends: a statement that asks for a larger one fails.
LARGEST: Final = 2**31 - 1


def is_number(number: int) -> bool:
    """Whether it can be the number of a row."""
    return 0 < number <= LARGEST


def bounded(number: int) -> int:
    """A number to compare with those of rows: this one, else the nearest that can be asked for."""
    return max(0, min(number, LARGEST))
