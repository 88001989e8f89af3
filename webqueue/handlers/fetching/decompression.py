"""Content codings undone in bounded memory.

The libraries' own decoders inflate whatever came in one piece: a kilobyte becomes a megabyte, and a small file a
machine without memory. Here a decoder gives at most so many bytes at a time, and gives up early on what only exists to
be inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from webqueue.sentences import stored

ACCEPT_ENCODING = "gzip, deflate"
PIECE_BYTES = 65_536
# Text rarely shrinks to a fiftieth, a bomb to a thousandth. Below the floor the ratio says nothing yet: a page may
# begin with a long run of spaces.
MAX_RATIO = 250
RATIO_FLOOR_BYTES = 4_194_304

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
        self._members = 0
        self._padding = False
        self._more = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` decodes to, in pieces of at most 64 KiB.

        Raises:
            UndecodableError: it is not in the coding.
            BombError: it inflates more than 250-fold.
        """
        self._taken += len(data)
        while (data or self._more) and not self._padding:
            if self._inflater is None:
                # The first two bytes of a member tell what it is.
                self._start += data
                if len(self._start) < 2:
                    return
                data, self._start = self._start, b""
                self._inflater = self._begin(data)
            else:
                piece, data = self._inflate(self._inflater, data)
                if piece:
                    yield piece

    @property
    def complete(self) -> bool:
        """Whether the data may end here: at the end of a member, or before the first began."""
        return self._inflater is None and (self._members > 0 or not self._start)

    def _begin(self, start: bytes) -> zlib._Decompress | None:
        if self._gzip:
            # What follows a member and is none itself is padding (RFC 1952 knows none, archives have it).
            self._padding = self._members > 0 and not start.startswith(_GZIP_MAGIC)
            return None if self._padding else zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._padding = self._members > 0
        if self._padding:
            return None
        # RFC 1950: the first two bytes are a multiple of 31, and the low half of the first says "deflate".
        wrapped = start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0
        return zlib.decompressobj(wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)

    def _inflate(self, inflater: zlib._Decompress, data: bytes) -> tuple[bytes, bytes]:
        """One piece, and what of `data` is left."""
        try:
            piece = inflater.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            name = "gzip" if self._gzip else "deflate"
            raise UndecodableError(
                stored("it is not valid %(name)s (%(why)s)", name=name, why=str(error))
            ) from error
        self._given += len(piece)
        # A full piece may have left output in the inflater, with all input taken: then it is asked once more.
        self._more = len(piece) == PIECE_BYTES and not inflater.eof
        rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        if self._given > RATIO_FLOOR_BYTES and self._given > MAX_RATIO * (self._taken - len(rest)):
            raise BombError
        if inflater.eof:
            self._members += 1
            self._inflater = None
        return piece, rest


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
        stored(
            "its Content-Encoding is %(codings)s, and only %(known)s was asked for",
            codings=repr(", ".join(codings)),
            known=ACCEPT_ENCODING,
        )
    )
