"""Content codings undone in bounded memory."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.handlers.fetching.decompression import (
    PIECE_BYTES,
    RATIO_FLOOR_BYTES,
    BombError,
    Decoder,
    UndecodableError,
    decoder_for,
)

TEXT = ("多云转晴，東南风三级。 The ferry leaves at noon. " * 300).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "GZIP, identity": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    " deflate ": raw_deflate(TEXT),
    "identity": TEXT,
    "": TEXT,
}


def decode(decoder: Decoder, data: bytes, chunk: int) -> bytes:
    pieces = [
        piece for start in range(0, len(data), chunk) for piece in decoder.feed(data[start : start + chunk])
    ]
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
@pytest.mark.parametrize("coding", PACKED)
def test_decodes_however_it_comes(coding: str, chunk: int) -> None:
    decoder = decoder_for(coding)

    assert decode(decoder, PACKED[coding], chunk) == TEXT
    assert decoder.complete


@given(parts=st.lists(st.binary(max_size=200), min_size=1, max_size=4), chunk=st.integers(1, 50))
def test_members_of_gzip_are_joined(parts: list[bytes], chunk: int) -> None:
    decoder = decoder_for("gzip")

    assert decode(decoder, b"".join(map(gzip.compress, parts)), chunk) == b"".join(parts)
    assert decoder.complete


@given(data=st.binary(max_size=300), wrapped=st.booleans())
def test_deflate_with_and_without_wrapper(data: bytes, wrapped: bool) -> None:
    decoder = decoder_for("deflate")

    assert decode(decoder, zlib.compress(data) if wrapped else raw_deflate(data), 3) == data
    assert decoder.complete


@pytest.mark.parametrize("beyond", range(0, 300, 7))
def test_nothing_stays_in_the_inflater(beyond: int) -> None:
    data = bytes(2 * PIECE_BYTES + beyond)
    decoder = decoder_for("deflate")

    assert decode(decoder, raw_deflate(data), 10_000) == data
    assert decoder.complete


def test_padding_behind_the_end_is_ignored() -> None:
    decoder = decoder_for("gzip")

    assert decode(decoder, gzip.compress(TEXT) + bytes(500), 64) == TEXT
    assert decoder.complete


def test_a_cut_is_seen() -> None:
    decoder = decoder_for("gzip")

    decode(decoder, gzip.compress(TEXT)[:-5], 64)

    assert not decoder.complete


def test_an_empty_body_is_complete() -> None:
    assert decoder_for("gzip").complete


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_not_packed_is_told(coding: str) -> None:
    with pytest.raises(UndecodableError, match=coding):
        list(decoder_for(coding).feed(b"<!doctype html><title>Not packed</title>"))


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, br", "x-nobody"])
def test_a_coding_that_was_not_asked_for_is_told(coding: str) -> None:
    with pytest.raises(UndecodableError, match="Content-Encoding"):
        decoder_for(coding)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_ends_early(coding: str) -> None:
    zeros = bytes(50_000_000)
    bomb = gzip.compress(zeros) if coding == "gzip" else zlib.compress(zeros)
    pieces: list[bytes] = []

    with pytest.raises(BombError):
        pieces.extend(decoder_for(coding).feed(bomb))

    assert sum(map(len, pieces)) <= RATIO_FLOOR_BYTES


def test_a_small_text_may_shrink_as_much_as_it_likes() -> None:
    spaces = b" " * RATIO_FLOOR_BYTES

    assert len(decode(decoder_for("gzip"), gzip.compress(spaces), 4096)) == len(spaces)
