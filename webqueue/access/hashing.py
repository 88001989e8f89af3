"""What is stored of keys and tokens that programs and browsers keep: a hash, so that a copy of the database opens nothing."""

from __future__ import annotations

import hashlib


def hash_of(key: str) -> str:
    """The hash of a random key, 64 hexadecimal digits. 256 random bits need no slow hash: there is nothing to guess."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
