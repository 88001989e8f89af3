"""Crawls of sitemaps: the adapter `sitemap`."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.adapters import counters, run_in_pieces, stored, version_count
from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.base import Exchange
from tests.helpers.servers.sitemaps import MappedSite
from tests.integration.crawl.conftest import BenchFor
from webqueue.outcomes import Cancelled, Checkpoint, Done, Failed


def pages(prefix: str, count: int) -> list[str]:
    return [f"/{prefix}/{number}" for number in range(count)]


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench for its sitemap."""
    return lambda site, **params: bench_for(site, params, adapter="sitemap")


class TestPages:
    def test_every_page_of_every_file_once(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite(
            {
                "/sitemap.xml": {"/one.xml": "", "/two.xml.gz": "", "/three.txt": ""},
                "/one.xml": [*pages("one", 120), "/one/0"],
                "/two.xml.gz": b"",
                "/three.txt": "http://HOST/three/0\nhttp://HOST/three/1\n",
            }
        )
        bench = serve(site)
        host = bench.base_url.encode()
        site.maps["/three.txt"] = site.maps["/three.txt"].replace("http://HOST", bench.base_url)
        site.maps["/two.xml.gz"] = gzip.compress(
            b"<urlset><url><loc>" + host + b"/two/0</loc></url></urlset>"
        )
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert counters(outcome, "new", "pages", "stopped_because") == (123, 4, "end_of_sitemap")
        assert len(context.fetched) == len(set(context.fetched)) == 4 + 123
        assert len(stored(bench)) == version_count(bench) == 123

    def test_known_pages_do_not_stop_it(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite({"/sitemap.xml": pages("a", 150)})
        bench = serve(site)
        bench.run()
        site.maps["/sitemap.xml"] = [*pages("a", 150), "/new"]
        outcome, context = bench.run()
        assert counters(outcome, "new", "known") == (1, 150)
        assert context.fetched == ["/sitemap.xml", "/new"]

    def test_pages_newer_than_the_stored_ones_are_fetched_conditionally(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = MappedSite(
            {"/sitemap.xml": [("/a", "2024-01-01"), ("/b", "2024-01-01"), ("/c", "")]}, etags=True
        )
        bench = serve(site)
        bench.run()
        today = f"{bench.clock():%Y-%m-%d}"
        site.maps["/sitemap.xml"] = [("/a", today), ("/b", today), ("/c", "")]
        site.articles["/a"] = "<title>/a</title><p>Another text of page a, which is longer than before."
        outcome, context = bench.run()
        assert counters(outcome, "rechecked", "changed", "unchanged", "known") == (2, 1, 1, 1)
        assert context.fetched == ["/sitemap.xml", "/a", "/b"]
        assert all("if-none-match" in request.headers for request in context.asked[1:])
        assert stored(bench)["/a"].version == 2

    def test_include_and_exclude(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite({"/sitemap.xml": ["/news/a", "/news/b?print=1", "/news/tag/x", "/about"]})
        bench = serve(site, include=["/news/*"], exclude=["/news/tag/*", "*print=1"])
        bench.run()
        assert list(stored(bench)) == ["/news/a"]

    def test_recent_pages_and_force(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(MappedSite({"/sitemap.xml": pages("a", 3)}, etags=True))
        bench.run()
        outcome, _ = bench.run(force=True)
        assert counters(outcome, "unchanged", "known") == (3, 0)
        bench.params = {"recheck_days": 5}
        outcome, _ = bench.run()
        assert counters(outcome, "rechecked", "unchanged") == (3, 3)

    def test_a_trial(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(MappedSite({"/sitemap.xml": {"/one.xml": ""}, "/one.xml": pages("a", 150)}))
        outcome, context = bench.run(source="try")
        assert isinstance(outcome, Done)
        assert len(outcome.result["links"]) == 100
        assert outcome.result["article"]["title"] == "/a/0"
        assert context.fetched == ["/sitemap.xml", "/one.xml", "/a/0"]
        assert stored(bench) == {}


class TestResuming:
    def test_stopped_anywhere_it_goes_on_and_has_each_page_once(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = MappedSite(
            {
                "/sitemap.xml": {"/one.xml": "2024-01-01", "/two.xml": "", "/three.xml": ""},
                "/one.xml": pages("one", 130),
                "/two.xml": [],
                "/three.xml": pages("three", 20),
            }
        )
        bench = serve(site)
        _, runs = run_in_pieces(bench, lambda context: len(context.fetched) >= 40)
        fetched = [path for run in runs for path in run.fetched if ".xml" not in path]
        assert len(fetched) == len(set(fetched)) == len(stored(bench)) == version_count(bench) == 150
        assert len(runs) > 3
        # After the first page of addresses the index and the first file's beginning are behind it.
        assert runs[-1].fetched.count("/sitemap.xml") == 0
        data = runs[-2].checkpoints[-1].data if runs[-2].checkpoints else runs[-3].checkpoints[-1].data
        assert set(data) == {"url", "offset", "files", "met"}

    def test_from_page(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(MappedSite({"/sitemap.xml": pages("a", 250)}))
        outcome, context = bench.run(from_page=3)
        assert outcome.result["new"] == 50
        assert context.fetched[1] == "/a/200"

    def test_a_checkpoint_that_is_none_of_its_own(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(MappedSite({"/sitemap.xml": pages("a", 150)}))
        strange: list[dict[str, Any]] = [
            {},
            {"url": 5, "files": "x", "met": [1]},
            {"url": "javascript:x", "offset": 1, "files": [[1], ["a"]]},
        ]
        for data in strange:
            outcome, context = bench.run(checkpoint=Checkpoint(1, data))
            assert isinstance(outcome, Done)
            assert context.fetched[0] == "/sitemap.xml"


class TestUnchangedFiles:
    def test_by_etag_and_by_the_date_in_the_index(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite(
            {
                "/sitemap.xml": {"/one.xml": "2024-01-01", "/two.xml": "", "/three.xml": "2024-02-02"},
                "/one.xml": ["/one/a"],
                "/two.xml": ["/two/a"],
                "/three.xml": ["/three/a"],
            },
            etags=True,
        )
        bench = serve(site)
        bench.run()
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert counters(outcome, "files_unchanged", "stopped_because") == (3, "not_modified")
        assert context.fetched == ["/sitemap.xml", "/two.xml"]
        site.maps["/three.xml"] = ["/three/a", "/three/b"]
        site.maps["/sitemap.xml"]["/three.xml"] = "2024-02-03"
        outcome, context = bench.run()
        assert counters(outcome, "files_unchanged", "new", "known") == (2, 1, 1)
        assert context.fetched == ["/sitemap.xml", "/two.xml", "/three.xml", "/three/b"]
        outcome, context = bench.run()
        assert outcome.result["files_unchanged"] == 3

    def test_a_single_file(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(MappedSite({"/sitemap.xml": ["/a"]}, etags=True))
        bench.run()
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.result["stopped_because"] == "not_modified"

    def test_not_after_a_page_that_failed(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite({"/sitemap.xml": ["/a", "/b"]}, etags=True)
        site.missing.add("/b")
        bench = serve(site)
        outcome, _ = bench.run()
        assert outcome.result["failed"] == 1
        site.missing.clear()
        outcome, _ = bench.run()
        assert outcome.result["new"] == 1


class TestHostile:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("<!doctype html><title>Not here</title>", "is no sitemap"),
            ("<urlset></urlset>", "the sitemap has no page"),
            ("<sitemapindex></sitemapindex>", "the sitemap has no page"),
            ("<urlset><url><loc>javascript:x()</loc></url></urlset>", "the sitemap has no page"),
            (gzip.compress(b" " * 60_000_000), "unpacks to"),
        ],
        ids=["html", "empty", "empty-index", "bad-links", "bomb"],
    )
    def test_a_sitemap_without_a_page_fails_and_keeps_a_copy(
        self, serve: Callable[..., CrawlBench], body: str | bytes, said: str
    ) -> None:
        bench = serve(MappedSite({"/sitemap.xml": body}))
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert said in outcome.error
        assert f"{bench.base_url}/sitemap.xml" in outcome.error
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert list(context.kept.values()) == [body.encode() if isinstance(body, str) else body]

    def test_none_at_all(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite({})
        site.missing.add("/sitemap.xml")
        outcome, _ = serve(site).run()
        assert isinstance(outcome, Failed)
        assert "does not exist" in outcome.error

    def test_patterns_that_match_nothing(self, serve: Callable[..., CrawlBench]) -> None:
        outcome, _ = serve(MappedSite({"/sitemap.xml": ["/a"]}), include=["/b/*"]).run()
        assert isinstance(outcome, Failed)
        assert "no <loc> of the sitemap matches include and exclude" in outcome.error

    def test_indexes_in_a_loop(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite(
            {
                "/sitemap.xml": {"/loop.xml": "", "/sitemap.xml": ""},
                "/loop.xml": {"/sitemap.xml": "", "/loop.xml": "", "/pages.xml": ""},
                "/pages.xml": ["/a"],
            }
        )
        outcome, context = serve(site).run()
        assert outcome.result["new"] == 1
        assert context.fetched == ["/sitemap.xml", "/loop.xml", "/pages.xml", "/a"]

    def test_an_endless_chain_of_indexes_ends_at_max_files(self, serve: Callable[..., CrawlBench]) -> None:
        class Endless(MappedSite):
            def respond(self, exchange: Exchange) -> None:
                path = exchange.request.path
                if path.startswith("/chain"):
                    number = int(path.removeprefix("/chain"))
                    self.maps[path] = {f"/chain{number + 1}": ""}
                super().respond(exchange)

        bench = serve(Endless({}), sitemap_url="/chain0", max_files=20)
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert len(context.fetched) == 21
        assert any("max_files is 20" in message for message in context.messages)

    def test_bad_files_beside_good_ones(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite(
            {
                "/sitemap.xml": {
                    "/bad.xml": "",
                    "/gone.xml": "",
                    "http://elsewhere.example/x.xml": "",
                    "/ok.xml": "",
                },
                "/bad.xml": "<!doctype html>",
                "/ok.xml": ["/a", "http://elsewhere.example/b"],
            }
        )
        site.missing.add("/gone.xml")
        outcome, context = serve(site).run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "files_failed", "skipped_other_key") == (1, 3, 1)
        assert outcome.attention is not None
        assert len([message for message in context.messages if "left out" in message]) == 3

    def test_no_file_can_be_read(self, serve: Callable[..., CrawlBench]) -> None:
        site = MappedSite({"/sitemap.xml": {"/bad.xml": ""}, "/bad.xml": "<!doctype html>"})
        outcome, _ = serve(site).run()
        assert isinstance(outcome, Failed)
        assert "No file of the sitemap" in outcome.error

    def test_addresses_of_other_keys_are_counted_and_only_the_first_are_logged(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = MappedSite({"/sitemap.xml": pages("a", 3)})
        bench = serve(site)
        bench.run()
        site.maps["/sitemap.xml"] = [*(f"http://elsewhere.example/{n}" for n in range(2_000)), *pages("a", 3)]
        outcome, context = bench.run()
        assert counters(outcome, "known", "skipped_other_key", "pages") == (3, 2_000, 21)
        assert len([message for message in context.messages if "another rate key" in message]) == 20

    def test_a_stop_between_files(self, serve: Callable[..., CrawlBench]) -> None:
        maps: dict[str, Any] = {"/sitemap.xml": {f"/{n}.xml": "" for n in range(50)}}
        maps |= {f"/{n}.xml": [] for n in range(50)}
        outcome, context = serve(MappedSite(maps)).run(stop_when=lambda run: len(run.fetched) >= 5)
        assert isinstance(outcome, Cancelled)
        assert len(context.fetched) == 5
