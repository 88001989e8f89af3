"""Pages that nobody here wrote: documentation packages of Debian, and a hostile server's."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select

from tests.helpers.crawling import CrawlBench, add_target
from tests.helpers.documentation import documentation
from tests.helpers.servers.base import Exchange, Server, Site, list_page
from tests.helpers.servers.hostile import ANSWERS, ARTICLE, CHINESE, HostileSite
from tests.helpers.servers.static import StaticSite
from webqueue.database import Database
from webqueue.models import Document
from webqueue.outcomes import Done

STATIC = {"list_url": "/list/index_{page}.html", "item_selector": "ul.list a"}
HAN = re.compile("[\u4e00-\u9fff]")
# What Chinese pages look like when they are read in the wrong encoding.
MOJIBAKE = re.compile("[\ufffdÃÂ锟锛鐨]")


class Reencoded(StaticSite):
    """The folder's UTF-8 files, sent in another encoding, which header or page declare (or nobody does)."""

    def __init__(self, folder: Path, codec: str, *, in_page: str | None, in_header: str | None) -> None:
        super().__init__(folder)
        self.codec = codec
        self.in_page = in_page
        self.in_header = in_header

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path.startswith("/list/"):
            super().respond(exchange)
            return
        text = (self.folder / path.lstrip("/")).read_text(encoding="utf-8")
        declared = self.in_page or ""
        text = re.sub(r"encoding=\"UTF-8\"", f'encoding="{declared}"' if declared else "", text)
        text = re.sub(r"charset=UTF-8", f"charset={declared}" if declared else "", text)
        header = f"text/html; charset={self.in_header}" if self.in_header else "text/html"
        exchange.send(text.encode(self.codec), content_type=header)


@pytest.fixture
def crawled_database(database: Database) -> Database:
    add_target(database)
    return database


def texts(database: Database) -> dict[str, tuple[str, str]]:
    """Title and text by the last part of the URL."""
    with database.reading() as session:
        rows = session.execute(select(Document.url, Document.title, Document.text))
        return {row.url.rpartition("/")[2]: (row.title, row.text) for row in rows}


def words_of(path: Path) -> set[str]:
    """The words of a file's body, in pieces of text as they stand there."""
    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    body = tree.body
    assert body is not None
    return set(body.text(separator=" ").split())


@pytest.mark.parametrize("package", ["debian-reference-zh-cn", "debian-faq-zh-cn"])
def test_chinese_pages_are_readable_and_say_what_the_files_say(
    crawled_database: Database, package: str
) -> None:
    site = StaticSite(documentation(package))
    with Server(site) as server:
        outcome, _ = CrawlBench(crawled_database, server.url, STATIC).run()
    assert isinstance(outcome, Done)
    assert outcome.attention is None
    assert outcome.result["new"] == len(site.files)
    found = texts(crawled_database)
    for file in site.files:
        title, text = found[file.name]
        tree = LexborHTMLParser((site.folder / file).read_text(encoding="utf-8"))
        own_title = tree.css_first("title")
        assert own_title is not None
        assert title == " ".join(own_title.text().split())
        assert not MOJIBAKE.search(title + text), file
        strange = set(text.split()) - words_of(site.folder / file)
        # Tables come as Markdown, and inline elements leave or take blanks between words.
        assert len(strange) < 0.2 * len(text.split()) + 10, (file, sorted(strange)[:20])
    readable = [name for name, (_, text) in found.items() if len(HAN.findall(text)) > 50]
    assert len(readable) >= 0.9 * len(found)


@pytest.mark.parametrize(
    ("codec", "in_page", "in_header"),
    [
        ("gb18030", "gb2312", None),
        ("gb18030", None, "gbk"),
        ("gb18030", None, None),
        ("gb18030", "utf-8", None),
        ("utf-8", "gb2312", "gb2312"),
        ("utf-8-sig", None, "gbk"),
    ],
)
def test_the_same_text_in_whatever_encoding(
    crawled_database: Database, codec: str, in_page: str | None, in_header: str | None
) -> None:
    folder = documentation("debian-faq-zh-cn")
    site = Reencoded(folder, codec, in_page=in_page, in_header=in_header)
    with Server(site) as server:
        CrawlBench(crawled_database, server.url, STATIC).run()
    found = texts(crawled_database)
    assert len(found) == len(site.files)
    for name, (title, text) in found.items():
        assert not MOJIBAKE.search(title + text), name
        assert HAN.search(title), name


def test_forty_pages_of_the_python_manual(crawled_database: Database) -> None:
    site = StaticSite(documentation("python3.11-doc"), limit=40)
    with Server(site) as server:
        outcome, context = CrawlBench(crawled_database, server.url, STATIC).run()
        again, second = CrawlBench(crawled_database, server.url, STATIC).run(chain=context)
    assert isinstance(outcome, Done)
    assert (outcome.result["new"], outcome.result["pages"]) == (40, 3)
    assert again.result["in_chain"] == 40
    assert [path for path in second.fetched if not path.startswith("/list")] == []
    with crawled_database.reading() as session:
        for row in session.execute(select(Document.url, Document.title, Document.text)):
            file = site.folder / row.url.removeprefix(f"{server.url}/")
            tree = LexborHTMLParser(file.read_text(encoding="utf-8"))
            own_titles = {" ".join(node.text().split()).rstrip("¶") for node in tree.css("title, h1")}
            assert any(row.title in own for own in own_titles), row.url
            assert row.text.strip(), row.url


class EveryHostilePage(HostileSite):
    """A list of every page of the hostile site that can be read at all."""

    names = (
        "/ok",
        "/latin1-claimed-utf8",
        "/gb2312",
        "/bad-charset/unknown",
        "/bad-charset/none",
        "/bad-charset/contradiction",
        "/bad-charset/bom",
        "/bad-charset/broken-utf8",
        "/bad-charset/binary",
        "/deep-nesting",
    )

    def respond(self, exchange: Exchange) -> None:
        if exchange.request.path == "/all":
            exchange.send(list_page((name, name) for name in self.names))
        else:
            super().respond(exchange)


def test_hostile_pages_are_read_as_well_as_they_can_be(crawled_database: Database) -> None:
    assert set(EveryHostilePage.names) <= set(ANSWERS)
    with Server(EveryHostilePage()) as server:
        bench = CrawlBench(
            crawled_database, server.url, {"list_url": "/all", "max_pages": 1, "item_selector": "ul.list a"}
        )
        outcome, _ = bench.run()
    assert isinstance(outcome, Done)
    assert (outcome.result["new"], outcome.result["failed"]) == (10, 0)
    found = texts(crawled_database)
    for name in ("ok", "unknown", "none", "contradiction", "bom"):
        assert found[name][0] == "Café at the harbour"
        assert all(line in ARTICLE for line in found[name][1].splitlines())
        assert "its naïve façade" in found[name][1]
    assert found["gb2312"][0] == "朱镕基与㐂寿司"
    assert "镕、㐂、𠮷" in found["gb2312"][1]
    assert CHINESE.count(found["gb2312"][0]) == 2
    assert found["latin1-claimed-utf8"][0] == "Caf� at the harbour"
    assert "café at the" in found["broken-utf8"][1]
    assert found["deep-nesting"][1] == "deep"


class OneArticle(Site):
    """A list with one link, to what is to be tried."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def respond(self, exchange: Exchange) -> None:
        exchange.send(list_page([("/a", "the link")]) if exchange.request.path == "/list" else self.body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"<",
        b"plain text, no element at all",
        b"<title>" + b"T" * 1_000_000 + b"</title>",
        b"<?xml version='1.0' encoding='gb2312'?><html><body><p>\xb1\xbe\xd2\xb3</p></body></html>",
        b"<html><head><base href='http://[bad/'><link rel=canonical href='http://[bad'></head><body>x",
        b"<script type='application/ld+json'>" + b"[" * 100_000 + b"</script><p>x",
        b"<meta property='article:published_time' content='9999-12-31T23:59:59-12:00'><p>x",
        gzip.compress(b"compressed, but nobody says so"),
    ],
    ids=["empty", "nul", "one-bracket", "plain", "title", "xml", "bad-base", "deep-json", "far-date", "gzip"],
)
def test_no_page_breaks_the_crawl(crawled_database: Database, body: bytes) -> None:
    with Server(OneArticle(body)) as server:
        bench = CrawlBench(
            crawled_database, server.url, {"list_url": "/list", "max_pages": 1, "item_selector": "ul.list a"}
        )
        outcome, _ = bench.run()
    assert isinstance(outcome, Done)
    assert outcome.result["new"] == 1
    ((title, _),) = texts(crawled_database).values()
    assert 0 < len(title) <= 500
