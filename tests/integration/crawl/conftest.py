"""Sites of the tests' own, each with a bench that crawls it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from tests.helpers.crawling import CrawlBench, add_target
from tests.helpers.servers.base import Server, Site
from tests.helpers.servers.news import NewsSite
from webqueue.database import Database

LIST = {"list_url": "/news/index_{page}.html", "item_selector": "ul.list a"}


class BenchFor(Protocol):
    """Starts a server for a site; the fixture `bench_for` stops it at the end of the test."""

    def __call__(
        self, site: Site, params: Mapping[str, Any], *, adapter: str = "list", path: str = ""
    ) -> CrawlBench:
        """A bench with these parameters, whose site begins at `path`."""


@pytest.fixture
def bench_for(database: Database) -> Iterator[BenchFor]:
    """Serves a site and makes a bench for it."""
    add_target(database)
    with ExitStack() as servers:

        def start(
            site: Site, params: Mapping[str, Any], *, adapter: str = "list", path: str = ""
        ) -> CrawlBench:
            server = servers.enter_context(Server(site))
            return CrawlBench(database, f"{server.url}{path}", params, adapter=adapter)

        yield start


@pytest.fixture
def news() -> NewsSite:
    """Three list pages of five articles; number 15 is the newest."""
    return NewsSite(pages=3, per_page=5)


@pytest.fixture
def server(news: NewsSite) -> Iterator[Server]:
    """A server of the news."""
    with Server(news) as server:
        yield server


@pytest.fixture
def bench(database: Database, server: Server) -> CrawlBench:
    """A bench that crawls the news."""
    add_target(database)
    return CrawlBench(database, server.url, LIST)
