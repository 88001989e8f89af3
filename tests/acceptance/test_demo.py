"""`webqueue demo`: what it promises is seen within two minutes, offline, and again after a restart."""

from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.helpers.installation import PATIENCE_SEC, Installation, Served
from tests.helpers.waiting import wait_until
from webqueue import queries
from webqueue.queries import JobFilter, JobRow

SEEN_WITHIN_SEC = 120
ENDED = {"done", "failed", "cancelled", "skipped"}


@dataclass
class Browser:
    """As much of one as the demo's visitor needs: a cookie."""

    url: str
    cookie: str = ""

    def get(self, path: str) -> tuple[int, str]:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_SEC)
        try:
            connection.request("GET", path, headers={"Cookie": self.cookie} if self.cookie else {})
            answer = connection.getresponse()
            cookie = answer.getheader("Set-Cookie")
            if cookie:
                self.cookie = cookie.partition(";")[0]
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@dataclass
class Demo:
    """The demo's own instance within the instance folder, seen through its database and its pages."""

    inside: Installation
    browser: Browser
    seen: dict[str, str] = field(default_factory=dict)

    def jobs(self, **filters: Any) -> list[JobRow]:
        with self.inside.database.reading() as session:
            return list(queries.list_jobs(session, JobFilter(**filters), limit=200).items)

    def look(self) -> bool:
        """Look once for everything that is still missing; whether all of it was seen."""
        sights: dict[str, Callable[[], str | None]] = {
            "a queued job behind another of its key": self.queueing,
            "two sites sharing a key": self.sharing,
            "a cooldown": self.cooldown,
            "a retry from the checkpoint": self.retry,
            "a done job to look at": self.attention,
        }
        for name, sight in sights.items():
            if name not in self.seen and (found := sight()):
                self.seen[name] = found
        return len(self.seen) == len(sights)

    def queueing(self) -> str | None:
        running = {job.rate_key: job for job in self.jobs(status="running")}
        for job in self.jobs(status="queued"):
            ahead = running.get(job.rate_key)
            if ahead is not None and job.site == ahead.site:
                status, page = self.browser.get(f"/jobs/{job.id}")
                if status == 200 and f"#{ahead.seq}" in page:
                    return f"#{job.seq} {job.target} behind #{ahead.seq} {ahead.target}"
        return None

    def sharing(self) -> str | None:
        ministries = {job.site: job for job in self.jobs(rate_key="ministries") if job.status not in ENDED}
        states = sorted(job.status for job in ministries.values())
        if set(ministries) == {"rivers", "forests"} and states == ["queued", "running"]:
            page = self.browser.get("/rate-keys/ministries")[1]
            assert "rivers" in page
            assert "forests" in page
            return str({site: f"#{job.seq} {job.status}" for site, job in ministries.items()})
        return None

    def cooldown(self) -> str | None:
        with self.inside.database.reading() as session:
            key = queries.get_rate_key(session, "127.0.0.5") if self.jobs(site="harbour") else None
        if key is None or key.state != "cooling_down" or key.not_before is None:
            return None
        page = self.browser.get("/rate-keys/127.0.0.5")[1]
        return key.not_before.cause if "429" in page else None

    def retry(self) -> str | None:
        for job in self.jobs(target="harbour_notices"):
            if job.source == "retry" and job.status == "done":
                blocked = self.inside.job(str(job.retry_of))
                asked = self.list_pages(job.id)
                assert blocked.last_completed_page >= 1
                assert asked[0] == blocked.last_completed_page + 1, "it goes on behind the checkpoint"
                assert str(blocked.error_msg) == f"cooldown_abort; auto_retry_job={job.id}"
                return f"#{job.seq} of #{blocked.seq}, list pages {asked}"
        return None

    def attention(self) -> str | None:
        for job in self.jobs(target="museum_notices", attention=True):
            assert job.status == "done"
            page = self.browser.get("/")[1]
            assert str(job.attention) in page, "the overview says why"
            assert "Look at it" in self.browser.get(f"/jobs/{job.id}")[1]
            return job.attention
        return None

    def list_pages(self, job_id: str) -> list[int]:
        """The list pages that a job asked for, by the evidence."""
        lines = [
            json.loads(line)
            for file in sorted((self.inside.instance / "requests").glob("*.jsonl"))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        urls = [line["url"] for line in lines if line["job"] == job_id]
        return [int(found[1]) for url in urls if (found := re.search(r"/index_(\d+)\.html$", url))]


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")


def login_link(served: Served) -> str:
    """The path of the link that the demo printed."""

    def printed() -> str:
        found = re.search(r"http://\S+(/login/\S+)\n", served.output.read_text(encoding="utf-8"))
        return found[1] if found else ""

    return wait_until(printed, timeout=PATIENCE_SEC, message="the login link")


def log_in(served: Served) -> Browser:
    browser = Browser(served.url)
    assert browser.get("/")[0] == 303, "nothing is open without login"
    assert browser.get(login_link(served))[0] == 303
    status, page = browser.get("/")
    assert (status, "gazette" in page) == (200, True)
    assert "name no contact" not in page, "its servers are its own"
    return browser


@pytest.mark.slow
def test_the_demo_shows_what_it_promises_and_is_kept_until_fresh(tmp_path: Path) -> None:
    with (
        Installation(tmp_path / "instance") as installed,
        Installation(tmp_path / "instance" / "demo") as inside,
    ):
        first = installed.serve(role="demo")
        demo = Demo(inside, log_in(first))
        assert Browser(first.url).get(login_link(first))[0] == 410, "the link works once"
        wait_until(demo.look, timeout=SEEN_WITHIN_SEC, every=0.2, message=f"all sights; seen {demo.seen}")
        again = installed.command("demo", "--port", "0", "--fresh")
        assert again.returncode != 0
        assert f"A demo runs in {inside.instance} already. Stop it first" in again.stderr
        assert demo.jobs(), "its history is where it was"
        (registry, *_) = demo.jobs(target="registry_notices")
        assert registry.status == "failed", "a list without a link is not green"

        (sites,) = children_of(first.process.pid)
        assert first.terminate() == 0
        wait_until(lambda: not is_alive(sites), message="the sites' process to end with the demo")
        assert not (installed.instance / "webqueue.sqlite3").exists(), "it keeps to its own folder"
        before = {job.id for job in inside.jobs()}
        documents = len(inside.documents())

        second = installed.serve(role="demo")
        log_in(second)
        assert before <= {job.id for job in inside.jobs()}, "what it did is kept"
        assert len(inside.documents()) >= documents > 0
        (sites,) = children_of(second.process.pid)
        second.kill()
        wait_until(lambda: not is_alive(sites), message="the sites' process to end with a killed demo")

    with (
        Installation(tmp_path / "instance") as installed,
        Installation(tmp_path / "instance" / "demo") as inside,
    ):
        third = installed.serve("--fresh", role="demo")
        log_in(third)
        assert not before & {job.id for job in inside.jobs()}, "everything is forgotten"
        assert third.terminate() == 0
