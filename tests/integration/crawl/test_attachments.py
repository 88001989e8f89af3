"""Files that articles link to, and articles that are fetched again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.adapters import counters, run_in_pieces, stored, version_count
from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.base import Exchange, Server, Site, list_page, not_found
from tests.helpers.servers.news import NewsSite
from tests.integration.crawl.conftest import BenchFor
from webqueue.outcomes import Blocked, Done

LIST = {"list_url": "/list", "max_pages": 1, "item_selector": "ul.list a", "attachments": True}


class FilesSite(Site):
    """A list of articles with files.

    Attributes:
        articles: the links of each, as HTML, by path.
        files: bytes by path.
        names: file names that the server gives, by path.
    """

    def __init__(self, articles: dict[str, str], files: dict[str, bytes]) -> None:
        self.articles = articles
        self.files = files
        self.names: dict[str, str] = {}
        self.status: dict[str, int] = {}

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in self.status:
            exchange.send("", status=self.status[path])
        elif path == "/list":
            exchange.send(list_page([(article, f"Notice {article}") for article in self.articles]))
        elif path in self.articles:
            exchange.send(
                f"<title>Notice {path}</title><div class='text'><p>The notice {path} says what is to be done.</p>"
                f"{self.articles[path]}</div><footer><a href='/footer.pdf'>Imprint</a></footer>"
            )
        elif path in self.files:
            headers = {"Content-Disposition": self.names[path]} if path in self.names else {}
            body = self.files[path]
            exchange.send(body, content_type="application/pdf", headers=headers, etag=f'"{hash(body)}"')
        else:
            not_found(exchange)


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench for its list."""
    return lambda site, **params: bench_for(site, LIST | params)


def test_files_are_documents_with_their_bytes(serve: Callable[..., CrawlBench]) -> None:
    site = FilesSite(
        {
            "/a": "<a href='/one.pdf'>The plan</a> <a href='/TWO.DOCX?v=1'></a> <a href='/b'>another page</a>",
            "/b": "<a href='/one.pdf'>again</a> <a href='/%E9%99%84%E4%BB%B6.xls'></a>",
        },
        {"/one.pdf": b"%PDF one", "/TWO.DOCX": b"PK two", "/附件.xls": b"xls", "/footer.pdf": b"%PDF footer"},
    )
    site.names["/TWO.DOCX"] = "attachment; filename*=UTF-8''%E9%80%9A%E7%9F%A5.docx"
    bench = serve(site, content_selector="div.text")
    outcome, context = bench.run()
    assert isinstance(outcome, Done)
    assert outcome.attention is None
    assert counters(outcome, "new", "attachments", "attachments_failed") == (2, 3, 0)
    documents = stored(bench)
    titles = {url: document.title for url, document in documents.items() if "." in url}
    assert titles == {
        "/one.pdf": "The plan",
        "/TWO.DOCX?v=1": "通知.docx",
        "/%E9%99%84%E4%BB%B6.xls": "附件.xls",
    }
    assert {document.text for url, document in documents.items() if "." in url} == {""}
    assert context.originals[f"{bench.base_url}/one.pdf"] == b"%PDF one"
    assert context.fetched.count("/one.pdf") == 1
    # The files of an article come before it: an article that is stored is complete.
    assert context.fetched == ["/list", "/a", "/one.pdf", "/TWO.DOCX", "/b", "/%E9%99%84%E4%BB%B6.xls"]


def test_without_the_parameter_files_are_left_alone(serve: Callable[..., CrawlBench]) -> None:
    site = FilesSite({"/a": "<a href='/one.pdf'>x</a>"}, {"/one.pdf": b"%PDF"})
    bench = serve(site, attachments=False)
    bench.run()
    assert list(stored(bench)) == ["/a"]


def test_a_list_that_links_to_files_itself(serve: Callable[..., CrawlBench]) -> None:
    bench = serve(FilesSite({"/one.pdf": ""}, {"/one.pdf": b"%PDF"}))
    bench.run()
    site = FilesSite({}, {"/one.pdf": b"%PDF"})
    site.respond = lambda exchange: exchange.send(  # type: ignore[method-assign]
        list_page([("/plan.pdf", "Plan")]) if exchange.request.path == "/list" else b"%PDF",
        content_type="text/html" if exchange.request.path == "/list" else "application/pdf",
    )
    with Server(site) as server:
        other = CrawlBench(bench.database, server.url, LIST, clock=bench.clock)
        _, context = other.run()
        assert context.originals == {f"{server.url}/plan.pdf": b"%PDF"}
        other.params = LIST | {"attachments": False}
        _, context = other.run(force=True)
        assert context.originals == {}


def test_what_cannot_be_had_spoils_no_article_and_is_counted(serve: Callable[..., CrawlBench]) -> None:
    links = " ".join(
        f"<a href='{link}'>x</a>" for link in ("/large.zip", "/dead.pdf", "http://x.example/y.pdf", "/ok.pdf")
    )
    site = FilesSite({"/a": links}, {"/large.zip": b"x" * 1_500_000, "/ok.pdf": b"%PDF"})
    bench = serve(site, attachment_max_mb=1, content_selector="div.text")
    outcome, context = bench.run()
    assert isinstance(outcome, Done)
    assert counters(outcome, "new", "attachments", "attachments_failed", "skipped_other_key") == (1, 1, 2, 1)
    assert [request.max_bytes for request in context.asked if request.url.endswith("large.zip")] == [
        1_000_000
    ]
    assert len([message for message in context.messages if "Attachment left out" in message]) == 2


def test_known_files_are_left_and_with_force_fetched_conditionally(serve: Callable[..., CrawlBench]) -> None:
    site = FilesSite(
        {"/a": "<a href='/one.pdf'>One</a> <a href='/two.pdf'>Two</a>"}, {"/one.pdf": b"1", "/two.pdf": b"2"}
    )
    bench = serve(site, content_selector="div.text")
    bench.run()
    _, context = bench.run()
    assert context.fetched == ["/list"]
    site.files["/two.pdf"] = b"2, changed"
    _, context = bench.run(force=True)
    assert [request.url[-4:] for request in context.asked if "if-none-match" in request.headers] == [
        ".pdf",
        ".pdf",
    ]
    assert stored(bench)["/two.pdf"].version == 2
    assert stored(bench)["/one.pdf"].version == 1


def test_blocked_at_a_file_the_article_is_fetched_again_and_is_complete(
    serve: Callable[..., CrawlBench],
) -> None:
    site = FilesSite(
        {"/a": "<a href='/one.pdf'>1</a> <a href='/two.pdf'>2</a>"}, {"/one.pdf": b"1", "/two.pdf": b"2"}
    )
    site.status["/two.pdf"] = 429
    bench = serve(site, content_selector="div.text")
    outcome, first = bench.run()
    assert isinstance(outcome, Blocked)
    assert list(stored(bench)) == ["/one.pdf"]
    site.status.clear()
    outcome, second = bench.run(chain=first)
    assert second.fetched == ["/list", "/a", "/two.pdf"]
    assert len(stored(bench)) == version_count(bench) == 3


def test_stopped_anywhere_each_file_once(serve: Callable[..., CrawlBench]) -> None:
    articles = {f"/{n}": f"<a href='/{n}-1.pdf'>1</a> <a href='/{n}-2.pdf'>2</a>" for n in range(5)}
    files = {f"/{n}-{part}.pdf": f"{n}{part}".encode() for n in range(5) for part in (1, 2)}
    bench = serve(FilesSite(articles, files), content_selector="div.text")
    _, runs = run_in_pieces(bench, lambda context: len(context.fetched) >= 4)
    pdfs = [path for run in runs for path in run.fetched if ".pdf" in path]
    assert len(pdfs) == len(set(pdfs)) == 10
    assert len(stored(bench)) == version_count(bench) == 15


class TestRecentArticles:
    def test_they_are_fetched_again_conditionally(self, serve: Callable[..., CrawlBench]) -> None:
        site = NewsSite(pages=3, etags=True)
        bench = serve(site, list_url="/news/index_{page}.html", max_pages=50, recheck_days=360)
        bench.run()
        # The clock of the bench says 2026-01-01; article n was published n days after 2025-01-01.
        site.change(12, text="A new text for article twelve.\nAnd more of it, so that it is a text at all.")
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "rechecked", "changed", "unchanged", "known") == (10, 1, 9, 5)
        # The third page has none of the last 360 days, and nothing new.
        assert counters(outcome, "pages", "stopped_because") == (3, "known_pages")
        asked = [request for request in context.asked if "article" in request.url]
        assert all("if-none-match" in request.headers for request in asked)
        assert stored(bench)["/news/article_12.html"].version == 2

    def test_one_that_is_gone_is_noticed(self, serve: Callable[..., CrawlBench]) -> None:
        site = NewsSite(pages=1, etags=True)
        bench = serve(site, list_url="/news/index_{page}.html", max_pages=1, recheck_days=365)
        site.pin(3)
        bench.run()
        site.remove(3, status=410)
        for _ in range(2):
            bench.run()
        assert stored(bench)["/news/article_3.html"].state == "gone"
