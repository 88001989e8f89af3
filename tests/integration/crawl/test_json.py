"""Crawls of JSON lists: the adapters `json` and `gkmlpt`, with servers that behave and servers that do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from tests.helpers.adapters import counters, run_in_pieces, stored, version_count
from tests.helpers.crawling import CrawlBench
from tests.helpers.servers.base import Exchange, Site
from tests.helpers.servers.gkmlpt import GkmlptSite
from tests.integration.crawl.conftest import BenchFor
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed

JSON = {"list_url": "/api?page={page}", "items_path": "data.list", "url_path": "link"}


class Api(Site):
    """Answers `/api?page=N` with the N-th of `pages` (whatever it is), and an article at every other path.

    Args:
        pages: of the list; beyond the last one an empty list.
        etags: send an ETag with list pages.
    """

    def __init__(self, *pages: Any, etags: bool = False) -> None:
        self.pages = list(pages)
        self.etags = etags

    def respond(self, exchange: Exchange) -> None:
        if exchange.request.path != "/api":
            exchange.send(
                f"<title>{exchange.request.path}</title><p>The text of {exchange.request.path}.</p>"
            )
            return
        number = int(exchange.request.query.get("page", ["1"])[0])
        page = self.pages[number - 1] if number <= len(self.pages) else {"data": {"list": []}}
        body = page if isinstance(page, str | bytes) else json.dumps(page)
        etag = f'"{number}-{hash(body)}"' if self.etags else None
        exchange.send(body, content_type="application/json", etag=etag)


def listed(*links: str, **more: Any) -> dict[str, Any]:
    return {"data": {"list": [{"link": link} for link in links], **more}}


@pytest.fixture
def serve(bench_for: BenchFor) -> Callable[..., CrawlBench]:
    """Serves a site and makes a bench for it."""

    def start(site: Site, *, adapter: str = "json", folder: str = "", **params: Any) -> CrawlBench:
        written = (JSON | params) if adapter == "json" else params
        return bench_for(site, written, adapter=adapter, path=folder)

    return start


class TestGkmlpt:
    def test_a_column_needs_nothing_but_its_number(self, serve: Callable[..., CrawlBench]) -> None:
        site = GkmlptSite({5: 45})
        bench = serve(site, adapter="gkmlpt", column_id=5, site_id="755001")
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert counters(outcome, "new", "pages", "total", "stopped_because") == (45, 3, 45, "last_page")
        documents = stored(bench)
        for post in site.columns[5]:
            document = documents[site.path_of(post)]
            assert document.title == post.title
            assert post.text[:20] in document.text
            assert document.published_at == post.published
        assert context.asked[0].url.endswith("/gkmlpt/api/all/5?page=1&sid=755001")
        assert "json" in context.asked[0].headers["accept"]

    def test_times_as_text_are_those_of_the_sites_zone(self, serve: Callable[..., CrawlBench]) -> None:
        site = GkmlptSite({5: 3}, times_as="text")
        bench = serve(site, adapter="gkmlpt", column_id="5")
        bench.run()
        times = {document.published_at for document in stored(bench).values()}
        assert times == {post.published for post in site.columns[5]}

    @pytest.mark.parametrize(
        "list_url",
        ["gkmlpt/index#7", "{site}/office/gkmlpt/index#7", "gkmlpt/api/all/7?page={page}&sid=755001"],
    )
    def test_the_address_of_a_column_in_a_department_s_folder(
        self, serve: Callable[..., CrawlBench], list_url: str
    ) -> None:
        bench = serve(GkmlptSite({7: 30}, folder="/office"), adapter="gkmlpt", folder="/office/")
        bench.params = {"list_url": list_url.replace("{site}", bench.base_url.removesuffix("/office/"))}
        outcome, context = bench.run()
        assert counters(outcome, "new", "pages") == (30, 2)
        assert context.fetched[0] == "/office/gkmlpt/api/all/7"

    def test_the_next_run_fetches_what_is_new(self, serve: Callable[..., CrawlBench]) -> None:
        site = GkmlptSite({5: 45})
        bench = serve(site, adapter="gkmlpt", column_id=5)
        bench.run()
        outcome, context = bench.run()
        assert counters(outcome, "new", "known", "stopped_because") == (0, 20, "known_pages")
        site.add(5)
        outcome, context = bench.run()
        assert counters(outcome, "new", "pages") == (1, 2)
        assert len(context.fetched) == 3

    def test_an_unknown_column_fails_and_keeps_the_answer(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(GkmlptSite({5: 45}), adapter="gkmlpt", column_id=6)
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert "items_path 'articles' leads to an empty list" in outcome.error
        assert "/gkmlpt/api/all/6?page=1" in outcome.error
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert json.loads(context.kept["list-page-1.json"])["articles"] == []

    def test_stopped_anywhere_it_goes_on_and_has_each_article_once(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        bench = serve(GkmlptSite({5: 45}), adapter="gkmlpt", column_id=5)
        outcome, runs = run_in_pieces(bench, lambda context: len(context.fetched) >= 4)
        articles = [path for run in runs for path in run.fetched if "content" in path]
        assert len(articles) == len(set(articles)) == len(stored(bench)) == version_count(bench) == 45
        assert len(runs) > 10
        assert outcome.result["stopped_because"] == "last_page"

    def test_a_list_that_is_shorter_than_its_total_needs_attention(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        site = GkmlptSite({5: 10})
        site.changed = lambda answer: answer | {"total": 200}
        outcome, _ = serve(site, adapter="gkmlpt", column_id=5).run()
        assert isinstance(outcome, Done)
        assert outcome.attention == "The site says that it has 200 articles; its list pages name 10."

    def test_a_trial(self, serve: Callable[..., CrawlBench]) -> None:
        site = GkmlptSite({5: 45})
        bench = serve(site, adapter="gkmlpt", column_id=5)
        outcome, context = bench.run(source="try")
        assert isinstance(outcome, Done)
        newest = site.columns[5][-1]
        assert len(outcome.result["links"]) == 20
        assert outcome.result["links"][0]["published_at"] == newest.published.astimezone(UTC).isoformat()
        assert outcome.result["article"]["title"] == newest.title
        assert outcome.result["total"] == 45
        assert len(context.fetched) == 2
        assert stored(bench) == {}


class TestJson:
    def test_fields_of_every_kind(self, serve: Callable[..., CrawlBench]) -> None:
        items = [
            {"meta": {"ids": [7]}, "name": "One <b>bold</b> &amp; plain", "at": 1_700_000_000_000},
            {"meta": {"ids": ["a b/c"]}, "name": 12, "at": "2024-05-01T10:00:00+08:00"},
        ]
        bench = serve(
            Api({"data": {"list": items}}),
            url_path=None,
            link_template="/post/{id}?t={name}",
            id_path="meta.ids[0]",
            title_path="name",
            published_path="at",
        )
        outcome, _ = bench.run()
        assert counters(outcome, "new", "failed", "without_link") == (2, 0, 0)
        documents = stored(bench)
        assert sorted(documents) == [
            "/post/7?t=One%20%3Cb%3Ebold%3C/b%3E%20%26amp%3B%20plain",
            "/post/a%20b/c?t=12",
        ]
        times = sorted(str(document.published_at) for document in documents.values())
        assert times == ["2023-11-14 22:13:20+00:00", "2024-05-01 02:00:00+00:00"]

    def test_texts_of_the_list_itself(self, serve: Callable[..., CrawlBench]) -> None:
        def page(text: str) -> dict[str, Any]:
            return {
                "data": {
                    "list": [{"link": "/a", "title": "A", "html": f"<p>{text}</p><script>no()</script>"}]
                }
            }

        site = Api(page("First."))
        bench = serve(site, text_path="html", title_path="title")
        outcome, context = bench.run()
        assert set(context.fetched) == {"/api"}
        assert (stored(bench)["/a"].title, stored(bench)["/a"].text) == ("A", "First.")
        outcome, _ = bench.run()
        assert counters(outcome, "new", "unchanged", "stopped_because") == (0, 1, "known_pages")
        site.pages = [page("Second.")]
        outcome, _ = bench.run()
        assert counters(outcome, "changed") == (1,)
        assert stored(bench)["/a"].text == "Second."
        assert version_count(bench) == 2

    def test_a_document_that_is_the_list_and_one_by_id(self, serve: Callable[..., CrawlBench]) -> None:
        site = Api([{"link": "/a"}], {"x1": {"link": "/b"}, "x2": {"link": "/c"}}, [])
        outcome, _ = serve(site, items_path=None).run()
        assert counters(outcome, "new", "stopped_because") == (3, "empty_page")

    def test_jsonp_and_encodings(self, serve: Callable[..., CrawlBench]) -> None:
        body = 'show.list({"data": {"list": [{"link": "/a", "t": "朱镕基"}]}});'.encode("gb18030")
        bench = serve(Api(body), title_path="t", text_path="t", max_pages=1)
        bench.run()
        assert stored(bench)["/a"].title == "朱镕基"

    def test_page_start_and_from_page(self, serve: Callable[..., CrawlBench]) -> None:
        site = Api(listed("/a"), listed("/b"), listed("/c"))
        _, context = serve(site, page_start=1).run(from_page=2)
        assert [request.url[-1] for request in context.asked if "/api" in request.url] == ["2", "3", "4"]

    def test_pinned_items_do_not_make_the_total_end_the_list_too_early(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        pages = [listed("/top", *(f"/{page}-{n}" for n in range(4)), total=9) for page in (1, 2)]
        outcome, _ = serve(Api(*pages), total_path="data.total").run()
        assert counters(outcome, "new", "pages", "stopped_because") == (9, 2, "last_page")

    def test_a_total_that_is_the_number_of_pages_is_ignored(self, serve: Callable[..., CrawlBench]) -> None:
        outcome, _ = serve(
            Api(listed("/a", "/b", total=2), listed("/c", "/d", total=2)), total_path="data.nothing"
        ).run()
        assert outcome.result["new"] == 4
        outcome, _ = serve(
            Api(listed("/e", "/f", "/g", total=2), listed("/h", "/i", total=2)), total_path="data.total"
        ).run()
        assert outcome.result["new"] == 5

    def test_known_pages_and_force(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(Api(listed("/a", "/b"), listed("/c")))
        bench.run()
        outcome, context = bench.run()
        assert (context.fetched, outcome.result["known"]) == (["/api"], 2)
        outcome, context = bench.run(force=True)
        assert counters(outcome, "unchanged", "pages") == (3, 3)

    def test_blocked_in_the_middle(self, serve: Callable[..., CrawlBench]) -> None:
        class Blocks(Api):
            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/c":
                    exchange.send("", status=429, headers={"Retry-After": "9"})
                else:
                    super().respond(exchange)

        outcome, _ = serve(Blocks(listed("/a", "/b"), listed("/c")), total_path="data.total").run()
        assert isinstance(outcome, Blocked)
        assert outcome.checkpoint == Checkpoint(1, {"listed": 2})


class TestConditionalLists:
    def test_an_unchanged_first_page_ends_the_run(self, serve: Callable[..., CrawlBench]) -> None:
        site = Api(listed("/a", "/b"), etags=True)
        bench = serve(site)
        bench.run()
        outcome, context = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.attention is None
        assert outcome.result["stopped_because"] == "not_modified"
        assert (context.fetched, outcome.result["pages"]) == (["/api"], 0)
        outcome, _ = bench.run()
        assert outcome.result["stopped_because"] == "not_modified"
        site.pages[0] = listed("/c", "/a", "/b")
        outcome, _ = bench.run()
        assert outcome.result["new"] == 1

    def test_it_is_read_when_an_article_failed_before(self, serve: Callable[..., CrawlBench]) -> None:
        class Fails(Api):
            broken = True

            def respond(self, exchange: Exchange) -> None:
                if exchange.request.path == "/b" and self.broken:
                    exchange.send("", status=500)
                else:
                    super().respond(exchange)

        site = Fails(listed("/a", "/b"), etags=True)
        bench = serve(site)
        outcome, _ = bench.run()
        assert counters(outcome, "new", "failed") == (1, 1)
        site.broken = False
        outcome, _ = bench.run()
        assert counters(outcome, "new", "known") == (1, 1)

    def test_it_is_read_with_force_with_other_parameters_and_for_recent_articles(
        self, serve: Callable[..., CrawlBench]
    ) -> None:
        bench = serve(Api(listed("/a", "/b"), etags=True))
        bench.run()
        outcome, _ = bench.run(force=True)
        assert outcome.result["unchanged"] == 2
        bench.params = {**bench.params, "title_selector": "h1"}
        outcome, _ = bench.run()
        assert outcome.result["known"] == 2
        bench.params = {**bench.params, "recheck_days": 30}
        bench.run()
        outcome, _ = bench.run()
        assert counters(outcome, "rechecked", "unchanged", "stopped_because") == (2, 2, "empty_page")

    def test_a_stopped_run_leaves_nothing_to_compare_with(self, serve: Callable[..., CrawlBench]) -> None:
        bench = serve(Api(listed("/a", "/b"), etags=True))
        outcome, first = bench.run(stop_when=lambda context: len(context.fetched) >= 2)
        assert isinstance(outcome, Cancelled)
        bench.run(chain=first, checkpoint=Checkpoint(1))
        outcome, _ = bench.run()
        assert outcome.result["stopped_because"] != "not_modified"


HOSTILE = {
    "html": ("<!doctype html><title>Log in</title>", "a web page"),
    "empty": ("", "no JSON"),
    "cut": ('{"data": {"list": [{"link": "/a"}', "no JSON"),
    "deep": ("[" * 200_000, "nested too deeply"),
    "deep-objects": ('{"data":' * 200_000, "nested too deeply"),
    "null": ("null", "items_path 'data.list' leads to nothing"),
    "number": ("17", "leads to nothing"),
    "text-for-list": ('{"data": {"list": "no list"}}', "leads to a str"),
    "missing": ('{"data": {"rows": []}}', "leads to nothing"),
    "binary": (bytes(range(256)), "no JSON"),
    "error": ('{"code": 500, "msg": "busy"}', "leads to nothing"),
}


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_what_is_no_list_fails_names_what_it_is_and_keeps_a_copy(
        self, serve: Callable[..., CrawlBench], name: str
    ) -> None:
        body, said = HOSTILE[name]
        bench = serve(Api(body))
        outcome, context = bench.run()
        assert isinstance(outcome, Failed)
        assert said in outcome.error
        assert f"{bench.base_url}/api?page=1" in outcome.error
        assert outcome.result["kept_page"].removeprefix("kept/") in context.kept
        assert list(context.kept.values()) == [body.encode() if isinstance(body, str) else body]

    def test_items_without_a_usable_link(self, serve: Callable[..., CrawlBench]) -> None:
        links: list[Any] = [
            {}, 5, None, "text", [], {"link": None}, {"link": ["/x"]}, {"link": True}, {"link": "javascript:x()"},
            {"link": "/good"}, {"link": 7}, {"link": " /good "}, {"link": "http://[bad"},
        ]  # fmt: skip
        outcome, _ = serve(Api({"data": {"list": links}}), max_pages=1).run()
        assert isinstance(outcome, Done)
        assert counters(outcome, "new", "without_link") == (2, 10)
        assert outcome.attention == "10 items of the list have no link, 2 have one."
        outcome, _ = serve(Api({"data": {"list": links[:5]}}), max_pages=1).run()
        assert isinstance(outcome, Failed)
        assert "url_path 'link' leads to no URL in any of 5 items" in outcome.error

    def test_huge_numbers_and_odd_times(self, serve: Callable[..., CrawlBench]) -> None:
        times = [
            "9" * 5_000,
            "1e999",
            "-1e999",
            "NaN",
            "-5",
            "0",
            "true",
            "[]",
            '"9999-99-99"',
            '"00000000"',
            "1e300",
        ]
        items = ",".join(f'{{"link": "/{n}", "at": {time}}}' for n, time in enumerate(times))
        bench = serve(
            Api(f'{{"data": {{"list": [{items}], "total": {"9" * 5_000}}}}}'),
            published_path="at",
            total_path="data.total",
        )
        outcome, _ = bench.run()
        assert isinstance(outcome, Done)
        assert outcome.result["new"] == len(times)
        assert {document.published_at for document in stored(bench).values()} == {None}

    def test_a_list_that_never_ends_or_repeats_itself(self, serve: Callable[..., CrawlBench]) -> None:
        class Same(Api):
            def respond(self, exchange: Exchange) -> None:
                exchange.request.query = {}
                super().respond(exchange)

        outcome, _ = serve(Same(listed("/a", "/b"))).run(force=True)
        assert counters(outcome, "new", "stopped_because") == (2, "repeated_page")
        outcome, _ = serve(Api(*(listed(f"/x{n}") for n in range(20))), max_pages=5).run()
        assert counters(outcome, "new", "stopped_because") == (5, "max_pages")
