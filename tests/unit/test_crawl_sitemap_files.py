"""The files of a sitemap: read in every form, and refused when they are none."""

from __future__ import annotations

import gzip

import pytest

from webqueue.handlers.crawl.sitemap_files import LARGEST_FILE, Entry, NoSitemapError, read

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
HEAD = f'<?xml version="1.0" encoding="UTF-8"?><urlset {NAMESPACE}>'


def urls(*locs: str) -> str:
    return HEAD + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


def locs(text: str | bytes) -> list[str]:
    body = text.encode() if isinstance(text, str) else text
    return [entry.loc for entry in read(body, None).entries]


def test_pages_with_and_without_a_date() -> None:
    text = HEAD + (
        "<url><loc> http://e.org/a?x=1&amp;y=2 </loc><lastmod>2024-05-01</lastmod><priority>1</priority></url>"
        "<url><lastmod>2024-05-02T10:00:00+08:00</lastmod><loc><![CDATA[http://e.org/b&c]]></loc></url><url/></urlset>"
    )
    found = read(text.encode(), "application/xml")
    assert found.entries == [
        Entry("http://e.org/a?x=1&y=2", "2024-05-01"),
        Entry("http://e.org/b&c", "2024-05-02T10:00:00+08:00"),
    ]
    assert (found.is_index, found.damaged) == (False, False)


def test_an_index_and_prefixes_and_no_namespace() -> None:
    text = "<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://e.org/1.xml</s:loc></s:sitemap></s:sitemapindex>"
    found = read(text.encode(), None)
    assert found.is_index
    assert found.entries == [Entry("http://e.org/1.xml", "")]
    assert locs("<urlset><url><loc>/a</loc></url></urlset>") == ["/a"]


def test_the_addresses_of_pictures_are_no_pages() -> None:
    text = HEAD + (
        "<url><loc>http://e.org/a</loc><image:image><image:loc>http://e.org/a.png</image:loc></image:image></url>"
        "</urlset>"
    )
    assert locs(text) == ["http://e.org/a"]


def test_one_address_a_line() -> None:
    assert locs("http://e.org/a\r\n\r\n# no\nHTTPS://e.org/b \nftp://e.org/c\n") == [
        "http://e.org/a",
        "HTTPS://e.org/b",
    ]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_packed_and_in_other_encodings(codec: str) -> None:
    text = urls("http://e.org/新闻/a").replace("UTF-8", codec.partition("-sig")[0])
    assert locs(gzip.compress(text.encode(codec))) == ["http://e.org/新闻/a"]
    assert locs(text.encode(codec)) == ["http://e.org/新闻/a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (urls("http://e.org/a?x=1&y=2", "http://e.org/b"), ["http://e.org/a?x=1&y=2", "http://e.org/b"]),
        (urls("http://e.org/a", "http://e.org/b")[:-20], ["http://e.org/a"]),
        ("\n<!-- generated --> \n" + urls("http://e.org/a"), ["http://e.org/a"]),
        (urls("http://e.org/a") + "<!-- 0.1 s --> trailing", ["http://e.org/a"]),
    ],
    ids=["bare-ampersand", "cut", "late-declaration", "text-at-the-end"],
)
def test_damaged_files_are_read_as_far_as_they_go(text: str, expected: list[str]) -> None:
    found = read(text.encode(), None)
    assert [entry.loc for entry in found.entries] == expected
    assert found.damaged


def test_entities_are_not_read() -> None:
    text = (
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY a "aaaa">]>'
        "<urlset><url><loc>http://e.org/&x;&a;</loc></url></urlset>"
    )
    assert locs(text) == ["http://e.org/&x;&a;"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no sitemap"),
        (b"<!doctype html><title>Not found</title>", "begins with '<!doctype html>"),
        (b"<rss><channel/></rss>", "no sitemap"),
        (b'{"urls": []}', "no sitemap"),
        (bytes(range(256)), "no sitemap"),
        (b"\x1f\x8b\x08\x00garbage", "cannot be unpacked"),
        (gzip.compress(b" " * (LARGEST_FILE + 1)), "unpacks to"),
        (gzip.compress(b"<a>" * 30_000_000), "decompression bomb"),
        (b"<a>" * 100_000, "no sitemap"),
    ],
    ids=["empty", "html", "rss", "json", "binary", "bad-gzip", "large", "bomb", "deep"],
)
def test_what_is_no_sitemap(body: bytes, said: str) -> None:
    with pytest.raises(NoSitemapError, match=said):
        read(body, None)


def test_deep_nesting_within_an_entry_ends_the_file() -> None:
    text = urls("http://e.org/a").replace("</urlset>", "<url>" + "<x>" * 100_000)
    assert locs(text) == ["http://e.org/a"]


def test_more_entries_than_a_file_may_have() -> None:
    found = read(urls(*(f"http://e.org/{n}" for n in range(50_010))).encode(), None)
    assert (len(found.entries), found.damaged) == (50_000, True)
