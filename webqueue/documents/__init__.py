"""What crawls stored: each article once per target and URL, with its versions, and the bytes as they came."""

from __future__ import annotations

from webqueue.documents.forgetting import forget_documents
from webqueue.documents.known import (
    IN_CHAIN,
    KNOWN,
    NEW,
    StoredTimes,
    known,
    last_found_at,
    recent_unmet,
    times,
    validators,
)
from webqueue.documents.originals import OriginalStore
from webqueue.documents.store import (
    CHANGED,
    GONE,
    UNCHANGED,
    DocumentDraft,
    Stored,
    mark_missing,
    seen,
    store,
)

__all__ = [
    "CHANGED",
    "GONE",
    "IN_CHAIN",
    "KNOWN",
    "NEW",
    "UNCHANGED",
    "DocumentDraft",
    "OriginalStore",
    "Stored",
    "StoredTimes",
    "forget_documents",
    "known",
    "last_found_at",
    "mark_missing",
    "recent_unmet",
    "seen",
    "store",
    "times",
    "validators",
]
