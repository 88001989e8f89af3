"""Crawls of every adapter in the middle of which their process is killed: each article once, by the server's log too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.acceptance.harness import PATIENCE_SEC, Arena, arena_of
from tests.helpers.servers.base import Server, Site
from tests.helpers.servers.feeds import FeedSite, item, rss
from tests.helpers.servers.gkmlpt import GkmlptSite
from tests.helpers.servers.sitemaps import MappedSite
from tests.helpers.servers.web import WebSite, tree
from tests.helpers.waiting import wait_until
from webqueue.database import Database
from webqueue.models import Document, JobStatus


@dataclass(frozen=True)
class Case:
    """A site, the parameters of its target, and what tells its articles from its lists.

    Attributes:
        articles: how many it has.
        unchanged: why a second run stops.
    """

    site: Callable[[], Site]
    params: dict[str, Any]
    is_article: Callable[[str], bool]
    articles: int
    unchanged: str


def _feed() -> Site:
    entries = [item(f"/a{number}", f"Entry {number}") for number in range(24)]
    more = '<atom:link rel="next" href="/older"/>'
    return FeedSite(etags=True, feed=rss(*entries[:12], more=more), older=rss(*entries[12:]))


def _sitemap() -> Site:
    files = {f"/{name}.xml": "" for name in ("one", "two", "three")}
    maps: dict[str, Any] = {
        f"/{name}.xml": [f"/{name}/{n}" for n in range(8)] for name in ("one", "two", "three")
    }
    return MappedSite({"/sitemap.xml": files} | maps, etags=True)


CASES = {
    "feed": Case(_feed, {"feed_url": "/feed"}, lambda path: path.startswith("/a"), 24, "not_modified"),
    "sitemap": Case(_sitemap, {}, lambda path: path.count("/") == 2, 24, "not_modified"),
    "gkmlpt": Case(
        lambda: GkmlptSite({5: 24}, per_page=6),
        {"column_id": 5},
        lambda path: "content" in path,
        24,
        "known_pages",
    ),
    "spider": Case(
        lambda: WebSite(tree(3, 2)),
        {"start_urls": ["/docs/"]},
        lambda path: path.startswith("/docs/"),
        13,
        "no_link_left",
    ),
}


@pytest.fixture(params=CASES)
def adapter(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(adapter: str) -> Iterator[Server]:
    # Slow enough that the signal hits the crawl, whatever else the machine has to do.
    with Server(CASES[adapter].site(), delay_sec=0.03) as server:
        yield server


@pytest.fixture
def arena(
    database_url: str, instance: Path, open_database: Callable[[], Database], server: Server, adapter: str
) -> Iterator[Arena]:
    with arena_of(database_url, instance, open_database) as arena:
        arena.world.add_site("site", server.url + "/", adapter=adapter)
        arena.world.add_target("target", site="site", handler="crawl", params=CASES[adapter].params)
        yield arena


def test_killed_twice_each_article_once(arena: Arena, server: Server, adapter: str) -> None:
    case = CASES[adapter]

    def requested() -> Counter[str]:
        return Counter(path for path in server.paths if case.is_article(path))

    job_id = arena.world.submit("target").id
    for turn in (1, 2):
        worker = arena.start_worker()
        wait_until(lambda so_far=turn: len(requested()) >= 4 * so_far, timeout=PATIENCE_SEC)  # type: ignore[misc]
        worker.kill()
    arena.start_worker()
    job = arena.wait_for_end(job_id)
    assert job.status == JobStatus.DONE, job.error_msg
    assert len(requested()) == case.articles
    assert len([path for path, count in requested().items() if count > 1]) <= 2, (
        "the requests in flight at most"
    )
    with arena.world.database.reading() as session:
        documents = session.scalars(select(Document)).all()
    assert len({document.url for document in documents}) == len(documents) == case.articles
    assert {document.version for document in documents} == {1}

    # A whole run, whose result the one after it goes by.
    for _ in range(2):
        job = arena.wait_for_end(arena.world.submit("target").id)
        assert job.status == JobStatus.DONE, job.error_msg
        assert job.attention is None
    assert job.result is not None
    assert job.result["stopped_because"] == case.unchanged
    assert job.result["new"] == 0
