"""Programs as targets, as docs/how-to/commands.md has them: a script, Scrapy, wget; and a function of govcrawler's kind."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import select

from tests.acceptance.harness import PATIENCE_SEC, ROOT, Arena, arena_of
from tests.helpers.requirements import lacking
from tests.helpers.servers.base import Exchange, Server, Site
from tests.helpers.servers.blocking import BlockingSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.servers.web import WebSite
from tests.helpers.waiting import wait_until
from webqueue import jobs
from webqueue.database import Database
from webqueue.models import Document, Job, RateGroupRow

FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOW_TO: Final = ROOT / "docs" / "how-to" / "commands.md"


@pytest.fixture
def engine_name() -> str:
    """What reaches the database here is tried on both elsewhere."""
    return "sqlite"


@pytest.fixture
def arena(
    database_url: str,
    instance: Path,
    open_database: Callable[[], Database],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Arena]:
    monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")
    with arena_of(database_url, instance, open_database) as arena:
        yield arena


class NumberedPages(Site):
    """Pages `/north?page=1` and so on."""

    def respond(self, exchange: Exchange) -> None:
        exchange.send(f"page {exchange.request.query['page'][0]}")


def documented(language: str, mark: str) -> str:
    """The program of the documentation that has `mark` in it."""
    blocks = [text for kind, text in FENCE.findall(HOW_TO.read_text(encoding="utf-8")) if kind == language]
    (found,) = [str(text) for text in blocks if mark in text]
    return found


def needed(program: str) -> None:
    if shutil.which(program) is None:
        lacking(f"This test runs {program} (Debian: apt-get install {program}).")


def add(
    arena: Arena, server: Server, *, interval_sec: float = 0.0, handler: str = "command", **params: Any
) -> None:
    arena.world.add_site("harbour", server.url + "/", cooldown_sec=1)
    with arena.world.database.transaction() as session:
        # Blocks make the interval no longer: there is no time for that here.
        session.add(
            RateGroupRow(key=server.host, adapter="list", host_suffix=server.host, grow_interval=False)
        )
    arena.world.add_target(
        "reports", site="harbour", handler=handler, interval_sec=interval_sec, params=params
    )


def wait_for_page(arena: Arena, job_id: str, page: int) -> Job:
    """Wait until the job has completed a page, and shown how far it is."""

    def reached() -> Job | None:
        job = arena.world.job(job_id)
        assert job.finished_at is None, f"{job.status}: {job.error_msg}"
        return job if job.last_completed_page >= page and (job.progress_current or 0) >= page else None

    found = wait_until(reached, timeout=PATIENCE_SEC, message=f"page {page} to be completed")
    assert found is not None
    return found


def processes_of(job_id: str) -> list[str]:
    """The command lines of the processes that a job has started, by their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"WEBQUEUE_JOB={job_id}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def kill_in_the_middle(arena: Arena, job_id: str, page: int = 1) -> Job:
    """SIGKILL the worker once a page is completed; nothing that it started outlives it. The job as it stood."""
    (worker,) = arena.workers
    wait_for_page(arena, job_id, page) if page else wait_until(
        lambda: len(processes_of(job_id)) > 1, timeout=PATIENCE_SEC, message="the program to run"
    )
    assert processes_of(job_id)
    worker.kill()
    wait_until(lambda: not processes_of(job_id), timeout=5, message="the group to be gone")
    return arena.world.job(job_id)


def assert_blocked_and_retried(arena: Arena, job_id: str) -> Job:
    """The job was blocked; its retry, which goes on from its last page."""
    blocked = arena.wait_for_end(job_id)
    assert blocked.status == "failed"
    assert blocked.error_msg.endswith(f"cooldown_abort; auto_retry_job={arena.world.jobs()[1].id}")
    retry: Job = arena.world.jobs()[1]
    assert retry.source == "retry"
    assert blocked.result["auto_retry"]["resume_from_page"] == blocked.last_completed_page
    key = arena.world.key("127.0.0.1")
    assert key.cooldown_until is not None
    assert key.cooldown_until > blocked.finished_at
    return retry


def test_a_script_goes_on_after_a_kill_and_after_a_block(arena: Arena, tmp_path: Path) -> None:
    needed("curl")
    site = BlockingSite(NumberedPages())
    script = tmp_path / "tenders.sh"
    script.write_text(documented("sh", "curl"))
    script.chmod(0o700)
    with Server(site) as server:
        add(arena, server, interval_sec=0.05, argv=[str(script), "north"], cwd=str(tmp_path))
        job_id = arena.world.submit("reports").id
        arena.start_worker()
        stood = kill_in_the_middle(arena, job_id)
        before = Counter(request.target for request in server.requests)
        arena.start_worker()
        wait_for_page(arena, job_id, 20)
        site.block()
        retry = assert_blocked_and_retried(arena, job_id)
        blocked = arena.world.job(job_id)
        assert blocked.attempt_count == 1
        key = arena.world.key("127.0.0.1")
        assert key.cooldown_until is not None
        assert blocked.finished_at is not None
        # As the script said: ::blocked … retry_after=120
        assert (key.cooldown_until - blocked.finished_at).total_seconds() == pytest.approx(120, abs=5)
        refused = len(site.refused)
        site.unblock()
        arena.world.database.run(lambda session: jobs.lift_cooldown(session, "127.0.0.1", by="anna"))
        job = arena.wait_for_end(retry.id)
        assert (job.status, job.last_completed_page) == ("done", 40), job.error_msg
        assert {path.name for path in tmp_path.glob("page-*.html")} == {
            f"page-{n}.html" for n in range(1, 41)
        }
        # Of what was asked for before the kill only what followed the last checkpoint was asked for again.
        again = [
            target
            for target, count in before.items()
            if Counter(r.target for r in server.requests)[target] > count
        ]
        assert all(int(target.rpartition("=")[2]) > stood.last_completed_page for target in again)
        assert refused == 1


class BlockingAt(BlockingSite):
    """Blocks as soon as somebody asks for `path`, however fast or slow whoever asks is."""

    path = ""

    def answer(self, exchange: Exchange) -> None:
        if exchange.request.path == self.path:
            self.path = ""
            self.block()
        super().answer(exchange)


def test_scrapy_goes_on_after_a_kill_and_after_a_block(arena: Arena, tmp_path: Path) -> None:
    news = NewsSite(pages=12, per_page=3)
    site = BlockingAt(news, retry_after=600)
    spider = tmp_path / "harbour.py"
    spider.write_text(documented("python", "HarbourSpider"))
    with Server(site) as server:
        add(arena, server, interval_sec=0.3, argv=["scrapy", "runspider", str(spider)])
        job_id = arena.world.submit("reports").id
        arena.start_worker()
        stood = kill_in_the_middle(arena, job_id)
        asked = server.paths.count(f"/news/index_{stood.last_completed_page}.html")
        site.path = f"/news/index_{stood.last_completed_page + 3}.html"
        arena.start_worker()
        retry = assert_blocked_and_retried(arena, job_id)
        site.unblock()
        arena.world.database.run(lambda session: jobs.lift_cooldown(session, "127.0.0.1", by="anna"))
        job = arena.wait_for_end(retry.id)
        assert (job.status, job.last_completed_page) == ("done", 12), job.error_msg
        assert server.paths.count(f"/news/index_{stood.last_completed_page}.html") == asked
        with arena.world.database.reading() as session:
            documents = session.scalars(select(Document)).all()
        assert sorted(document.title for document in documents) == sorted(one.title for one in news.articles)
        assert {document.version for document in documents} == {1}


def test_wget_s_files_arrive_also_after_a_kill(arena: Arena, tmp_path: Path) -> None:
    needed("wget")
    pages = {f"/manual/{number}.html": [f"/manual/{number + 1}.html"] for number in range(7)}
    pages["/manual/"] = ["/manual/0.html"]
    pages["/manual/7.html"] = []
    with Server(WebSite(pages), delay_sec=0.1) as server:
        argv = ["wget", "--no-verbose", "--recursive", "--level=20", "--no-parent", "--no-host-directories"]
        add(arena, server, argv=[*argv, server.url + "/manual/"], cwd=str(tmp_path))
        job_id = arena.world.submit("reports").id
        arena.start_worker()
        kill_in_the_middle(arena, job_id, page=0)
        arena.start_worker()
        job = arena.wait_for_end(job_id)
        assert (job.status, job.attempt_count) == ("done", 1), job.error_msg
        assert {path.name for path in (tmp_path / "manual").iterdir()} == {
            "index.html",
            *(f"{number}.html" for number in range(8)),
        }


def test_a_function_of_govcrawler_s_kind_goes_on_after_a_block(arena: Arena, tmp_path: Path) -> None:
    news = NewsSite(pages=6, per_page=3)
    with Server(BlockingSite(news, after=3, for_seconds=0.5)) as server:
        kwargs = {"base_url": server.url + "/", "folder": str(tmp_path)}
        function = "tests.acceptance.govcrawler_style:crawl_target"
        add(arena, server, handler="python", function=function, kwargs=kwargs)
        job_id = arena.world.submit("reports").id
        arena.start_worker()
        retry = assert_blocked_and_retried(arena, job_id)
        job = arena.wait_for_end(retry.id)
        assert job.status == "done", job.error_msg
        assert job.result is not None
        assert job.result["stop_on_duplicate"] is True
        titles = [path.read_text().splitlines() for path in tmp_path.glob("reports-*.txt")]
        assert sorted(title for page in titles for title in page) == sorted(
            article.title for article in news.articles
        )
        # The three pages before the block were asked for once.
        assert all(server.paths.count(f"/news/index_{page}.html") == 1 for page in (1, 2, 3))
        assert json.dumps(job.result)
