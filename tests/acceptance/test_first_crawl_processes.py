"""Two servers on one database: one job at a time in a key, and the interval between all requests (DESIGN P1, P11)."""

from __future__ import annotations

from itertools import groupby, pairwise

from tests.conftest import Serve
from tests.helpers.installation import Installation, file_of, site_yaml, target_yaml
from tests.helpers.servers.base import Exchange, Server, Site, list_page

KEYS, TARGETS, ARTICLES = 3, 4, 4
INTERVAL_SEC = 0.03
ARTICLE = "<!doctype html><title>{0}</title><article><h1>{0}</h1><p>The text of {0}.</p></article>"


class Shelf(Site):
    """For each target a list, `/target-1/list`, and articles below it: the path tells who asked."""

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path.endswith("/list"):
            folder = path.removesuffix("list")
            exchange.send(list_page((f"{folder}{number}", f"{number}") for number in range(ARTICLES)))
        else:
            exchange.send(ARTICLE.format(path))


def test_two_servers_share_the_work_and_never_meet_in_a_key(installation: Installation, serve: Serve) -> None:
    # Every answer takes a while, so that two jobs of a key could not miss each other.
    servers = [serve(Shelf(), host=f"127.0.1.{number}", delay_sec=0.02) for number in range(1, KEYS + 1)]
    sites = [site_yaml(f"site-{number}", server.url) for number, server in enumerate(servers)]
    params = {"max_pages": 1, "title_selector": "h1", "content_selector": "article"}
    targets = [
        target_yaml(
            f"target-{key}-{number}",
            f"site-{key}",
            {"list_url": f"target-{number}/list", **params},
            interval_sec=INTERVAL_SEC,
        )
        for key in range(KEYS)
        for number in range(TARGETS)
    ]
    installation.describe(file_of(sites, targets))
    # One thread each: neither can do the work of two keys at once, so both have to take part.
    processes = [installation.serve("--threads", "1") for _ in range(2)]
    ids = [
        processes[number % 2].run(f"target-{key}-{number}")
        for number in range(TARGETS)
        for key in range(KEYS)
    ]
    jobs = [installation.wait_for_end(job_id) for job_id in ids]
    assert {(job.status, job.attempt_count) for job in jobs} == {("done", 0)}
    assert len({job.leased_by for job in jobs}) == 2, "both processes took part"
    assert len(installation.documents()) == KEYS * TARGETS * ARTICLES
    for server in servers:
        assert server.max_concurrent == 1
        assert_no_two_jobs_overlap(server)
        assert_spaced(server)
    assert [process.terminate() for process in processes] == [0, 0]


def assert_no_two_jobs_overlap(server: Server) -> None:
    """The requests of a job follow each other, with none of another job in between, as the server saw them."""
    owners = [request.path.split("/")[1] for request in server.requests if request.path != "/robots.txt"]
    runs = [owner for owner, _ in groupby(owners)]
    assert sorted(runs) == [f"target-{number}" for number in range(TARGETS)]


def assert_spaced(server: Server) -> None:
    """Between two requests lies the interval, whichever job and process they belong to."""
    for request, following in pairwise(server.requests):
        assert request.ended is not None
        gap = following.started - request.ended
        assert gap >= INTERVAL_SEC, f"{gap:.4f} s between {request.path} and {following.path}"
