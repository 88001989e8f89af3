"""Cancel stops a running crawl, also while a server hangs, and tells the truth (DESIGN P8)."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.helpers.installation import PATIENCE_SEC, Installation, Served, file_of, site_yaml, target_yaml
from tests.helpers.servers.base import Exchange, Server, Site, list_page
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.waiting import wait_until
from webqueue.politeness.evidence import EvidenceLog

NEWS = {"list_url": "news/index_{page}.html", "title_selector": "h1", "content_selector": "div.content"}


class BehindAList(Site):
    """A list whose first link is an article, and whose second hangs in some way."""

    def __init__(self, hanging: str) -> None:
        self.hanging = hanging
        self.hostile = HostileSite()

    def respond(self, exchange: Exchange) -> None:
        if exchange.request.path == "/list":
            exchange.send(list_page([("/ok", "An article"), (self.hanging, "Hangs"), ("/ok?2", "Another")]))
        else:
            self.hostile.answer(exchange)


def cancel_and_watch(installation: Installation, served: Served, job_id: str, server: Server) -> None:
    """Cancel by the API; the job becomes final, and says so from then on."""
    answer = served.ask("POST", f"jobs/{job_id}/cancel")
    assert answer.status == 200
    assert answer.job["status"] == "cancelling", "its handler has not stopped yet"
    wait_until(
        lambda: served.ask("GET", f"jobs/{job_id}").data["status"] == "cancelled",
        timeout=PATIENCE_SEC,
        message="the job to be cancelled",
    )
    assert server.in_flight == 0 or wait_until(lambda: server.in_flight == 0)
    job = installation.job(job_id)
    assert (job.finished_at is not None, job.error_msg) == (True, None)
    again = served.ask("POST", f"jobs/{job_id}/cancel")
    assert (again.status, again.job["status"]) == (200, "cancelled"), "the answer is repeated"


def test_a_running_crawl_stops(installation: Installation, serve: Serve) -> None:
    news = NewsSite(pages=40, per_page=10)
    server = serve(news)
    installation.describe(
        file_of([site_yaml("news", server.url)], [target_yaml("news", "news", NEWS, interval_sec=0.1)])
    )
    served = installation.serve()
    job_id = served.run("news")
    wait_until(lambda: len(server.requests) > 8, timeout=PATIENCE_SEC)
    cancel_and_watch(installation, served, job_id, server)
    # The next job of the key shows that the key is free, and that the cancelled one asks for nothing any more.
    seen = len(server.requests)
    following = served.run("news", from_page=40)
    assert installation.wait_for_end(following).status == "done"
    asked = [request.path for request in server.requests[seen:] if request.path != "/robots.txt"]
    assert asked[0] == "/news/index_40.html"
    stored = {document.last_job_id for document in installation.documents()}
    assert stored == {job_id, following}, "what it had stored is kept"


@pytest.mark.parametrize("hanging", ["/never", "/slow-drip"])
def test_a_crawl_stops_while_the_server_hangs(installation: Installation, serve: Serve, hanging: str) -> None:
    server = serve(BehindAList(hanging))
    params = {"list_url": "list", "max_pages": 1, "title_selector": "h1", "content_selector": "article"}
    installation.describe(
        file_of(
            [site_yaml("hangs", server.url, http={"timeout_sec": 60})],
            [
                target_yaml("hangs", "hangs", params),
                target_yaml("next", "hangs", {**params, "list_url": "/"}),
            ],
        )
    )
    served = installation.serve()
    job_id = served.run("hangs")
    following = served.run("next")
    wait_until(lambda: server.requests_for(hanging), timeout=PATIENCE_SEC, message="the request that hangs")
    assert installation.job(following).status == "queued", "the key is held"
    cancel_and_watch(installation, served, job_id, server)
    assert installation.wait_for_end(following).status == "done", "the key is free"
    assert server.requests_for("/ok?2") == []
    evidence = EvidenceLog(installation.instance)
    asked = [line for day in evidence.days() for line in evidence.read(day) if line.url.endswith(hanging)]
    assert [line.error for line in asked] == ["stopped"], "the request was cut off, and did not time out"


def test_a_cancel_on_the_command_line_reaches_the_process_that_runs_the_job(
    installation: Installation, serve: Serve
) -> None:
    server = serve(BehindAList("/never"))
    params = {"list_url": "/never", "max_pages": 1}
    installation.describe(file_of([site_yaml("hangs", server.url)], [target_yaml("hangs", "hangs", params)]))
    served = installation.serve()
    job_id = served.run("hangs")
    wait_until(lambda: server.requests_for("/never"), timeout=PATIENCE_SEC)
    answer = installation.command("jobs", "cancel", f"#{installation.job(job_id).seq}")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "cancelling\n", "")
    assert installation.wait_for_end(job_id).status == "cancelled"
    again = installation.command("jobs", "cancel", job_id)
    assert (again.returncode, again.stdout) == (0, "cancelled\n")
