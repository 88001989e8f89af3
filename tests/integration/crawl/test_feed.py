"""Crawls of RSS and Atom feeds: the adapter `feed`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.helpers.adapters import counters, run_in_pieces, stored, version_count
from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.feeds import FeedSite, atom, item, rss
from tests.integration.crawl.conftest import BenchFor
from webqueue.outcomes import Done, Failed


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench for its feed."""
    return lambda site, **params: bench_for(site, {"feed_url": "/feed"} | params, adapter="feed")


class TestArticles:
    def test_each_entry_s_page_is_fetched_once(self, serve: Callable[..., CrawlBench]) -> None:
        site = FeedSite(
            feed=rss(
                item("/a", "A &amp; B", pubDate="Mon, 06 May 2024 10:00:00 +0800"),
                item("/b", "Second", pubDate="2024-05-07 10:00:00"),
                item("/a", "again"),
            )
        )
        site.articles["/b"] = "<p>No title, but a text that belongs to the second entry.</p>"
        bench = serve(site)
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "links", "stopped_because") == (2, 2, "last_page")
        assert context.fetched == ["/feed", "/a", "/b"]
        documents = stored(bench)
        assert (documents["/a"].title, documents["/b"].title) == ("Page /a", "Second")
        # An offset in the feed counts; without one it is the site's own zone.
        assert documents["/a"].published_at == datetime(2024, 5, 6, 2, tzinfo=UTC)
        assert documents["/b"].published_at == datetime(2024, 5, 7, 2, tzinfo=UTC)
        outcome, context = bench.run()
        assert counters(outcome, "new", "known", "stopped_because") == (0, 2, "known_pages")
        assert context.fetched == ["/feed"]

    def test_an_entry_that_was_changed_is_fetched_again(self, serve: Callable[..., CrawlBench]) -> None:
        def entry(name: str, updated: str) -> str:
            return f'<entry><title>{name}</title><link href="/{name}"/><updated>{updated}</updated></entry>'

        site = FeedSite(feed="")
        bench = serve(site)
        site.feeds["/feed"] = atom(
            entry("a", "2024-01-01T00:00:00Z"), entry("b", "2024-01-01T00:00:00Z")
        ).replace("http://127.0.0.1/", bench.base_url)
        bench.run()
        site.articles["/a"] = "<title>Page /a</title><p>A new text of the article a, longer than before.</p>"
        outcome, _ = bench.run()
        assert counters(outcome, "known", "rechecked") == (2, 0)
        now = f"{bench.clock():%Y-%m-%dT%H:%M:%SZ}"
        site.feeds["/feed"] = str(site.feeds["/feed"]).replace("2024-01-01T00:00:00Z", now, 1)
        outcome, context = bench.run()
        assert counters(outcome, "rechecked", "changed", "known", "stopped_because") == (
            1,
            1,
            1,
            "known_pages",
        )
        assert context.fetched == ["/feed", "/a"]
        outcome, _ = bench.run()
        assert outcome.result["rechecked"] == 0
        site.feeds["/feed"] = str(site.feeds["/feed"]).replace(now, "2999-01-01T00:00:00Z")
        outcome, _ = bench.run()
        assert outcome.result["rechecked"] == 0  # a date in the future says nothing

    def test_the_feed_s_own_texts(self, serve: Callable[..., CrawlBench]) -> None:
        entry = (
            '<entry><title type="html">One &amp;lt;b&amp;gt;</title><link href="/one"/><summary>Short</summary>'
            '<content type="html">&lt;p&gt;The whole text.&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</content></entry>'
        )
        site = FeedSite(feed=atom(entry, '<entry><title>Two</title><link href="/two"/></entry>'))
        bench = serve(site, fetch_articles=False)
        site.feeds["/feed"] = str(site.feeds["/feed"]).replace("http://127.0.0.1/", bench.base_url)
        outcome, context = bench.run()
        documents = stored(bench)
        assert (documents["/one"].title, documents["/one"].text) == ("One <b>", "The whole text.")
        assert documents["/two"].text == "The text of the article /two."  # the feed has none
        assert context.fetched == ["/feed", "/two"]
        site.feeds["/feed"] = str(site.feeds["/feed"]).replace("The whole", "Another")
        outcome, context = bench.run()
        assert counters(outcome, "changed", "stopped_because") == (1, "known_pages")
        assert version_count(bench) == 3

    def test_older_entries_by_the_feed_s_own_links_and_by_number(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        def page(number: int, following: str = "") -> str:
            more = f'<atom:link rel="next" href="{following}"/>' if following else ""
            return rss(*(item(f"/{number}-{part}") for part in range(3)), more=more)

        site = FeedSite(feed=page(1, "/old1"), old1=page(2, "/old2"), old2=page(3, "/feed"))
        bench = serve(site)
        outcome, runs = run_in_pieces(bench, lambda context: len(context.fetched) >= 4)
        articles = [path for run in runs for path in run.fetched if "-" in path]
        assert len(articles) == len(set(articles)) == len(stored(bench)) == version_count(bench) == 9
        assert outcome.result["stopped_because"] == "last_page"
        first = next(run.checkpoints[0] for run in runs if run.checkpoints)
        assert first.data == {"next_url": f"{bench.base_url}/old1"}

        numbered = FeedSite(feed1=page(1), feed2=page(2), feed3=rss())
        outcome, _ = serve(numbered, feed_url="/feed{page}").run()
        assert counters(outcome, "pages", "stopped_because") == (3, "empty_page")

    def test_a_feed_that_did_not_change_is_not_sent_again(self, serve: Callable[..., CrawlBench]) -> None:
        site = FeedSite(feed=rss(item("/a"), item("/b")), etags=True)
        bench = serve(site)
        bench.run()
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "stopped_because", "links") == ("not_modified", 0)
        assert "if-none-match" in context.asked[0].headers
        site.feeds["/feed"] = rss(item("/c"), item("/a"), item("/b"))
        outcome, _ = bench.run()
        assert counters(outcome, "new", "known") == (1, 2)
        outcome, context = bench.run(force=True)
        assert counters(outcome, "unchanged") == (3,)
        assert all("if-none-match" in request.headers for request in context.asked[1:])

    def test_a_trial(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(FeedSite(feed=rss(item("/a", "First"), item("/b", "Second"))))
        outcome, context = bench.run(source="try")
        assert isinstance(outcome, Done)
        assert [link["text"] for link in outcome.result["links"]] == ["First", "Second"]
        assert outcome.result["article"]["title"] == "Page /a"
        assert context.fetched == ["/feed", "/a"]
        assert stored(bench) == {}

    def test_files_of_entries(self, serve: Callable[..., CrawlBench]) -> None:
        enclosure = '<enclosure url="/talk.pdf" type="application/pdf" length="9"/>'
        site = FeedSite(feed=rss(item("/a", "With a file").replace("</item>", f"{enclosure}</item>")))
        bench = serve(site, attachments=True)
        outcome, context = bench.run()
        assert counters(outcome, "new", "attachments") == (1, 1)
        assert context.fetched == ["/feed", "/a", "/talk.pdf"]
        only_a_file = rss(f"<item><title>Only a file</title>{enclosure.replace('talk', 'other')}</item>")
        site.feeds["/feed"] = only_a_file
        outcome, _ = bench.run()
        assert counters(outcome, "new", "without_link") == (1, 0)


ODD: dict[str, tuple[str | bytes, str]] = {
    "html": ("<!doctype html><title>News</title><p>text", "no feed"),
    "html-naming-a-feed": (
        '<link rel="alternate" type="application/rss+xml" href="/real.xml"><p>news',
        "it names the feed",
    ),
    "empty": ("", "no feed"),
    "json": ('{"version": "https://jsonfeed.org/version/1.1", "items": []}', "no feed"),
    "binary": (bytes(range(256)), "no feed"),
    "no-entry": (rss(), "the feed has no entry"),
    "no-link": (
        rss("<item><title>a</title></item><item><title>b</title></item>"),
        "none of the feed's 2 entries",
    ),
    "deep": (rss("<item>" + "<b>" * 100_000), "nested more than"),
    "bad-links": (rss(item("javascript:x()"), item("http://[bad")), "none of the feed's 2 entries"),
}


class TestHostile:
    @pytest.mark.parametrize("name", ODD)
    def test_what_is_no_feed_fails_says_so_and_keeps_a_copy(
        self, serve: Callable[..., CrawlBench], name: str
    ) -> None:
        body, said = ODD[name]
        bench = serve(FeedSite(feed=body))
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert said in outcome.error
        assert f"{bench.base_url}/feed" in outcome.error
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert list(context.kept.values()) == [body.encode() if isinstance(body, str) else body]

    @pytest.mark.parametrize("codec", ["gb18030", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("declared", ["gb2312", "utf-8", None])
    def test_chinese_in_any_encoding(
        self, serve: Callable[..., CrawlBench], codec: str, declared: str | None
    ) -> None:
        declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
        body = declaration + rss(item("/a", "朱镕基与㐂寿司的通知")).partition("?>")[2]
        site = FeedSite(feed=body.encode(codec))
        site.articles["/a"] = "<p>text"
        bench = serve(site)
        bench.run()
        assert stored(bench)["/a"].title == "朱镕基与㐂寿司的通知"

    def test_damaged_feeds_are_read_as_far_as_they_go(self, serve: Callable[..., CrawlBench]) -> None:
        whole = rss(item("/a?x=1&y=2", "A"), item("/b", "B"), item("/c", "C"))
        site = FeedSite(feed=whole.replace("&amp;", "&").replace("<title>B", "<title>B &nbsp; < 5")[:-20])
        bench = serve(site)
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert sorted(stored(bench)) == ["/a?x=1&y=2", "/b", "/c"]

    @pytest.mark.parametrize(
        "entity",
        [
            '<!ENTITY x SYSTEM "file:///etc/passwd">',
            '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
            + "".join(f'<!ENTITY {chr(99 + n)} "{f"&{chr(98 + n)};" * 10}">' for n in range(10))
            + '<!ENTITY x "&l;">',
        ],
        ids=["external", "bomb"],
    )
    def test_entities_stand_for_nothing(self, serve: Callable[..., CrawlBench], entity: str) -> None:
        body = rss("<item><title>It is &x;</title><link>/a</link></item>")
        site = FeedSite(feed=body.replace("?>\n", f"?><!DOCTYPE rss [{entity}]>", 1))
        site.articles["/a"] = "<p>text"
        bench = serve(site)
        bench.run()
        assert stored(bench)["/a"].title == "It is &x;"
