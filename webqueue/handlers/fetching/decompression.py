"""Content codings undone in bounded memory.

The libraries' own decoders inflate whatever came in one piece: a kilobyte becomes a megabyte, and a small file a
machine without memory. Here a decoder gives at most so many bytes at a time, and gives up early on what only exists to
be inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

ACCEPT_ENCODING = "gzip, deflate"
PIECE_BYTES = 65_536
# Text rarely shrinks to a fiftieth, a bomb to a thousandth. Below the floor the ratio of a short text says nothing.
MAX_RATIO = 250
RATIO_FLOOR_BYTES = 1_048_576

_GZIP_MAGIC = b"\x1f\x8b"


class UndecodableError(Exception):
    """The body is not what its Content-Encoding says; the text says what was found."""


class BombError(Exception):
    """The body inflates as no page does."""


class Decoder:
    """Undoes one content coding; this one is `identity`, which changes nothing."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` decodes to, in pieces of at most 64 KiB."""
        for start in range(0, len(data), PIECE_BYTES):
            yield data[start : start + PIECE_BYTES]

    @property
    def complete(self) -> bool:
        """Whether the data may end here."""
        return True


class ZlibDecoder(Decoder):
    """gzip, with any number of members (RFC 1952), and deflate, with and without the zlib wrapper.

    RFC 9110 §8.4.1.2 says that deflate has the wrapper, and names the servers that leave it out.
    """

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._inflater: zlib._Decompress | None = None
        self._start = b""
        self._taken = 0
        self._given = 0
        self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` decodes to, in pieces of at most 64 KiB.

        Raises:
            UndecodableError: it is not in the coding.
            BombError: it inflates more than 250-fold.
        """
        self._taken += len(data)
        if self._inflater is None and not self._ended:
            # The first two bytes tell the form.
            self._start += data
            if len(self._start) < 2:
                return
            data, self._start = self._start, b""
            self._inflater = self._begin(data)
        while data and self._inflater is not None:
            try:
                piece = self._inflater.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise UndecodableError(f"it is not valid {self._name} ({error})") from error
            self._given += len(piece)
            if self._given > RATIO_FLOOR_BYTES and self._given > MAX_RATIO * self._taken:
                raise BombError
            if piece:
                yield piece
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data = self._inflater.unused_data
                self._next_member(data)

    @property
    def complete(self) -> bool:
        """Whether the data may end here: at the end of a member, or before it began."""
        return self._ended or (self._inflater is None and not self._start)

    @property
    def _name(self) -> str:
        return "gzip" if self._gzip else "deflate"

    def _begin(self, start: bytes) -> zlib._Decompress:
        if self._gzip:
            return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        # RFC 1950: the first two bytes are a multiple of 31, and the low half of the first says "deflate".
        wrapped = start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0
        return zlib.decompressobj(wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)

    def _next_member(self, rest: bytes) -> None:
        """What follows the end: another member of gzip, else padding, which is ignored."""
        self._ended = True
        more = self._gzip and rest.startswith(_GZIP_MAGIC)
        self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if more else None


def decoder_for(content_encoding: str | None) -> Decoder:
    """The decoder of a Content-Encoding header.

    Raises:
        UndecodableError: a coding that was not asked for, or several on top of each other.
    """
    codings = [coding.strip().lower() for coding in (content_encoding or "").split(",")]
    codings = [coding for coding in codings if coding not in {"", "identity"}]
    match codings:
        case []:
            return Decoder()
        case ["gzip" | "x-gzip"]:
            return ZlibDecoder(gzip=True)
        case ["deflate"]:
            return ZlibDecoder(gzip=False)
    raise UndecodableError(
        f"its Content-Encoding is {', '.join(codings)!r}, and only {ACCEPT_ENCODING} was asked for"
    )
