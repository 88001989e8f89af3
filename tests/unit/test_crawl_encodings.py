"""From bytes to text."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from webqueue.handlers.crawl import encodings
from webqueue.handlers.crawl.encodings import declared_codecs, decode

CHINESE = "本页声明为 gb2312，却使用了只有 GB18030 才有的汉字：镕、㐂、𠮷。"
PAGES = {
    "gb18030": CHINESE,
    "big5": "臺灣的港口今天開放，船隻可以進出。",
    "shift_jis": "港は今日から再び開かれ、船が出入りできます。",
    "euc-jp": "港は今日から再び開かれ、船が出入りできます。",
    "iso-2022-jp": "港は今日から再び開かれ、船が出入りできます。",
    "euc-kr": "항구는 오늘 다시 열립니다. 배가 드나들 수 있습니다.",
    "windows-1251": "Порт сегодня снова открыт, суда могут входить.",
    "koi8-r": "Порт сегодня снова открыт, суда могут входить.",
    "iso-8859-1": "Das Café am Hafen hat seine Türen wieder geöffnet.",
    "iso-8859-2": "Przystań została dziś ponownie otwarta dla łodzi.",
    "windows-1256": "الميناء مفتوح اليوم من جديد للسفن",
    "iso-8859-8": "הנמל פתוח היום מחדש",
}
text_without_traps = st.text(st.characters(codec="utf-8", exclude_characters="\x00\ufeff"))


@pytest.mark.parametrize("charset", PAGES)
@pytest.mark.parametrize("where", ["header", "meta", "http-equiv", "xml"])
def test_what_a_page_declares(charset: str, where: str) -> None:
    head = {
        "header": "",
        "meta": f"<meta charset={charset}>",
        "http-equiv": f'<meta http-equiv="Content-Type" content="text/html; charset={charset.upper()}">',
        "xml": "",
    }[where]
    before = f"<?xml version='1.0' encoding='{charset}'?>" if where == "xml" else ""
    page = f"{before}<html><head>{head}<title>t</title></head><body>{PAGES[charset]}</body></html>"
    header = f'text/html; Charset="{charset}"' if where == "header" else "text/html"
    assert decode(page.encode(charset), header).text == page


@pytest.mark.parametrize("claimed", ["gb2312", "GBK", "gb18030", "x-gbk", "cp936"])
def test_whatever_claims_to_be_a_gb_encoding_is_read_as_gb18030(claimed: str) -> None:
    decoded = decode(CHINESE.encode("gb18030"), f"text/html; charset={claimed}")
    assert (decoded.text, decoded.encoding) == (CHINESE, "gb18030")


@pytest.mark.parametrize("claimed", ["gbk", "iso-8859-1", "x-nobody-knows", "hex", "rot13", ""])
def test_strict_utf8_goes_before_what_is_declared(claimed: str) -> None:
    assert decode(CHINESE.encode(), f"text/html; charset={claimed}").text == CHINESE


def test_a_page_that_says_nothing_and_is_not_utf8_is_read_as_gb18030() -> None:
    assert decode(CHINESE.encode("gb18030"), None).text == CHINESE


def test_the_header_goes_before_the_page() -> None:
    page = '<meta charset="windows-1251">' + PAGES["koi8-r"]
    assert decode(page.encode("koi8-r"), "text/html; charset=koi8-r").text == page


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-be"])
def test_a_byte_order_mark_goes_before_everything(codec: str) -> None:
    body = CHINESE.encode(codec)
    if codec.endswith("-be"):
        body = "\ufeff".encode(codec) + body
    assert decode(body, "text/html; charset=gbk").text == CHINESE


@pytest.mark.parametrize("name", ["hex", "zip", "bz2", "base64", "quopri", "uu", "rot13", "punycode", "idna"])
def test_no_codec_but_a_charset_is_ever_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr(codecs, "lookup", looked_up.append)
    body = b"<meta charset=" + name.encode() + b"> \xff\xfe\xfd"
    assert list(declared_codecs(body, f"text/html; charset={name}")) == []
    decode(body, f"text/html; charset={name}")
    assert looked_up == []


def test_every_codec_of_the_table_is_one_of_text() -> None:
    for name in set(encodings._CODECS.values()):
        assert codecs.lookup(name)._is_text_encoding


def test_utf8_with_a_broken_character_stays_utf8() -> None:
    body = CHINESE.encode() * 3
    decoded = decode(body[:-1], "text/html; charset=gb2312")
    assert decoded.encoding == "utf-8"
    assert decoded.text.startswith(CHINESE * 2)


def test_gb18030_that_claims_utf8_is_still_read() -> None:
    body = CHINESE.encode("gb18030")
    assert decode(body, "text/html; charset=utf-8").text == CHINESE
    assert decode(body + b"\xff" + body, "text/html; charset=utf-8").text.count(CHINESE) == 2


def test_latin1_that_claims_utf8_loses_only_its_accents() -> None:
    text = decode("Café at the harbour".encode("latin-1"), "text/html; charset=utf-8").text
    assert text == "Caf� at the harbour"


def test_utf16_without_a_mark_when_the_header_says_so() -> None:
    assert decode(CHINESE.encode("utf-16-le"), "text/html; charset=utf-16").text == CHINESE
    assert decode(b"plain", "text/html; charset=utf-16").text == "plain"


@given(st.binary(max_size=300), st.one_of(st.none(), st.text(max_size=60)))
def test_any_bytes_give_a_text_that_can_be_parsed_and_stored(body: bytes, content_type: str | None) -> None:
    text = decode(body, content_type).text
    assert "\x00" not in text
    text.encode()


@given(text_without_traps)
def test_utf8_is_read_as_it_was_written(text: str) -> None:
    assert decode(text.encode(), "text/html; charset=gbk").text == text


@given(text_without_traps, st.sampled_from(["gb2312", "gbk", "gb18030"]))
def test_gb18030_is_read_as_it_was_written(text: str, claimed: str) -> None:
    body = text.encode("gb18030")
    assume(not body.startswith((b"\xff\xfe", b"\xfe\xff")))
    assume(encodings._damaged_utf8(body) is None)  # bytes that are (nearly) UTF-8 are read as that
    assert decode(body, f"text/html; charset={claimed}").text == text
