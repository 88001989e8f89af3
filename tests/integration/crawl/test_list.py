"""Crawls of real servers with real documents: the adapter `list`, on both databases where it matters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.adapters import counters, stored, version_count
from tests.helpers.crawling import BenchContext, CrawlBench, add_target
from tests.helpers.servers.base import Server, list_page
from tests.helpers.servers.links import LinksSite
from tests.helpers.servers.news import NewsSite
from tests.integration.crawl.conftest import LIST, BenchFor
from webqueue.database import Database
from webqueue.outcomes import Cancelled, Checkpoint, Done, Failed


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves any site and makes a bench for it."""
    return lambda site, **params: bench_for(site, LIST | params)


def articles_of(context: BenchContext) -> list[str]:
    return [path for path in context.fetched if "article" in path]


class TestFirstCrawl:
    def test_every_article_once_and_as_the_server_has_it(self, bench: CrawlBench, news: NewsSite) -> None:
        outcome, context = bench.run()

        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert counters(outcome, "pages", "links", "new", "links_on_page_1") == (4, 15, 15, 5)
        assert outcome.result["stopped_because"] == "empty_page"
        documents = stored(bench)
        assert sorted(documents) == sorted(news.path_of(article.number) for article in news.articles)
        for article in news.articles:
            document = documents[news.path_of(article.number)]
            assert document.title == article.title
            assert (
                document.text.split() == article.text.split() or article.text.splitlines()[0] in document.text
            )
            assert document.published_at == article.published
        assert len(articles_of(context)) == 15
        assert [page.page for page in context.checkpoints] == [1, 2, 3, 4]
        assert context.pages == [1, 2, 3, 4]
        assert context.progress_seen[6][:2] == (2, 5)

    def test_a_relative_list_url_of_a_site_in_a_folder(self, server: Server, database: Database) -> None:
        add_target(database)
        params = LIST | {"list_url": "index_{page}.html", "first_list_url": "index.html"}
        outcome, context = CrawlBench(database, f"{server.url}/news/", params).run()
        assert isinstance(outcome, Done)
        lists = [path for path in context.fetched if "index" in path]
        assert lists == ["/news/index.html", "/news/index_2.html", "/news/index_3.html", "/news/index_4.html"]

    def test_page_start(self, bench: CrawlBench) -> None:
        bench.params = LIST | {"page_start": 2, "max_pages": 2}
        outcome, context = bench.run()
        assert [path for path in context.fetched if "index" in path] == [
            "/news/index_2.html",
            "/news/index_3.html",
        ]
        assert outcome.result["stopped_because"] == "max_pages"

    def test_selectors_and_what_makes_no_version(self, serve: Callable[..., CrawlBench]) -> None:
        site = NewsSite(pages=1, counter=True)
        bench = serve(
            site,
            title_selector="h1",
            content_selector="div.content",
            ignore_selectors=["span.views", ".none"],
        )
        bench.run()
        first = stored(bench)["/news/article_1.html"]
        assert first.title == site.article(1).title
        assert first.text.splitlines()[:4] == site.article(1).text.splitlines()
        assert first.text.splitlines()[4].startswith("Seen ")

        outcome, _ = bench.run(force=True)
        assert counters(outcome, "unchanged", "changed", "new") == (5, 0, 0)
        site.change(1, text="Quite another text.\nIn two lines.")
        outcome, _ = bench.run(force=True)
        assert counters(outcome, "unchanged", "changed", "new") == (4, 1, 0)
        assert version_count(bench) == 6

    def test_without_ignore_selectors_the_counter_makes_versions(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        bench = serve(NewsSite(pages=1, counter=True), content_selector="div.content")
        bench.run()
        outcome, _ = bench.run(force=True)
        assert counters(outcome, "unchanged", "changed") == (0, 5)


class TestKnownPages:
    def test_the_second_run_stops_after_the_first_list_page(self, bench: CrawlBench) -> None:
        bench.run()
        outcome, context = bench.run()
        assert context.fetched == ["/news/index_1.html"]
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "known", "stopped_because") == (0, 5, "known_pages")
        assert outcome.attention is None

    def test_new_articles_are_fetched_and_the_crawl_stops_at_the_known_page(
        self, bench: CrawlBench, news: NewsSite
    ) -> None:
        bench.run()
        for _ in range(7):
            news.add()
        outcome, context = bench.run()
        assert counters(outcome, "new", "known", "pages", "stopped_because") == (7, 8, 3, "known_pages")
        assert len(articles_of(context)) == 7

    def test_pinned_articles_do_not_stop_it(self, bench: CrawlBench, news: NewsSite) -> None:
        news.pin(1)
        news.pin(2)
        bench.run()
        for _ in range(6):
            news.add()
        outcome, _ = bench.run()
        assert outcome.result["new"] == 6
        assert outcome.result["stopped_because"] == "known_pages"
        assert len(stored(bench)) == 21

    def test_force_passes_known_pages_and_fetches_conditionally(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = NewsSite(pages=3, etags=True)
        bench = serve(site)
        bench.run()
        site.change(3, text="A new text for article three.\nAnd more of it, so that it is a text at all.")
        outcome, context = bench.run(force=True)
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "changed", "unchanged", "known") == (0, 1, 14, 0)
        assert len(articles_of(context)) == 15
        documents = stored(bench)
        assert len({document.last_job_id for document in documents.values()}) == 1
        assert documents["/news/article_3.html"].version == 2

    def test_articles_of_the_chain_are_not_fetched_again_and_do_not_stop_it(self, bench: CrawlBench) -> None:
        outcome, first = bench.run(stop_when=lambda context: len(context.fetched) >= 4)
        assert isinstance(outcome, Cancelled)
        assert outcome.result["new"] == 3
        outcome, second = bench.run(chain=first)
        assert isinstance(outcome, Done)
        assert counters(outcome, "in_chain", "new", "known") == (3, 12, 0)
        assert not set(articles_of(first)) & set(articles_of(second))
        assert version_count(bench) == 15

    def test_force_in_a_chain_fetches_each_article_once(self, bench: CrawlBench) -> None:
        bench.run()
        _, first = bench.run(force=True, stop_when=lambda context: len(context.fetched) >= 4)
        outcome, second = bench.run(force=True, chain=first)
        assert not set(articles_of(first)) & set(articles_of(second))
        assert counters(outcome, "in_chain", "unchanged") == (3, 12)

    def test_missing_twice_is_gone(self, bench: CrawlBench, news: NewsSite, server: Server) -> None:
        bench.run()
        site_links = list_page([("/news/article_1.html", "one"), ("/news/article_2.html", "two")])
        news.remove(1, status=410)
        links = LinksSite(news=site_links)
        with Server(links) as other:
            links.pages["/news"] = site_links.replace('href="/', f'href="{server.url}/')
            again = CrawlBench(
                bench.database, other.url, LIST | {"list_url": "/news", "max_pages": 1}, clock=bench.clock
            )
            outcome, _ = again.run(force=True)
            assert stored(bench)["/news/article_1.html"].state == "live"
            assert counters(outcome, "missing", "gone", "failed", "unchanged") == (1, 0, 0, 1)
            outcome, _ = again.run(force=True)
        assert counters(outcome, "missing", "gone", "failed", "unchanged") == (1, 1, 0, 1)
        assert stored(bench)["/news/article_1.html"].state == "gone"
        assert stored(bench)["/news/article_2.html"].state == "live"


class TestResuming:
    def test_from_the_page_after_the_last_completed_one(self, bench: CrawlBench) -> None:
        outcome, first = bench.run(stop_when=lambda context: len(context.fetched) >= 9)
        assert isinstance(outcome, Cancelled)
        assert first.checkpoints[-1] == Checkpoint(1, {})
        outcome, second = bench.run(chain=first, checkpoint=first.checkpoints[-1])
        assert isinstance(outcome, Done)
        assert second.fetched[0] == "/news/index_2.html"
        assert len(articles_of(first)) + len(articles_of(second)) == 15
        assert len(stored(bench)) == version_count(bench) == 15

    def test_by_next_links_the_url_is_in_the_checkpoint(self, bench: CrawlBench) -> None:
        bench.params = {
            "list_url": "/news/index.html",
            "next_selector": "a.next",
            "item_selector": "ul.list a",
        }
        outcome, first = bench.run(stop_when=lambda context: len(context.fetched) >= 9)
        assert first.checkpoints[-1].data == {"next_url": f"{bench.base_url}/news/index_2.html"}
        outcome, second = bench.run(chain=first, checkpoint=first.checkpoints[-1])
        assert isinstance(outcome, Done)
        assert second.fetched[0] == "/news/index_2.html"
        assert outcome.result["stopped_because"] == "no_next_link"
        assert len(stored(bench)) == 15

    def test_by_next_links_without_a_known_url_it_walks_there(self, bench: CrawlBench) -> None:
        bench.params = {
            "list_url": "/news/index.html",
            "next_selector": "a.next",
            "item_selector": "ul.list a",
        }
        outcome, context = bench.run(from_page=3)
        assert isinstance(outcome, Done)
        assert context.fetched[:3] == ["/news/index.html", "/news/index_2.html", "/news/index_3.html"]
        assert outcome.result["new"] == 5
        assert [point.page for point in context.checkpoints] == [3]

    def test_from_page_is_the_first_list_page_fetched(self, bench: CrawlBench) -> None:
        _, context = bench.run(from_page=3)
        assert context.fetched[0] == "/news/index_3.html"
        assert len(articles_of(context)) == 5

    def test_from_page_beyond_max_pages_is_told(self, bench: CrawlBench) -> None:
        outcome, context = bench.run(from_page=51)
        assert outcome == Failed("from_page is 51, but max_pages is 50.", outcome.result)
        assert context.fetched == []

    def test_killed_after_the_last_checkpoint_there_is_nothing_left(self, bench: CrawlBench) -> None:
        outcome, context = bench.run(checkpoint=Checkpoint(50))
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert context.fetched == []

    def test_without_track_checkpoint_it_starts_over(self, bench: CrawlBench) -> None:
        bench.track_checkpoint = False
        outcome, context = bench.run(checkpoint=Checkpoint(2))
        assert isinstance(outcome, Done)
        assert context.fetched[0] == "/news/index_1.html"
        assert context.checkpoints == []

    def test_every_stopping_point_leads_to_the_same_documents(
        self, bench: CrawlBench, database: Database
    ) -> None:
        """Stop after each number of requests in turn, and go on from what was committed, in one chain."""
        context: BenchContext | None = None
        checkpoint = Checkpoint()
        fetched: list[str] = []
        for _ in range(40):
            outcome, context = bench.run(
                chain=context, checkpoint=checkpoint, stop_when=lambda run: len(run.fetched) >= 2
            )
            fetched += articles_of(context)
            checkpoint = context.checkpoints[-1] if context.checkpoints else checkpoint
            if isinstance(outcome, Done):
                break
        assert isinstance(outcome, Done)
        assert len(fetched) == len(set(fetched)) == 15
        assert version_count(bench) == 15
