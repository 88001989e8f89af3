"""Numbers that come from outside, in forms, addresses, cursors and commands, and how they are written there.

More digits can come than anything has.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

# Where PostgreSQL's integer ends: a statement that asks for a larger one fails.
LARGEST: Final = 2**31 - 1


def whole(text: str, low: int, high: int) -> int | None:
    """The whole number that a text of digits is; None when it is none, or not between the two bounds.

    However long it is: Python itself refuses to read some thousand digits, with an error.
    """
    digits = text.lstrip("0") or text[:1]
    if not (text.isascii() and text.isdigit() and len(digits) <= len(str(high))):
        return None
    number = int(digits)
    return number if low <= number <= high else None


def written(number: float) -> str:
    """A finite number as people write it: every digit that it has, no exponent, and no useless `.0`."""
    text = f"{Decimal(str(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def is_number(number: int) -> bool:
    """Whether it can be the number of a row."""
    return 0 < number <= LARGEST


def bounded(number: int) -> int:
    """A number to compare with those of rows: this one, else the nearest that can be asked for."""
    return max(0, min(number, LARGEST))
