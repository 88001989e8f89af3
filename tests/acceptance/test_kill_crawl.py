"""A crawl in the middle of which its process is killed or stopped: the same job goes on, and little is done twice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.acceptance.harness import PATIENCE_SEC, Arena, WorkerProcess, arena_of
from tests.helpers.servers.base import Server
from tests.helpers.servers.news import NewsSite
from tests.helpers.waiting import wait_until
from webqueue.database import Database
from webqueue.models import Document

PAGES, PER_PAGE = 4, 5
PARAMS = {
    "list_url": "news/index_{page}.html",
    "max_pages": 20,
    "item_selector": "ul.list a",
    "title_selector": "h1",
    "content_selector": "div.content",
}


@pytest.fixture
def site() -> NewsSite:
    return NewsSite(pages=PAGES, per_page=PER_PAGE)


@pytest.fixture
def server(site: NewsSite) -> Iterator[Server]:
    # Slow enough that the signal hits the crawl, whatever else the machine has to do.
    with Server(site, delay_sec=0.03) as server:
        yield server


@pytest.fixture
def arena(
    database_url: str, instance: Path, open_database: Callable[[], Database], server: Server
) -> Iterator[Arena]:
    with arena_of(database_url, instance, open_database) as arena:
        arena.world.add_site("harbour", server.url + "/")
        arena.world.add_target("reports", site="harbour", handler="crawl", params=PARAMS)
        yield arena


def articles_requested(server: Server) -> Counter[str]:
    return Counter(path for path in server.paths if "article" in path)


def stop_after(
    arena: Arena, server: Server, worker: WorkerProcess, articles: int, how: signal.Signals
) -> None:
    """Send the signal once so many articles have been asked for."""
    wait_until(lambda: len(articles_requested(server)) >= articles, timeout=PATIENCE_SEC)
    if how is signal.SIGKILL:
        worker.kill()
    else:
        assert worker.terminate() == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_same_crawl_goes_on_and_each_article_is_stored_once(
    arena: Arena, server: Server, site: NewsSite, how: signal.Signals
) -> None:
    job_id = arena.world.submit("reports").id
    interruptions = 2
    completed: list[int] = []
    for turn in range(1, interruptions + 1):
        worker = arena.start_worker()
        # In the middle of page 2, and then of page 3.
        stop_after(arena, server, worker, PER_PAGE * turn + 3, how)
        completed.append(arena.world.job(job_id).last_completed_page)
    arena.start_worker()
    job = arena.wait_for_end(job_id)
    assert job.status == "done", job.error_msg
    assert job.attempt_count == (interruptions if how is signal.SIGKILL else 0)
    assert len(arena.world.jobs()) == 1, "it is the same job"

    requested = articles_requested(server)
    assert set(requested) == {site.path_of(article.number) for article in site.articles}
    twice = [path for path, count in requested.items() if count > 1]
    assert len(twice) <= interruptions, "at most the request in flight is repeated"
    lists = Counter(path for path in server.paths if "index" in path)
    assert completed[0] >= 1
    for page in range(1, completed[-1] + 1):
        times = lists[f"/news/index_{page}.html"]
        # The page in whose middle the first signal came was not completed then, and is fetched again.
        allowed = 2 if page > completed[0] else 1
        assert times <= allowed, f"list page {page} was completed and fetched {times} times"
    with arena.world.database.reading() as session:
        documents = session.scalars(select(Document)).all()
    assert len({document.url for document in documents}) == len(documents) == PAGES * PER_PAGE
    assert {document.version for document in documents} == {1}
