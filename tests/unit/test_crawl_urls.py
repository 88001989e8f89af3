"""URLs in one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.handlers.crawl.urls import is_root, is_same_host, join

BASE = "http://www.example.org/news/index_1.html"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("a.html", "http://www.example.org/news/a.html"),
        ("../b/./c.html", "http://www.example.org/b/c.html"),
        ("/d", "http://www.example.org/d"),
        ("//other.example/e", "http://other.example/e"),
        ("?page=2", "http://www.example.org/news/index_1.html?page=2"),
        ("#top", BASE),
        ("a.html#part", "http://www.example.org/news/a.html"),
        ("", BASE),
        ("  a.html\n", "http://www.example.org/news/a.html"),
        ("a\n\tb.html", "http://www.example.org/news/ab.html"),
        ("HTTP://WWW.Example.ORG:80", "http://www.example.org/"),
        ("https://www.example.org:443/x", "https://www.example.org/x"),
        ("http://www.example.org:8080/x", "http://www.example.org:8080/x"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        ("新闻/a b.html", "http://www.example.org/news/%E6%96%B0%E9%97%BB/a%20b.html"),
        ("a%20b%e6.html", "http://www.example.org/news/a%20b%e6.html"),
        ("javascript:void(0)", None),
        ("mailto:office@example.org", None),
        ("ftp://example.org/x", None),
        ("data:text/html,x", None),
        ("https://", None),
        ("https:///x", None),
        ("http://a@b@example.org/", None),
        ("http://bücher.example./x", "http://xn--bcher-kva.example/x"),
        ("http://[::1", None),
        ("http://example.org:port/", None),
        ("http://example.org:99999/", None),
        ("/" + "a" * 9_000, None),
    ],
)
def test_join(link: str, expected: str | None) -> None:
    assert join(BASE, link) == expected


def test_a_query_is_encoded_as_the_page_is() -> None:
    assert (
        join(BASE, "/s?q=中 文&n=1", encoding="gb18030") == "http://www.example.org/s?q=%D6%D0%20%CE%C4&n=1"
    )
    assert join(BASE, "/s?q=中") == "http://www.example.org/s?q=%E4%B8%AD"


@given(st.text(max_size=80))
def test_whatever_stands_in_a_link_it_is_none_or_one_spelling(link: str) -> None:
    url = join(BASE, link)
    if url is not None:
        assert url.isascii()
        assert "#" not in url
        assert " " not in url
        assert url.startswith(("http://", "https://"))
        assert join(BASE, url) == url


def test_hosts_are_compared_with_their_ports() -> None:
    assert is_same_host("http://example.org/", "http://example.org:80/x")
    assert not is_same_host("http://example.org/", "https://example.org/")
    assert not is_same_host("http://example.org/", "http://www.example.org/")


def test_a_root_has_no_query() -> None:
    assert is_root("http://example.org")
    assert is_root("http://example.org/")
    assert not is_root("http://example.org/?p=3")
    assert not is_root("http://example.org/news/")
