"""Making what a handler returns storable as JSON, whatever it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

_DEEPEST: Final = 50
_LARGEST_INTEGER: Final = 2**63


def plain(value: Any, _depth: int = 0) -> Any:  # noqa: PLR0911 - one line a type
    """`value` as JSON data: what JSON does not have (dates, sets, NaN, objects, endless nesting) becomes text.

    A job must not fail at its very end because its result holds a date.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < _LARGEST_INTEGER else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if _depth >= _DEEPEST:
        return repr(type(value))
    if isinstance(value, Mapping):
        return {_text(key): plain(item, _depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, _depth + 1) for item in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an object of a handler that cannot even be printed
        return repr(type(value))
