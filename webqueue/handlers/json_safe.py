"""Results of anybody's code, made into what JSON and both databases can store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final

_DEEPEST: Final = 50
_LONGEST_INTEGER_BITS: Final = 4_000  # Python refuses to print much longer ones; nobody means them


def json_safe(value: Any) -> Any:
    """`value` in terms of JSON: what JSON has no word for becomes text, sets and tuples become lists.

    NaN and the infinities become text too: they are no JSON, and PostgreSQL refuses them.
    """
    return _safe(value, _DEEPEST)


def json_safe_dict(value: Mapping[Any, Any]) -> dict[str, Any]:
    """`json_safe` of a result, whose keys become text."""
    return {str(key): _safe(item, _DEEPEST) for key, item in value.items()}


def _safe(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _safe_number(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return _safe_container(value, depth)


def _safe_number(value: float) -> Any:
    # int() and float(): their subclasses (enumerations, numpy's numbers) may print otherwise.
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits < _LONGEST_INTEGER_BITS else f"an integer of {bits} bits"
    return float(value) if math.isfinite(value) else str(value)


def _safe_container(value: Any, depth: int) -> Any:
    if depth == 0:
        return "…"  # also the end of what contains itself
    if isinstance(value, Mapping):
        return {str(key): _safe(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(item, depth - 1) for item in value]
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)
