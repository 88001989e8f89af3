"""Documents as lines for a retrieval index: one chunk of text each, with everything that tells where it is from."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from webqueue.errors import WebqueueError
from webqueue.models import Document
from webqueue.sentences import stored

# Below this share of the capacity a chunk takes the next piece of text along.
_FILLED: Final = 0.6


class Splitter(Protocol):
    """What is needed of `semantic_text_splitter.TextSplitter`."""

    def chunks(self, text: str) -> list[str]: ...


class SplitterMissingError(WebqueueError):
    """The package that splits texts is not installed."""

    def __init__(self) -> None:
        super().__init__(
            stored(
                "The export for retrieval needs the package semantic-text-splitter: pip install 'webqueue[export]', where "
                "the workers run."
            )
        )


def make_splitter(chunk_chars: int) -> Splitter:
    """Splits at the ends of paragraphs, sentences and words, as far as chunks of `chunk_chars` characters allow.

    Raises:
        SplitterMissingError: the extra `export` is not installed.
    """
    try:
        from semantic_text_splitter import TextSplitter
    except ModuleNotFoundError:
        raise SplitterMissingError from None
    splitter: Splitter = TextSplitter((max(1, int(chunk_chars * _FILLED)), chunk_chars))
    return splitter


def document_key(target_code: str, url_hash: str) -> str:
    """Names a document over versions, installations and databases; the first part of its chunks' ids."""
    return f"{target_code}:{url_hash[:32]}"


def key_of_chunk(chunk_id: str) -> str:
    """The document that a chunk's id belongs to."""
    return chunk_id.rpartition(":")[0]


def lines_of(document: Document, site_code: str, splitter: Splitter) -> list[bytes]:
    """The JSON lines of a document, in the order of its text, each with its line end."""
    chunks = splitter.chunks(document.text)
    key = document_key(document.target_code, document.url_hash)
    about: dict[str, Any] = {
        "target": document.target_code,
        "site": site_code,
        "url": document.url,
        "title": document.title,
        "published_at": _time(document.published_at),
        "first_seen_at": _time(document.first_seen_at),
        "changed_at": _time(document.changed_at),
        "version": document.version,
        "chunks": len(chunks),
    }
    return [
        json.dumps(
            {
                "id": f"{key}:{position}",
                **about,
                "position": position,
                "text": chunk,
                "content_hash": hashlib.sha256(chunk.encode("utf-8", "surrogatepass")).hexdigest(),
            },
            ensure_ascii=False,
        ).encode("utf-8", "replace")
        + b"\n"
        for position, chunk in enumerate(chunks)
    ]


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
