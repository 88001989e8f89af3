"""From bytes to text: pages say what encoding they have, and often say it wrongly.

In this order: a byte order mark, strict UTF-8, what the page declares (HTTP header, then the page itself) with
gb2312, gbk and gb18030 all read as gb18030, and gb18030. Names that are not in the table below are ignored.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

UTF8: Final = "utf-8"
GB18030: Final = "gb18030"
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# A table, and not the codec registry: a name from a page must never reach a codec that is no charset (hex, zip) or
# one whose cost grows with the square of its input (punycode, idna). What is listed follows the labels of the
# Encoding Standard (encoding.spec.whatwg.org), where Latin-1 means windows-1252.
_CODECS: Final = {
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8", "x-unicode20utf8"), UTF8),
    **dict.fromkeys(
        (
            "gb2312",
            "gb_2312",
            "gb_2312-80",
            "gbk",
            "x-gbk",
            "gb18030",
            "gb-18030",
            "cp936",
            "ms936",
            "euc-cn",
            "chinese",
        ),
        GB18030,
    ),
    **dict.fromkeys(("big5", "big5-hkscs", "cn-big5", "x-x-big5", "csbig5"), "big5hkscs"),
    **dict.fromkeys(
        ("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "cp932"), "cp932"
    ),
    **dict.fromkeys(("euc-jp", "x-euc-jp"), "euc_jp"),
    **dict.fromkeys(("iso-2022-jp", "csiso2022jp"), "iso2022_jp_2"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ksc5601", "korean", "windows-949", "cp949"), "cp949"),
    **dict.fromkeys(
        ("iso-8859-1", "iso8859-1", "latin1", "l1", "us-ascii", "ascii", "windows-1252", "cp1252"), "cp1252"
    ),
    **{f"iso-8859-{part}": f"iso8859_{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"iso8859-{part}": f"iso8859_{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **dict.fromkeys(("iso-8859-9", "iso8859-9", "latin5", "windows-1254"), "cp1254"),
    **{f"windows-{page}": f"cp{page}" for page in (1250, 1251, 1253, 1255, 1256, 1257, 1258)},
    **{f"windows_{page}": f"cp{page}" for page in range(1250, 1259)},
    **{f"cp{page}": f"cp{page}" for page in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
    **dict.fromkeys(("koi8-r", "koi8", "koi"), "koi8_r"),
    **dict.fromkeys(("koi8-u", "koi8-ru"), "koi8_u"),
    **dict.fromkeys(("ibm866", "cp866", "866"), "cp866"),
    **dict.fromkeys(("macintosh", "x-mac-roman"), "mac_roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian", "mac-cyrillic", "maccyrillic"), "mac_cyrillic"),
    # Beyond the Encoding Standard: the code pages of DOS, and of the Macintosh, which old feeds still name.
    **{
        f"{prefix}{page}": f"cp{page}"
        for prefix in ("cp", "ibm", "")
        for page in (437, 737, 775, 850, 852, 855, 857, 860, 861, 862, 863, 864, 865, 869)
    },
    **dict.fromkeys(("macroman", "mac"), "mac_roman"),
    **{f"mac{language}": f"mac_{language}" for language in ("greek", "turkish", "iceland")},
    **dict.fromkeys(("tis-620", "windows-874", "iso-8859-11"), "cp874"),
    **dict.fromkeys(("utf-16", "utf-16le", "unicode"), "utf-16-le"),
    "utf-16be": "utf-16-be",
}
# Their bytes are valid UTF-8 as well, so that only the declaration tells; the second is a byte that gives them away.
_HIDDEN_IN_UTF8: Final = {"iso2022_jp_2": b"\x1b", "utf-16-le": b"\x00", "utf-16-be": b"\x00"}

_PRESCAN_BYTES: Final = 4096
_HEADER_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]{1,40})", re.IGNORECASE)
_META_CHARSET: Final = re.compile(
    rb"<meta\s[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.IGNORECASE
)
_XML_ENCODING: Final = re.compile(
    rb"^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([\w:.-]{1,40})[\"']", re.IGNORECASE
)
_UNPARSABLE: Final = re.compile("[\x00\ud800-\udfff]")

# Text with this many good characters for each bad byte is UTF-8 that was cut or spliced, whatever else it could be:
# bytes of another encoding hardly ever form one valid sequence of UTF-8.
_GOOD_FOR_EACH_BAD: Final = 20
# gb18030 makes a character of nearly any two bytes: it must fit that much better than what was declared.
_CLEARLY_BETTER: Final = 4


@dataclass(frozen=True)
class Decoded:
    """Text without a byte order mark, NUL or lone surrogate, and the codec by which it was read."""

    text: str
    encoding: str


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """Read the bytes of a page.

    Args:
        body: as it came, after decompression.
        content_type: the HTTP header, if there was one.

    Returns:
        Always a text; bytes that no reading explains are U+FFFD in it.
    """
    for mark, codec in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _lenient(body[len(mark) :], codec)
    declared = list(declared_codecs(body, content_type))
    hidden = [codec for codec in declared if codec in _HIDDEN_IN_UTF8 and _HIDDEN_IN_UTF8[codec] in body]
    found = _first_that_fits(body, [*hidden, UTF8]) or _damaged_utf8(body)
    return found or _first_that_fits(body, [*declared, GB18030]) or _best_of_the_bad(body, declared)


def declared_codecs(body: bytes, content_type: str | None) -> Iterator[str]:
    """The codecs that the HTTP header and the page declare, in that order, each once; unknown names are left out."""
    head = body[:_PRESCAN_BYTES]
    in_header = _HEADER_CHARSET.search(content_type or "")
    found = [in_header.group(1) if in_header else ""]
    for pattern in (_META_CHARSET, _XML_ENCODING):
        match = pattern.search(head)
        name = match.group(1).decode("ascii", "ignore") if match else ""
        # A page whose ASCII can be read at all is not in UTF-16, whatever it says (Encoding Standard).
        found.append(UTF8 if name.lower().startswith("utf-16") else name)
    codecs_found = (_CODECS.get(name.strip().lower()) for name in found)
    yield from dict.fromkeys(codec for codec in codecs_found if codec is not None)


def _first_that_fits(body: bytes, candidates: list[str]) -> Decoded | None:
    """The first reading in which every byte means something."""
    for codec in candidates:
        try:
            return Decoded(_UNPARSABLE.sub(REPLACEMENT, body.decode(codec)), codec)
        except UnicodeDecodeError:
            continue
    return None


def _damaged_utf8(body: bytes) -> Decoded | None:
    """UTF-8 that was cut or spliced somewhere."""
    reading = _lenient(body, UTF8)
    bad = reading.text.count(REPLACEMENT)
    good = len(reading.text) - len(reading.text.encode("ascii", "ignore")) - bad
    return reading if good >= bad * _GOOD_FOR_EACH_BAD else None


def _best_of_the_bad(body: bytes, declared: list[str]) -> Decoded:
    """What the page declares, unless gb18030 explains clearly more of it."""
    said = _lenient(body, declared[0] if declared else UTF8)
    as_gb = _lenient(body, GB18030)
    better = as_gb.text.count(REPLACEMENT) * _CLEARLY_BETTER < said.text.count(REPLACEMENT)
    return as_gb if better else said


def _lenient(body: bytes, codec: str) -> Decoded:
    return Decoded(_UNPARSABLE.sub(REPLACEMENT, body.decode(codec, "replace")), codec)
