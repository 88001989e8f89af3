"""A run that found nothing, or far less than usual, is never plainly done (DESIGN P12): real sites that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.base import Exchange, Site, list_page
from tests.helpers.servers.news import NewsSite
from tests.integration.crawl.conftest import BenchFor
from webqueue.outcomes import Checkpoint, Done, Failed

LIST = {"list_url": "/news", "item_selector": "ul.list a", "max_pages": 1}
DAY = timedelta(days=1)


class PublicSite(Site):
    """One list page of the newest articles, with an ETag when asked; any way of breaking it is an attribute.

    Attributes:
        shown: how many articles the list shows.
        redesigned: the list has another markup.
        scripted: articles are drawn by a script, so that their pages have no text.
    """

    def __init__(self, shown: int = 20, *, etag: bool = False) -> None:
        self.shown = shown
        self.etag = etag
        self.newest = 20
        self.redesigned = False
        self.scripted = False

    def respond(self, exchange: Exchange) -> None:
        if exchange.request.path == "/news":
            tag = f'"{self.newest}-{self.shown}"'
            if self.etag and exchange.request.headers.get("if-none-match") == tag:
                exchange.send(b"", status=304)
                return
            numbers = range(self.newest, max(0, self.newest - self.shown), -1)
            page = list_page([(f"/a/{number}", f"Article {number}") for number in numbers])
            page = page.replace('class="list"', 'class="cards"') if self.redesigned else page
            exchange.send(page, headers={"etag": tag} if self.etag else {})
        elif self.scripted:
            exchange.send('<html><body><div id="app"></div><script src="/app.js"></script></body></html>')
        else:
            exchange.send(
                f"<title>{exchange.request.path}</title><p>The text of {exchange.request.path}.</p>"
            )


@pytest.fixture
def engine_name() -> str:
    """What was usual stands in the result of a job: nothing here depends on the database."""
    return "sqlite"


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench for its list."""
    return lambda site, **params: bench_for(site, LIST | params)


def attention(bench: CrawlBench, **of_the_job: Any) -> str | None:
    outcome, _ = bench.run(**of_the_job)
    assert isinstance(outcome, Done), outcome
    return outcome.attention


class TestARedesignedSite:
    def test_fails_naming_selector_and_url_and_keeps_the_page(self, serve: Callable[..., CrawlBench]) -> None:
        site = PublicSite()
        bench = serve(site)
        assert attention(bench) is None
        site.redesigned = True
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert "item_selector 'ul.list a' matches no link" in outcome.error
        assert f"{bench.base_url}/news" in outcome.error
        assert b'class="cards"' in context.kept["list-page-1.html"]

    def test_leaves_what_is_usual_as_it_was(self, serve: Callable[..., CrawlBench]) -> None:
        site = PublicSite()
        bench = serve(site)
        for _ in range(4):
            attention(bench)
        site.redesigned = True
        for _ in range(3):
            assert isinstance(bench.run()[0], Failed)
        site.redesigned, site.shown = False, 3
        assert attention(bench) is not None, "the failed runs have not become what is usual"


class TestAHalfEmptySite:
    def test_needs_attention_from_the_fifth_run_on(self, serve: Callable[..., CrawlBench]) -> None:
        for runs_before in (3, 4):
            site = PublicSite()
            bench = serve(site)
            for _ in range(runs_before):
                assert attention(bench) is None
            site.shown = 9
            told = attention(bench)
            assert (told is not None) == (runs_before == 4)
        assert told is not None
        assert told.startswith("List page 1 has 9 links; usual are 20 (the median of the last 4 runs)")

    def test_half_of_what_is_usual_is_enough(self, serve: Callable[..., CrawlBench]) -> None:
        site = PublicSite()
        bench = serve(site)
        for _ in range(4):
            attention(bench)
        site.shown = 10
        assert attention(bench) is None

    def test_the_median_is_that_of_the_last_ten_runs_and_follows(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = PublicSite()
        bench = serve(site)
        for shown in (3, *[20] * 10):
            site.shown = shown
            assert attention(bench) is None
        site.shown = 8
        told = [attention(bench) for _ in range(7)]
        # Ten runs with 20, one of which leaves with each run: with five of each the median is 14, with six of 8 it is 8.
        assert [text is not None for text in told] == [True] * 5 + [False] * 2

    def test_runs_that_did_not_read_page_1_neither_count_nor_are_judged(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = PublicSite(etag=True)
        bench = serve(site)
        assert attention(bench) is None
        for _ in range(6):
            outcome, _ = bench.run()
            assert outcome.result["stopped_because"] == "not_modified"
        site.shown = 5
        assert attention(bench) is None, "one run counts so far"
        site.shown = 20
        for _ in range(3):
            site.newest += 1
            assert attention(bench) is None
        outcome, _ = bench.run(chain=bench.context(), checkpoint=Checkpoint(1, {}))
        assert outcome.result["links_on_page_1"] is None
        site.shown = 5
        assert attention(bench) is not None, "what was usual is carried through them"


class TestEmptyTexts:
    def test_of_most_articles_need_attention(self, serve: Callable[..., CrawlBench]) -> None:
        site = PublicSite(shown=5)
        site.scripted = True
        assert attention(serve(site)) == "5 of 5 pages have no text."


class TestNothingNew:
    @pytest.fixture
    def site(self) -> PublicSite:
        return PublicSite(shown=20)

    def found(self, bench: CrawlBench, site: PublicSite, finds: int) -> None:
        """A find each second day, and a run on each day."""
        for _ in range(finds):
            site.newest += 1
            assert attention(bench) is None
            bench.clock._now += DAY
            assert attention(bench) is None
            bench.clock._now += DAY

    def test_for_three_times_the_usual_gap_needs_attention(
        self, serve: Callable[..., CrawlBench], site: PublicSite
    ) -> None:
        bench = serve(site)
        self.found(bench, site, 5)
        silent = []
        for _ in range(8):
            silent.append(attention(bench))
            bench.clock._now += DAY
        assert [told is not None for told in silent] == [False] * 4 + [True] * 4
        assert silent[4] is not None
        assert silent[4].startswith("Nothing new for 6 days, since 2026-01-09 ")
        assert "usually something new comes every 2 days" in silent[4]
        site.newest += 1
        assert attention(bench) is None, "it publishes again"

    def test_a_list_that_never_changes_again_is_noticed_though_it_is_not_read(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = PublicSite(etag=True)
        bench = serve(site)
        self.found(bench, site, 5)
        bench.clock._now += 6 * DAY
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.result["stopped_because"] == "not_modified"
        assert outcome.attention is not None

    def test_is_not_judged_before_a_gap_is_usual(
        self, serve: Callable[..., CrawlBench], site: PublicSite
    ) -> None:
        bench = serve(site)
        self.found(bench, site, 4)
        bench.clock._now += 90 * DAY
        assert attention(bench) is None

    def test_what_a_failed_run_found_counts(self, serve: Callable[..., CrawlBench], site: PublicSite) -> None:
        bench = serve(site)
        self.found(bench, site, 5)
        bench.clock._now += 6 * DAY
        site.newest += 1
        before = bench.previous_result
        bench.run()
        bench.previous_result = before  # as if it had failed after it had stored its article
        assert attention(bench) is None


class TestGone:
    """404 or 410 twice, also for what has left the lists (DESIGN section 6)."""

    @pytest.mark.parametrize("status", [404, 410])
    def test_a_recent_article_that_left_the_lists_is_asked_for(
        self, serve: Callable[..., CrawlBench], status: int
    ) -> None:
        site = NewsSite(pages=3, per_page=5, etags=True)
        params = {"list_url": "/news/index_{page}.html", "max_pages": 3, "recheck_days": 3_650}
        bench = serve(site, **params)
        attention(bench)
        site.remove(9, status=status)
        outcome, context = bench.run()
        assert "/news/article_9.html" in context.fetched
        assert (outcome.result["missing"], outcome.result["gone"]) == (1, 0)
        outcome, _ = bench.run()
        assert (outcome.result["missing"], outcome.result["gone"], outcome.result["failed"]) == (1, 1, 0)
        outcome, context = bench.run()
        assert outcome.result["missing"] == 0, "what is gone is left alone"
        assert "/news/article_9.html" not in context.fetched

    def test_old_articles_and_targets_without_recheck_ask_for_nothing(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        for days, more in ((0, timedelta()), (3, 60 * DAY)):
            site = NewsSite(pages=1, per_page=5, etags=True)
            bench = serve(site, list_url="/news/index_{page}.html", recheck_days=days)
            attention(bench)
            bench.clock._now += more
            site.remove(2)
            outcome, _ = bench.run()
            assert outcome.result["missing"] == 0

    def test_a_chain_asks_once(self, serve: Callable[..., CrawlBench]) -> None:
        site = NewsSite(pages=2, per_page=5, etags=True)
        bench = serve(site, list_url="/news/index_{page}.html", max_pages=2, recheck_days=3_650)
        attention(bench)
        site.remove(3)
        outcome, first = bench.run()
        outcome, again = bench.run(chain=first)
        assert (outcome.result["missing"], outcome.result["gone"]) == (0, 0)
        assert "/news/article_3.html" not in again.fetched
