"""The two hashes of a document: of its URL, by which it is found, and of its text, by which versions differ."""

from __future__ import annotations

import hashlib

from webqueue.database.types import storable


def url_hash(url: str) -> str:
    """64 hex digits that stand for a URL in an index: URLs can be longer than an index entry may be."""
    return _sha256(url)


def content_hash(text: str) -> str:
    """64 hex digits of a text as a database can store it, so that a hash never differs from what is kept."""
    return _sha256(text)


def _sha256(text: str) -> str:
    return hashlib.sha256(storable(text).encode()).hexdigest()
