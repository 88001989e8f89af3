"""How crawls of lists end, which links they follow, what a person should look at, and what a trial shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.adapters import counters, stored
from tests.helpers.crawling import BenchContext, CrawlBench
from tests.helpers.servers.base import Exchange, Server, list_page
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.servers.links import LinksSite
from tests.helpers.servers.news import NewsSite
from tests.integration.crawl.conftest import LIST, BenchFor
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves any site and makes a bench for it."""
    return lambda site, **params: bench_for(site, LIST | params)


def articles_of(context: BenchContext) -> list[str]:
    return [path for path in context.fetched if "article" in path]


class TestEndings:
    def test_a_full_stop_between_list_pages_and_between_articles(self, bench: CrawlBench) -> None:
        for requests in (0, 1, 6):
            outcome, context = bench.run(stop_when=lambda run, most=requests: len(run.fetched) >= most)
            assert isinstance(outcome, Cancelled)
            assert outcome.result["stopped_because"] == "stop_requested"
            assert len(context.fetched) == requests

    def test_an_empty_first_list_page_fails_and_keeps_a_copy(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(HostileSite(), list_url="/empty-list", max_pages=1)
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert "'ul.list a'" in outcome.error
        assert f"{bench.base_url}/empty-list" in outcome.error
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert list(context.kept.values()) == [list_page([]).encode()]
        assert context.checkpoints == []

    def test_a_selector_that_matches_no_link_fails_too(self, bench: CrawlBench) -> None:
        bench.params = LIST | {"item_selector": "h1"}
        outcome, _ = bench.run()
        assert isinstance(outcome, Failed)
        assert "'h1'" in outcome.error

    def test_from_an_empty_page_on_it_is_done_with_attention(self, bench: CrawlBench) -> None:
        outcome, _ = bench.run(from_page=9)
        assert isinstance(outcome, Done)
        assert outcome.attention == "The list pages of this run had no link."

    def test_pages_beyond_the_last_one_that_answer_404_end_the_list(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        class Ends(LinksSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/list_3":
                    exchange.send("gone", status=404)
                else:
                    super().respond(exchange)

        site = Ends(list_1=list_page([("/a", "a")]), list_2=list_page([("/b", "b")]))
        outcome, _ = serve(site, list_url="/list_{page}").run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "stopped_because") == (2, "no_such_page")

    def test_a_server_that_repeats_its_last_page_ends_the_list(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        bench = serve(LinksSite(list=list_page([("/a", "a"), ("/b", "b")])), list_url="/list?page={page}")
        for force in (False, True):
            outcome, context = bench.run(force=force)
            assert isinstance(outcome, Done)
            assert context.fetched.count("/list") <= 2

    def test_next_links_in_a_circle_end(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(
            one=list_page([("/a", "a")], next_url="/two"), two=list_page([("/b", "b")], next_url="/one")
        )
        outcome, _ = serve(site, list_url="/one", next_selector="a.next").run()
        assert counters(outcome, "pages", "new", "stopped_because") == (2, 2, "no_next_link")

    @pytest.mark.parametrize(
        ("path", "what"), [("/500", "HTTP 500"), ("/cut", "/cut"), ("/nowhere-at-all", "HTTP 404")]
    )
    def test_a_first_list_page_that_fails(
        self, serve: Callable[..., CrawlBench], path: str, what: str
    ) -> None:
        outcome, _ = serve(HostileSite(), list_url=path, max_pages=1).run()
        assert isinstance(outcome, Failed)
        assert "List page 1" in outcome.error
        assert what in outcome.error

    def test_a_later_list_page_that_fails(self, serve: Callable[..., CrawlBench]) -> None:
        class Breaks(LinksSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/list_2":
                    exchange.send("broken", status=500)
                else:
                    super().respond(exchange)

        outcome, context = serve(Breaks(list_1=list_page([("/a", "a")])), list_url="/list_{page}").run()
        assert isinstance(outcome, Failed)
        assert "List page 2" in outcome.error
        assert context.checkpoints == [Checkpoint(1, {})]
        assert outcome.result["new"] == 1

    def test_blocked_on_an_article_tells_the_last_checkpoint(self, serve: Callable[..., CrawlBench]) -> None:
        class Blocks(NewsSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/news/article_8.html":
                    exchange.send("slow down", status=429, headers={"Retry-After": "17"})
                else:
                    super().respond(exchange)

        bench = serve(Blocks(pages=3))
        outcome, _ = bench.run()
        assert outcome == Blocked("HTTP 429", 17, Checkpoint(1, {}), outcome.result)
        assert counters(outcome, "new", "stopped_because") == (7, "blocked")

    @pytest.mark.parametrize("blocked", [True, False])
    def test_refused_articles_at_the_end_of_a_page_are_asked_for_again_if_a_block_begins(
        self, serve: Callable[..., CrawlBench], blocked: bool
    ) -> None:
        class Begins(NewsSite):
            def respond(self, exchange: Exchange) -> None:
                path = exchange.request.path
                if path in {"/news/article_12.html", "/news/article_11.html"}:
                    exchange.send("no", status=403)
                elif path == "/news/index_2.html" and blocked:
                    exchange.send("slow down", status=429)
                else:
                    super().respond(exchange)

        outcome, context = serve(Begins(pages=3)).run()

        if blocked:
            assert outcome == Blocked("HTTP 429", None, Checkpoint(0, {}), outcome.result)
            assert context.checkpoints == []
        else:
            # The next list page came, so it was no block: nothing is held back any more.
            assert [one.page for one in context.checkpoints][:3] == [1, 2, 3]
        assert counters(outcome, "failed") == (2,)

    def test_one_bad_article_is_counted_and_logged_and_the_rest_goes_on(
        self, bench: CrawlBench, news: NewsSite
    ) -> None:
        body = list_page([("/news/article_2.html", "2"), ("/500", "bad"), ("/news/article_1.html", "1")])

        class OneBad(NewsSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/list":
                    exchange.send(body)
                elif exchange.request.path == "/500":
                    exchange.send("no", status=500)
                else:
                    super().respond(exchange)

        with Server(OneBad()) as server:
            outcome, context = CrawlBench(
                bench.database, server.url, LIST | {"list_url": "/list", "max_pages": 1}
            ).run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "failed") == (2, 1)
        assert [message for message in context.messages if "HTTP 500" in message and "/500" in message]

    def test_when_every_article_fails_the_run_failed(self, bench: CrawlBench) -> None:
        site = LinksSite(list=list_page([("/x1", "1"), ("/x2", "2")]))
        site.respond = lambda exchange: (  # type: ignore[method-assign]
            exchange.send(site.pages["/list"])
            if exchange.request.path == "/list"
            else exchange.send("", status=403)
        )
        with Server(site) as server:
            outcome, _ = CrawlBench(
                bench.database, server.url, LIST | {"list_url": "/list", "max_pages": 1}
            ).run()
        assert isinstance(outcome, Failed)
        assert outcome.error.startswith("None of the 2 articles could be fetched; the first: HTTP 403 from")

    def test_a_server_that_stops_answering_ends_the_run(self, serve: Callable[..., CrawlBench]) -> None:
        links = [(f"/cut?{number}", str(number)) for number in range(30)]

        class Dies(HostileSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/list":
                    exchange.send(list_page(links))
                else:
                    super().respond(exchange)

        outcome, context = serve(Dies(), list_url="/list", max_pages=1).run()
        assert isinstance(outcome, Failed)
        assert "10 articles in a row got no answer" in outcome.error
        assert len(context.fetched) == 11


class TestLinks:
    def test_what_is_followed_and_what_is_not(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(
            list="""<base href="/deep/"><ul class="list">
            <li><a href="a.html#x">a</a><li><a href="./a.html">again</a><li><a href="/b">b</a>
            <li><a href="javascript:go()">no</a><li><a href="mailto:x@example.org">no</a><li><a>no</a>
            <li><a href="http://elsewhere.example/c">other</a><li><a href="http://[bad">no</a></ul>"""
        )
        outcome, context = serve(site, list_url="/list", max_pages=1).run()
        assert context.fetched == ["/list", "/deep/a.html", "/b"]
        assert counters(outcome, "links", "new", "skipped_other_key", "duplicates") == (3, 2, 1, 0)

    def test_links_met_before_in_the_run_are_duplicates(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(
            list_1=list_page([("/a", "a"), ("/b", "b")]),
            list_2=list_page([("/b", "b"), ("/c", "c")]),
            list_3=list_page([]),
        )
        outcome, context = serve(site, list_url="/list_{page}").run()
        assert counters(outcome, "new", "duplicates") == (3, 1)
        assert context.fetched.count("/b") == 1

    def test_a_list_that_only_leads_elsewhere_goes_on_and_needs_attention(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = LinksSite(
            list_1=list_page([("http://elsewhere.example/1", "1")]),
            list_2=list_page([("http://elsewhere.example/2", "2")]),
            list_3=list_page([]),
        )
        outcome, _ = serve(site, list_url="/list_{page}").run()
        assert isinstance(outcome, Done)
        assert outcome.attention is not None
        assert "another rate key" in outcome.attention
        assert counters(outcome, "pages", "skipped_other_key") == (3, 2)

    def test_known_links_and_links_elsewhere_stop_it(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(
            list_1=list_page([("http://elsewhere.example/1", "1"), ("/a", "a")]),
            list_2=list_page([("/b", "b")]),
            list_3=list_page([]),
        )
        bench = serve(site, list_url="/list_{page}")
        bench.run()
        outcome, _ = bench.run()
        assert counters(outcome, "pages", "stopped_because") == (1, "known_pages")

    def test_canonical_addresses(self, serve: Callable[..., CrawlBench]) -> None:
        def page(canonical: str, text: str) -> str:
            return f'<title>{text}</title><link rel="canonical" href="{canonical}"><p>The text of {text}.</p>'

        links = ["/a?from=list", "/a?from=top", "/b?x=1", "/c?x=1", "/d"]
        site = LinksSite(list=list_page([(link, link) for link in links]))
        site.articles = {
            "/a": page("/a", "article a"),
            "/b": page("http://elsewhere.example/b", "article b"),
            "/c": page("/", "article c"),
            "/d": page("/e/", "article d"),
        }
        bench = serve(site, list_url="/list", max_pages=1)
        outcome, _ = bench.run()
        assert sorted(stored(bench)) == ["/a", "/b?x=1", "/c?x=1", "/e/"]
        assert counters(outcome, "new", "duplicates") == (4, 1)
        outcome, context = bench.run()
        assert context.fetched == ["/list"]
        assert counters(outcome, "known", "new") == (5, 0)

    def test_files_are_documents_without_a_text(self, serve: Callable[..., CrawlBench]) -> None:
        class WithFiles(LinksSite):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/report.pdf":
                    exchange.send(b"%PDF-1.7 \x00\xff", content_type="application/pdf")
                elif exchange.request.path == "/notes.txt":
                    exchange.send("plain notes", content_type="text/plain")
                else:
                    super().respond(exchange)

        site = WithFiles(list=list_page([("/report.pdf", "The report"), ("/notes.txt", "Notes")]))
        bench = serve(site, list_url="/list", max_pages=1)
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        documents = stored(bench)
        assert (documents["/report.pdf"].title, documents["/report.pdf"].text) == ("The report", "")
        assert documents["/report.pdf"].content_type == "application/pdf"
        assert documents["/notes.txt"].text == "plain notes"


class TestAttention:
    def test_mostly_empty_texts(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(list=list_page([("/a", "a"), ("/b", "b"), ("/c", "c")]))
        site.articles = dict.fromkeys(("/a", "/b"), "<title>Only a title</title><body><script>x()</script>")
        outcome, _ = serve(site, list_url="/list", max_pages=1).run()
        assert isinstance(outcome, Done)
        assert outcome.attention == "2 of 3 pages have no text."

    def test_a_content_selector_that_matches_nothing(self, bench: CrawlBench) -> None:
        bench.params = LIST | {"content_selector": "div.redesigned"}
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention == "content_selector matched nothing on 15 of 15 pages."
        assert "harbour office" in stored(bench)["/news/article_1.html"].text

    def test_new_articles_that_all_fail_beside_known_ones(self, bench: CrawlBench, news: NewsSite) -> None:
        bench.run()
        news.add()
        original = news._send_article
        news._send_article = lambda exchange, number: (  # type: ignore[method-assign]
            exchange.send("", status=403) if number == 16 else original(exchange, number)
        )
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is not None
        assert "HTTP 403" in outcome.attention


class TestTrial:
    def test_it_shows_links_and_the_first_article_and_stores_nothing(
        self, bench: CrawlBench, news: NewsSite
    ) -> None:
        outcome, context = bench.run(source="try")
        assert isinstance(outcome, Done)
        assert context.fetched == ["/news/index_1.html", "/news/article_15.html"]
        assert [link["text"] for link in outcome.result["links"]] == [
            article.title for article in news.articles[:5]
        ]
        article = outcome.result["article"]
        assert article["url"] == f"{bench.base_url}/news/article_15.html"
        assert article["title"] == news.article(15).title
        assert article["published_at"] == news.article(15).published.isoformat()
        assert "the harbour office tells" in article["text"]
        assert stored(bench) == {}
        assert context.checkpoints == []

    def test_of_an_empty_list(self, serve: Callable[..., CrawlBench]) -> None:
        outcome, context = serve(HostileSite(), list_url="/empty-list", max_pages=1).run(source="try")
        assert isinstance(outcome, Failed)
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert context.kept

    def test_of_a_bad_first_article(self, serve: Callable[..., CrawlBench]) -> None:
        outcome, _ = serve(HostileSite(), list_url="/list-to?to=/500", max_pages=1).run(source="try")
        assert isinstance(outcome, Failed)

    def test_of_a_list_that_leads_elsewhere(self, serve: Callable[..., CrawlBench]) -> None:
        site = LinksSite(list=list_page([("http://elsewhere.example/", "1"), ("/a", "a")]))
        outcome, _ = serve(site, list_url="/list", max_pages=1).run(source="try")
        assert isinstance(outcome, Done)
        assert outcome.result["article"]["url"].endswith("/a")
