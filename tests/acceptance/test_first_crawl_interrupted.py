"""A crawl that is killed, stopped, and blocked in the middle goes on where it was (DESIGN P2, P9, P11, section 6)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.helpers.documentation import documentation
from tests.helpers.installation import PATIENCE_SEC, Installation, Served, file_of, site_yaml, target_yaml
from tests.helpers.servers.base import Request, Server
from tests.helpers.servers.blocking import BlockingSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.servers.static import LIST, StaticSite
from tests.helpers.waiting import wait_until
from webqueue.queries import JobRow

PAGES, PER_PAGE = 5, 12
INTERVAL_SEC = 0.05


@pytest.fixture
def site(tmp_path: Path) -> StaticSite:
    """Sixty pages of a manual, twelve on each list page."""
    return StaticSite(documentation("python3.11-doc"), list_size=PER_PAGE, limit=PAGES * PER_PAGE)


@pytest.fixture
def server(serve: Serve, site: StaticSite, installation: Installation) -> Server:
    server = serve(site)
    params = {
        "list_url": "list/index_{page}.html",
        "title_selector": "h1",
        "content_selector": "div.body",
    }
    target = target_yaml("manual", "manual", params, interval_sec=INTERVAL_SEC)
    installation.describe(file_of([site_yaml("manual", server.url)], [target]))
    return server


def start_and_go_to_the_middle_of_page_three(
    installation: Installation, server: Server
) -> tuple[Served, str]:
    """A crawl some articles into its third list page; the process, and the job."""
    served = installation.serve()
    job_id = served.run("manual")

    def in_the_middle() -> bool:
        paths = server.paths
        third = f"{LIST}3.html"
        return third in paths and len(paths) - paths.index(third) > 5

    wait_until(in_the_middle, timeout=PATIENCE_SEC, message="the middle of the third list page")
    return served, job_id


def assert_the_same_job_went_on(
    installation: Installation, server: Server, site: StaticSite, job: JobRow, *, before: list[Request]
) -> None:
    """Nothing is lost, nothing is stored twice, and nothing of what was committed is asked for again."""
    assert job.status == "done"
    assert [row.id for row in installation.jobs()] == [job.id], "it is the same job, and the only one"
    documents = installation.documents()
    assert sorted(document.url for document in documents) == sorted(
        server.url + site.url_path(file) for file in site.files
    )
    assert {document.version for document in documents} == {1}

    asked = Counter(request.path for request in server.requests)
    assert [asked[f"{LIST}{number}.html"] for number in (1, 2)] == [1, 1], "their checkpoints were committed"
    assert [asked[f"{LIST}{number}.html"] for number in (4, 5, 6)] == [1, 1, 1]
    repeated = {path for path, count in asked.items() if count > 1 and not path.startswith(LIST)}
    in_flight = before[-1].path
    assert repeated <= {in_flight, "/robots.txt"}, "at most the request in flight is repeated"
    assert server.max_concurrent == 1
    assert smallest_gap(server) >= INTERVAL_SEC, "the interval holds over the restart, too (P11)"


def smallest_gap(server: Server) -> float:
    """Seconds between the end of a request and the start of the next, where they were the shortest."""
    requests = server.requests
    return min(
        following.started - request.ended
        for request, following in pairwise(requests)
        if request.ended is not None
    )


def test_after_a_kill_in_the_middle_the_same_job_finishes(
    installation: Installation, server: Server, site: StaticSite
) -> None:
    served, job_id = start_and_go_to_the_middle_of_page_three(installation, server)
    served.kill()
    before = server.requests
    assert installation.job(job_id).status == "running", "nobody was there to write anything else"
    assert installation.job(job_id).last_completed_page == 2
    assert len(installation.documents()) > 2 * PER_PAGE, "the third page was half done"

    installation.serve()
    job = installation.wait_for_end(job_id)
    assert job.attempt_count == 1
    assert job.error_msg == "restart_during_run (recovery attempt 1/3)"
    assert_the_same_job_went_on(installation, server, site, job, before=before)


def test_after_a_stop_in_the_middle_the_same_job_finishes_and_it_cost_no_attempt(
    installation: Installation, server: Server, site: StaticSite
) -> None:
    served, job_id = start_and_go_to_the_middle_of_page_three(installation, server)
    assert served.terminate() == 0
    before = server.requests
    handed_back = installation.job(job_id)
    assert (handed_back.status, handed_back.attempt_count, handed_back.last_completed_page) == (
        "queued",
        0,
        2,
    )

    installation.serve()
    job = installation.wait_for_end(job_id)
    assert (job.attempt_count, job.error_msg) == (0, None)
    assert_the_same_job_went_on(installation, server, site, job, before=before)


def test_a_block_half_way_cools_the_key_down_and_the_retry_goes_on_from_the_checkpoint(
    installation: Installation, serve: Serve
) -> None:
    rest_sec = 4
    news = NewsSite(pages=3, per_page=3)
    blocking = BlockingSite(news, after=7, retry_after=rest_sec, for_seconds=rest_sec - 1)
    server = serve(blocking)
    params = {"list_url": "news/index_{page}.html", "title_selector": "h1", "content_selector": "div.content"}
    installation.describe(
        file_of([site_yaml("news", server.url, cooldown_sec=1)], [target_yaml("news", "news", params)])
    )
    served = installation.serve()
    first = installation.wait_for_end(served.run("news"))

    assert first.status == "failed"
    retry = installation.jobs()[-1]
    assert first.error_msg == f"cooldown_abort; auto_retry_job={retry.id}"
    assert (retry.source, retry.cooldown_retry_count, retry.root_id) == ("retry", 1, first.id)
    assert first.last_completed_page == 1
    key = served.ask("GET", "rate-keys/127.0.0.1").data
    assert (key["state"], key["consecutive_blocks"]) == ("cooling_down", 1)
    assert key["not_before"]["kind"] == "cooldown"
    assert "429" in key["not_before"]["cause"]

    last = installation.wait_for_end(retry.id)
    assert (last.status, last.error_msg) == ("done", None)
    assert [job.id for job in installation.jobs()] == [first.id, last.id], "one retry was enough"

    assert len(blocking.refused) == 1, "after the refusal nothing knocked on the door"
    refused = blocking.refused[0]
    after = [request for request in server.requests if request.number > refused.number]
    assert refused.ended is not None
    assert after[0].started - refused.ended >= rest_sec, "the server asked for this rest"
    assert first.finished_at is not None
    assert last.started_at is not None
    assert last.started_at - first.finished_at >= timedelta(seconds=rest_sec)

    answered = Counter(request.path for request in server.requests if request.status == 200)
    assert answered["/news/index_1.html"] == 1, "its checkpoint was committed"
    wanted = sorted(server.url + news.path_of(article.number) for article in news.articles)
    assert sorted(document.url for document in installation.documents()) == wanted
    assert {document.version for document in installation.documents()} == {1}
    assert {answered[news.path_of(article.number)] for article in news.articles} == {1}
