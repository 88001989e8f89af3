"""Handlers are found through entry points of installed packages; broken ones spoil no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from webqueue.errors import InvalidInputError
from webqueue.handlers import registry
from webqueue.handlers.crawl import CrawlHandler
from webqueue.handlers.crawl.gkmlpt import GkmlptParameters
from webqueue.handlers.protocol import Parameters
from webqueue.handlers.python import PythonHandler
from webqueue.handlers.registry import BrokenHandlerError, Registry

GOOD = {"list_url": "news/index_{page}.html", "item_selector": "ul.list a"}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Registry]:
    """Installs a package that declares a handler, and finds the handlers anew."""

    def installed(kind: str, module: str, source: str) -> Registry:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[webqueue.handlers]\n{kind} = {module}:Handler\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        return Registry(entry_points(group=registry.GROUP))

    return installed


def problems(kind: str, params: Mapping[str, object], adapter: str = "list") -> dict[str, str]:
    with pytest.raises(InvalidInputError) as caught:
        registry.check_params(kind, params, adapter=adapter)
    return {problem.field: problem.message for problem in caught.value.problems}


class TestFinding:
    def test_the_built_in_ones(self) -> None:
        assert {"crawl", "python"} <= set(registry.kinds())
        assert isinstance(registry.get("crawl"), CrawlHandler)
        assert isinstance(registry.get("python"), PythonHandler)
        assert registry.get("crawl") is registry.get("crawl")

    def test_one_of_another_package(self, install: Callable[[str, str, str], Registry]) -> None:
        found = install(
            "ftp",
            "their_handler",
            "from webqueue.handlers.protocol import Parameters\n"
            "class Their(Parameters):\n    depth: int\n"
            "class Handler:\n    kind = 'ftp'\n    parameters = Their\n    def run(self, ctx): return None\n",
        )
        assert found.kinds() == ["command", "crawl", "ftp", "http", "python"]
        assert found.check_params("ftp", {"depth": "3"}, adapter="list").model_dump() == {"depth": 3}

    @pytest.mark.parametrize(
        ("source", "what"),
        [
            ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
            ("def broken(:", "SyntaxError"),
            ("x = 1", "AttributeError"),
            ("class Handler:\n    kind = 'other'", "it calls itself 'other'"),
            ("class Handler:\n    kind = 'bad'\n    parameters = dict\n    run = print", "no Parameters"),
            ("class Handler:\n    kind = 'bad'\n    def __init__(self, x): pass", "TypeError"),
        ],
    )
    def test_a_broken_one_is_named_and_the_others_work(
        self, install: Callable[[str, str, str], Registry], source: str, what: str
    ) -> None:
        found = install("bad", f"broken_{abs(hash(source))}", source)
        assert found.kinds() == ["command", "crawl", "http", "python"]
        with pytest.raises(BrokenHandlerError, match="handler 'bad'") as caught:
            found.get("bad")
        assert what in str(caught.value)
        with pytest.raises(InvalidInputError, match="bad"):
            found.check_params("bad", {}, adapter="list")
        with pytest.raises(InvalidInputError, match=r"command, crawl, http, python, bad \(broken\)"):
            found.get("nothing")

    def test_an_unknown_one(self) -> None:
        with pytest.raises(
            InvalidInputError, match=r"no handler 'crwal'; this version has: command, crawl, http, python"
        ):
            registry.get("crwal")

    def test_two_of_one_kind_the_first_is_used(self) -> None:
        points = [
            EntryPoint("crawl", "webqueue.handlers.crawl:CrawlHandler", registry.GROUP),
            EntryPoint("crawl", "webqueue.handlers.python:PythonHandler", registry.GROUP),
        ]
        assert isinstance(Registry(points).get("crawl"), CrawlHandler)


class TestCrawlParameters:
    def test_defaults(self) -> None:
        params = registry.check_params("crawl", GOOD, adapter="list")
        assert params.model_dump() == {
            "list_url": "news/index_{page}.html",
            "first_list_url": None,
            "page_start": 1,
            "next_selector": None,
            "max_pages": 50,
            "item_selector": "ul.list a",
            "title_selector": None,
            "content_selector": None,
            "ignore_selectors": (),
            "recheck_days": 0,
            "attachments": False,
            "attachment_max_mb": 20,
            "warc": False,
        }

    def test_a_form_sends_blanks_and_texts(self) -> None:
        written = GOOD | {"title_selector": " ", "next_selector": "", "first_list_url": "", "max_pages": "7"}
        params: Parameters = registry.check_params("crawl", written, adapter="list")
        assert params.model_dump(include={"title_selector", "next_selector", "max_pages"}) == {
            "title_selector": None,
            "next_selector": None,
            "max_pages": 7,
        }

    @pytest.mark.parametrize(
        ("wrong", "field", "message"),
        [
            ({"list_url": None}, "params.list_url", "string"),
            ({"list_url": " "}, "params.list_url", "must not be empty"),
            ({"list_url": "ftp://example.org/{page}"}, "params.list_url", "scheme 'ftp'"),
            ({"list_url": "javascript:{page}"}, "params.list_url", "scheme"),
            ({"list_url": "http://[::1/{page}"}, "params.list_url", "no URL"),
            ({"list_url": "news.html"}, "params.list_url", "nothing leads to list page 2"),
            ({"next_selector": "a.next"}, "params.next_selector", "only one of them"),
            ({"first_list_url": "n_{page}.html"}, "params.first_list_url", "list page 1 alone"),
            ({"item_selector": ""}, "params.item_selector", "must not be empty"),
            ({"item_selector": "ul > > a["}, "params.item_selector", "no CSS selector"),
            ({"item_selector": "a::text"}, "params.item_selector", "pseudo-elements"),
            ({"item_selector": "a" * 2_001}, "params.item_selector", "longer than"),
            ({"title_selector": "h1,"}, "params.title_selector", "no CSS selector"),
            ({"content_selector": "((("}, "params.content_selector", "no CSS selector"),
            ({"ignore_selectors": ["p", "]"]}, "params.ignore_selectors.1", "no CSS selector"),
            ({"ignore_selectors": "p"}, "params.ignore_selectors", "tuple"),
            ({"max_pages": 0}, "params.max_pages", "greater than or equal to 1"),
            ({"max_pages": "many"}, "params.max_pages", "integer"),
            ({"page_start": -1}, "params.page_start", "greater than or equal to 0"),
            ({"recheck_days": -1}, "params.recheck_days", "greater than or equal to 0"),
            ({"attachment_max_mb": 0}, "params.attachment_max_mb", "greater than or equal to 1"),
            ({"item_selektor": "a"}, "params.item_selektor", "check its spelling"),
        ],
    )
    def test_each_field_wrong_once(self, wrong: dict[str, object], field: str, message: str) -> None:
        found = problems("crawl", GOOD | wrong)
        assert list(found) == [field]
        assert message in found[field]

    def test_every_wrong_field_is_named_at_once(self) -> None:
        assert set(problems("crawl", {"max_pages": 0, "title_selector": "("})) == {
            "params.list_url",
            "params.item_selector",
            "params.max_pages",
            "params.title_selector",
        }

    def test_an_unknown_adapter(self) -> None:
        assert (
            "this version has: list, feed, sitemap, json, gkmlpt, spider"
            in problems("crawl", GOOD, "lists")["adapter"]
        )

    @pytest.mark.parametrize(
        "good", [{"list_url": "n.html", "max_pages": 1}, {"list_url": "n", "next_selector": "a"}]
    )
    def test_what_leads_to_the_next_page_is_not_always_needed(self, good: dict[str, object]) -> None:
        registry.check_params("crawl", GOOD | good, adapter="list")


GOOD_OF: dict[str, dict[str, object]] = {
    "feed": {"feed_url": "rss.xml"},
    "sitemap": {},
    "json": {"list_url": "api?p={page}", "url_path": "link"},
    "gkmlpt": {"column_id": 5},
    "spider": {},
}


class TestParametersOfAdapters:
    @pytest.mark.parametrize("adapter", GOOD_OF)
    def test_what_is_needed_is_enough_and_every_field_is_described(self, adapter: str) -> None:
        params = registry.check_params("crawl", GOOD_OF[adapter], adapter=adapter)
        fields = type(params).model_fields
        assert [name for name, field in fields.items() if not field.description] == []
        # The adapter's own fields come first in the form.
        assert list(fields).index("title_selector") > list(fields).index("max_pages")
        assert list(fields)[-1] == "warc"

    @pytest.mark.parametrize(
        ("adapter", "wrong", "field", "message"),
        [
            ("feed", {"feed_url": ""}, "params.feed_url", "must not be empty"),
            ("feed", {"feed_url": "feed:x"}, "params.feed_url", "scheme 'feed'"),
            ("feed", {"fetch_articles": False, "title_selector": "h1"}, "params.title_selector", "in a feed"),
            ("sitemap", {"sitemap_url": "ftp://x"}, "params.sitemap_url", "scheme 'ftp'"),
            ("sitemap", {"include": ["news/*"]}, "params.include.0", "begins with neither"),
            ("sitemap", {"max_files": 0}, "params.max_files", "greater than or equal to 1"),
            ("json", {"list_url": "api"}, "params.list_url", "list page 2"),
            ("json", {"url_path": ""}, "params.url_path", "set one of them"),
            ("json", {"link_template": "post_{id}"}, "params.url_path", "set one of them"),
            ("json", {"url_path": "a..b"}, "params.url_path", "is no path"),
            ("json", {"items_path": "data[x]"}, "params.items_path", "is no path"),
            ("json", {"items_path": "data["}, "params.items_path", "is no path"),
            ("json", {"total_path": "x" * 501}, "params.total_path", "longer than"),
            ("json", {"url_path": None, "link_template": "post"}, "params.link_template", "has no {field}"),
            (
                "json",
                {"url_path": None, "link_template": "post_{a..b}"},
                "params.link_template",
                "is no path",
            ),
            ("gkmlpt", {"column_id": None}, "params.column_id", "is required"),
            ("gkmlpt", {"column_id": "news"}, "params.column_id", "is no number"),
            ("gkmlpt", {"column_id": None, "list_url": "gkmlpt/index"}, "params.list_url", "names no column"),
            ("gkmlpt", {"list_url": "gkmlpt/index#5"}, "params.list_url", "once more"),
            ("spider", {"start_urls": ["mailto:x"]}, "params.start_urls.0", "scheme 'mailto'"),
            ("spider", {"max_depth": -1}, "params.max_depth", "greater than or equal to 0"),
            ("spider", {"list_url": "x"}, "params.list_url", "check its spelling"),
        ],
    )
    def test_each_field_wrong_once(
        self, adapter: str, wrong: dict[str, object], field: str, message: str
    ) -> None:
        found = problems("crawl", GOOD_OF[adapter] | wrong, adapter)
        assert list(found) == [field]
        assert message in found[field]

    @pytest.mark.parametrize(
        ("written", "url"),
        [
            ({"column_id": "5"}, "gkmlpt/api/all/5?page={page}"),
            ({"column_id": 0, "site_id": 2}, "gkmlpt/api/all/0?page={page}&sid=2"),
            ({"list_url": "gkmlpt/index#7", "site_id": 2}, "gkmlpt/api/all/7?page={page}&sid=2"),
            (
                {"list_url": "http://www.example.gov.cn/office/gkmlpt/index#7"},
                "http://www.example.gov.cn/office/gkmlpt/api/all/7?page={page}",
            ),
            ({"list_url": "/gkmlpt/api/all/9?sid=3&page={page}"}, "/gkmlpt/api/all/9?sid=3&page={page}"),
        ],
    )
    def test_the_list_of_a_column(self, written: dict[str, object], url: str) -> None:
        params = registry.check_params("crawl", written, adapter="gkmlpt")
        assert isinstance(params, GkmlptParameters)
        assert params.as_json().list_url == url
