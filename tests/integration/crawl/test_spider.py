"""Crawls from link to link: the adapter `spider`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.adapters import counters, run_in_pieces, stored, version_count
from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.base import Exchange
from tests.helpers.servers.web import WebSite, tree
from tests.integration.crawl.conftest import BenchFor
from webqueue.handlers import registry
from webqueue.models import Document
from webqueue.outcomes import Blocked, Done, Failed


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench that begins at /docs/."""
    return lambda site, **params: bench_for(site, params, adapter="spider", path="/docs/")


def paths(bench: CrawlBench) -> list[str]:
    host = bench.base_url.removesuffix("/docs/")
    with bench.database.reading() as session:
        return sorted(url.removeprefix(host) for url in session.scalars(select(Document.url)))


class TestPages:
    def test_breadth_first_to_a_depth_each_page_once(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite(tree(3, 3)), max_depth=2)
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        levels = [path.count("/") for path in context.fetched]
        assert levels == sorted(levels)
        assert len(context.fetched) == len(set(context.fetched)) == 1 + 3 + 9
        assert counters(outcome, "new", "pages", "stopped_because") == (13, 13, "no_link_left")
        assert len(stored(bench)) == version_count(bench) == 13

    def test_only_below_the_prefix_and_not_what_is_excluded(self, serve: Callable[..., CrawlBench]) -> None:
        site = WebSite(
            {
                "/docs/": [
                    "/docs/a",
                    "/docsother",
                    "/other/",
                    "/docs/print/a",
                    "/docs/pic.PNG",
                    "/docs/x.pdf",
                    "//x.org/",
                ],
                "/docs/a": ["/docs/b?page=2"],
                "/docs/b": [],
            }
        )
        bench = serve(site, exclude=["/docs/print/*"])
        bench.run()
        assert paths(bench) == ["/docs/", "/docs/a", "/docs/b?page=2"]

    def test_start_pages_and_prefix_of_one_s_own(self, serve: Callable[..., CrawlBench]) -> None:
        site = WebSite({"/map": ["/docs/a", "/news/a"], "/index": ["/docs/b"], "/docs/a": [], "/docs/b": []})
        bench = serve(site, start_urls=["/map", "/index"], prefix="/docs/", article_patterns=["/docs/*"])
        outcome, context = bench.run()
        assert paths(bench) == ["/docs/a", "/docs/b"]
        assert context.fetched == ["/map", "/index", "/docs/a", "/docs/b"]
        assert outcome.result["links_on_page_1"] == 1

    def test_max_pages(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite(tree(5, 3)), max_depth=3, max_pages=20)
        outcome, context = bench.run()
        assert len(context.fetched) == 20
        assert outcome.result["stopped_because"] == "max_pages"
        assert outcome.result["left_out"] > 0
        assert len(str(context.checkpoints[0].data)) < 5_000

    def test_the_queue_stays_small_whatever_a_page_says(self, serve: Callable[..., CrawlBench]) -> None:
        long = [f"/docs/{number}/{'x' * 7_000}" for number in range(1_000)]
        bench = serve(WebSite({"/docs/": long}), max_pages=5_000)
        _, context = bench.run(stop_when=lambda run: len(run.fetched) >= 2)
        assert len(str(context.checkpoints[0].data)) < 320_000

    def test_dead_links_and_redirects(self, serve: Callable[..., CrawlBench]) -> None:
        site = WebSite(
            {"/docs/": ["/docs/dead", "/docs/old", "/docs/login", "/docs/new", "/docs/loop"], "/docs/new": []}
        )
        site.redirects = {"/docs/old": "/docs/new", "/docs/login": "/account", "/docs/loop": "/docs/"}
        site.links["/account"] = ["/docs/never"]
        bench = serve(site)
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert paths(bench) == ["/docs/", "/docs/new"]
        assert counters(outcome, "new", "failed", "duplicates") == (2, 1, 2)
        assert "/docs/never" not in context.fetched
        assert any("leads to" in message and "/account" in message for message in context.messages)


class TestKnownPages:
    def test_hubs_are_read_again_for_new_links_and_the_rest_is_known(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = WebSite(tree(3, 2))
        bench = serve(site)
        bench.run()
        outcome, context = bench.run()
        assert len(context.fetched) == 1 + 3
        assert counters(outcome, "new", "known", "unchanged") == (0, 9, 4)
        site.links["/docs/1/"].append("/docs/1/new")
        site.links["/docs/1/new"] = []
        outcome, context = bench.run()
        assert counters(outcome, "new", "known") == (1, 9)
        assert "/docs/1/new" in paths(bench)
        bench.params = {"hub_depth": 0}
        outcome, context = bench.run()
        assert context.fetched == ["/docs/"]

    def test_force_fetches_every_page_and_the_last_ones_conditionally(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = WebSite(tree(2, 2), etags=True)
        bench = serve(site)
        bench.run()
        site.texts["/docs/0/1/"] = "Another text of this page, which is long enough to be one as well."
        outcome, context = bench.run(force=True)
        assert counters(outcome, "changed", "unchanged") == (1, 6)
        conditional = [request.url for request in context.asked if "if-none-match" in request.headers]
        assert len(conditional) == 4

    def test_recent_pages(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite(tree(2, 2), etags=True), recheck_days=3)
        bench.run()
        outcome, _ = bench.run()
        assert counters(outcome, "rechecked", "unchanged", "known") == (4, 7, 0)


class TestResuming:
    @pytest.mark.parametrize("pages", [1, 3, 7])
    def test_stopped_anywhere_it_goes_on_and_has_each_page_once(
        self, serve: Callable[..., CrawlBench], pages: int
    ) -> None:
        bench = serve(WebSite(tree(3, 3)), max_depth=3, article_patterns=["/docs/*/*"])
        outcome, runs = run_in_pieces(bench, lambda context: len(context.fetched) >= pages)
        fetched = [path for run in runs for path in run.fetched]
        assert len(fetched) == len(set(fetched)) == 40
        assert len(stored(bench)) == version_count(bench) == 39
        assert outcome.result["stopped_because"] == "no_link_left"

    def test_a_kill_between_storing_and_the_checkpoint_costs_one_request(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        class Killed(BaseException):
            pass

        bench = serve(WebSite(tree(3, 2)))
        first = bench.context()
        commit = first.checkpoint

        def killed_at_the_third(page: int, data: Any = None) -> None:
            if page == 3:
                raise Killed
            commit(page, data)

        first.checkpoint = killed_at_the_third  # type: ignore[method-assign]
        with pytest.raises(Killed):
            registry.get("crawl").run(first)
        outcome, second = bench.run(chain=first, checkpoint=first.checkpoints[-1])
        assert isinstance(outcome, Done)
        assert set(first.fetched) & set(second.fetched) == {"/docs/1/"}
        assert len(stored(bench)) == version_count(bench) == 13

    def test_blocked_in_the_middle(self, serve: Callable[..., CrawlBench]) -> None:
        class Blocks(WebSite):
            blocking = True

            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/docs/2/" and self.blocking:
                    exchange.send("", status=429)
                else:
                    super().respond(exchange)

        site = Blocks(tree(3, 2))
        bench = serve(site)
        outcome, first = bench.run()
        assert isinstance(outcome, Blocked)
        assert outcome.checkpoint is not None
        assert outcome.checkpoint.page == 3
        site.blocking = False
        outcome, second = bench.run(chain=first, checkpoint=outcome.checkpoint)
        assert set(first.fetched) & set(second.fetched) == {"/docs/2/"}
        assert len(stored(bench)) == version_count(bench) == 13

    def test_without_checkpoints_it_begins_anew(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite(tree(2, 1)))
        bench.track_checkpoint = False
        outcome, context = bench.run()
        assert outcome.result["new"] == 3
        assert context.checkpoints == []


class TestEndings:
    def test_a_start_page_without_a_link_fails_and_is_kept(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite({"/docs/": ["/elsewhere", "/docs/#top"]}))
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert f"no link begins with '{bench.base_url}' at {bench.base_url}" in outcome.error
        assert list(context.kept) == ["start-page.html"]
        bench.params = {"max_depth": 0}
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)

    @pytest.mark.parametrize("source", ["manual", "try"])
    def test_a_start_that_cannot_be(self, serve: Callable[..., CrawlBench], source: str) -> None:
        bench = serve(WebSite(tree(1, 1)), start_urls=["/docs/none"])
        outcome, _ = bench.run(source=source)
        assert isinstance(outcome, Failed)
        assert "does not exist" in outcome.error
        bench.base_url = "http://[bad/"
        outcome, _ = bench.run(source=source)
        assert isinstance(outcome, Failed)
        assert outcome.error.startswith("start_urls: '/docs/none' is no usable URL")

    def test_from_page_is_refused(self, serve: Callable[..., CrawlBench]) -> None:
        outcome, context = serve(WebSite(tree(1, 1))).run(from_page=4)
        assert isinstance(outcome, Failed)
        assert "from_page" in outcome.error
        assert context.fetched == []

    def test_a_trial(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(WebSite(tree(3, 2)))
        outcome, context = bench.run(source="try")
        assert isinstance(outcome, Done)
        assert [link["text"] for link in outcome.result["links"]] == [
            "to /docs/0/",
            "to /docs/1/",
            "to /docs/2/",
        ]
        assert outcome.result["article"]["title"] == "Page /docs/0/"
        assert context.fetched == ["/docs/", "/docs/0/"]
        assert stored(bench) == {}
