"""Short names for URLs, where a checkpoint has to remember that they were met."""

from __future__ import annotations

import hashlib
from typing import Final

_DIGITS: Final = 14  # 56 bits: among 10,000 URLs one chance in a billion that two are taken for one


def short_hash(url: str) -> str:
    """14 hex digits that stand for a URL."""
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
