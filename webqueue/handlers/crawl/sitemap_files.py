"""The files of a sitemap (sitemaps.org): lists of pages, and indexes of further files; also as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.parsers import expat

from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.fetching.decompression import BombError, UndecodableError, ZlibDecoder
from webqueue.sentences import stored

# The protocol's own limits: 50 MiB unpacked, and 50,000 entries.
LARGEST_FILE: Final = 52_428_800
MOST_ENTRIES: Final = 50_000

_GZIP: Final = b"\x1f\x8b"
_LONGEST_VALUE: Final = 8_000
_DEEPEST: Final = 50
# For files that no parser takes: a bare & in a URL is enough for that, and common.
_ENTRY: Final = re.compile(
    r"<(?:\w{1,20}:)?(url|sitemap)\b[^<>]*>(.*?)</(?:\w{1,20}:)?\1\s*>", re.DOTALL | re.IGNORECASE
)
_FIELD: Final = re.compile(
    r"<(?:\w{1,20}:)?(loc|lastmod)\b[^<>]*>\s*(?:<!\[CDATA\[)?([^<>\]]*)", re.IGNORECASE
)
_ROOT: Final = re.compile(r"<(?:\w{1,20}:)?(urlset|sitemapindex)\b", re.IGNORECASE)


class NoSitemapError(Exception):
    """The file is no sitemap; the text says what it is."""


@dataclass(frozen=True)
class Entry:
    """A page, or a further file in an index; `lastmod` as it is written, "" where it is not."""

    loc: str
    lastmod: str


@dataclass(frozen=True)
class SitemapFile:
    """A file of a sitemap: the pages that it lists, or the further files that it names.

    Attributes:
        damaged: it could not be read to its end, or has more entries than it may.
    """

    is_index: bool
    entries: list[Entry]
    damaged: bool = False


def read(body: bytes, content_type: str | None) -> SitemapFile:
    """Read a file of a sitemap, packed or not, in whatever encoding.

    Raises:
        NoSitemapError: it is none, or larger than sitemaps may be.
    """
    text = decode(_unpacked(body), content_type).text
    if not text.lstrip().startswith("<"):
        return _plain(text)
    reader = _Reader()
    try:
        reader.feed(text)
    except expat.ExpatError:
        if reader.root is None and not _ROOT.search(text, 0, 4_000):
            raise NoSitemapError(_not_one(text)) from None
        return _leniently(text)
    if reader.root is None:
        raise NoSitemapError(_not_one(text))
    return SitemapFile(reader.root == "sitemapindex", reader.entries, damaged=reader.too_many)


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(_GZIP):
        return body
    decoder = ZlibDecoder(gzip=True)
    unpacked = bytearray()
    try:
        for piece in decoder.feed(body):
            unpacked += piece
            if len(unpacked) > LARGEST_FILE:
                raise NoSitemapError(stored("unpacks to more than the 50 MiB that a sitemap may have"))
    except UndecodableError as error:
        raise NoSitemapError(stored("cannot be unpacked: %(why)s", why=str(error))) from None
    except BombError:
        raise NoSitemapError(
            stored("unpacks to many times its size, as only decompression bombs do")
        ) from None
    if not decoder.complete and not unpacked:
        raise NoSitemapError(stored("cannot be unpacked: it ends too early"))
    return bytes(unpacked)


class _Reader:
    """Takes entries out of XML as it comes, by the local names of its elements."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.entries: list[Entry] = []
        self.too_many = False
        self._path: list[str] = []
        self._values: dict[str, str] = {}
        self._parser = expat.ParserCreate(encoding="utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._entity

    def feed(self, text: str) -> None:
        """Raises expat.ExpatError: it is not well-formed, or declares entities."""
        self._parser.Parse(text.encode("utf-8", "replace"), True)

    def _entity(self, *_: object) -> None:
        # An entity can stand for any text, many times over, or for a file of this machine; no sitemap needs one.
        raise expat.ExpatError("entities are not read")

    def _start(self, name: str, _: dict[str, str]) -> None:
        local = name.rpartition(":")[2].lower()
        if not self._path:
            self.root = local if local in {"urlset", "sitemapindex"} else None
            if self.root is None:
                raise expat.ExpatError("another root element")
        self._path.append(local)
        if len(self._path) > _DEEPEST:
            raise expat.ExpatError("nested too deeply")
        if len(self._path) == 2:
            self._values = {}

    def _text(self, text: str) -> None:
        # Only directly in an entry: images and videos of a page have a <loc> of their own.
        if len(self._path) == 3 and self._path[2] in {"loc", "lastmod"}:
            self._values[self._path[2]] = (self._values.get(self._path[2], "") + text)[:_LONGEST_VALUE]

    def _end(self, _: str) -> None:
        self._path.pop()
        if len(self._path) == 1 and self._values.get("loc", "").strip():
            if len(self.entries) >= MOST_ENTRIES:
                self.too_many = True
                return
            self.entries.append(Entry(self._values["loc"].strip(), self._values.get("lastmod", "").strip()))


def _leniently(text: str) -> SitemapFile:
    """The entries of a file that is not well-formed, as far as they can be made out."""
    root = _ROOT.search(text)
    is_index = root is not None and root.group(1).lower() == "sitemapindex"
    entries = []
    for match in _ENTRY.finditer(text):
        values: dict[str, str] = {}
        for field in _FIELD.finditer(match.group(2)):
            values.setdefault(field.group(1).lower(), field.group(2).replace("&amp;", "&").strip())
        if values.get("loc"):
            entries.append(Entry(values["loc"][:_LONGEST_VALUE], values.get("lastmod", "")))
        if len(entries) >= MOST_ENTRIES:
            break
    return SitemapFile(is_index, entries, damaged=True)


def _plain(text: str) -> SitemapFile:
    """A file with one URL a line."""
    entries = list(_lines(text))
    if not entries:
        raise NoSitemapError(_not_one(text))
    return SitemapFile(False, entries[:MOST_ENTRIES], damaged=len(entries) > MOST_ENTRIES)


def _lines(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        if line.strip().lower().startswith(("http://", "https://")):
            yield Entry(line.strip()[:_LONGEST_VALUE], "")


def _not_one(text: str) -> str:
    begins = " ".join(text[:240].split())[:60]
    return stored(
        "is no sitemap (no <urlset> and no <sitemapindex>); it begins with %(begins)s", begins=repr(begins)
    )
