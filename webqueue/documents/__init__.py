"""What crawls stored: each article once per target and URL, with its versions, and the bytes as they came."""

from __future__ import annotations

from webqueue.documents.known import IN_CHAIN, KNOWN, NEW, StoredTimes, known, times, validators
from webqueue.documents.originals import OriginalStore
from webqueue.documents.store import CHANGED, UNCHANGED, DocumentDraft, Stored, mark_missing, seen, store

__all__ = [
    "CHANGED",
    "IN_CHAIN",
    "KNOWN",
    "NEW",
    "UNCHANGED",
    "DocumentDraft",
    "OriginalStore",
    "Stored",
    "StoredTimes",
    "known",
    "mark_missing",
    "seen",
    "store",
    "times",
    "validators",
]
