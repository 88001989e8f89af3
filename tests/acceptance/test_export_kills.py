"""Workers that are killed in the middle of an export: read back, every chunk is there once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.harness import PATIENCE_SEC, Arena, arena_of
from tests.helpers.servers.base import Server
from tests.helpers.servers.index import Index
from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.database import Database
from webqueue.deliveries import switches

# A delivery of a killed worker is free after its lease.
TIMING: Final = {"lease_sec": 2.5, "margin_sec": 0.5, "heartbeat_sec": 0.5, "poll_sec": 0.2}
KILLS: Final = 3
FUNCTION: Final = "tests.acceptance.storing:store"


@pytest.fixture
def arena(database_url: str, instance: Path, open_database: Callable[[], Database]) -> Iterator[Arena]:
    with arena_of(database_url, instance, open_database) as arena:
        arena.world.database.run(
            lambda session: switches.switch(session, None, on=True, by="anna", now=clock.now(session))
        )
        yield arena


def submit(arena: Arena, **kwargs: int) -> str:
    arena.world.add_target("news", params={"function": FUNCTION, "kwargs": kwargs})
    return arena.world.submit("news").id


def wait_for_export(arena: Arena, job_id: str) -> dict[str, Any]:
    def completed() -> dict[str, Any] | None:
        told: dict[str, Any] = (arena.world.job(job_id).result or {}).get("rag_export", {})
        return told if told.get("status") == "completed" else None

    found = wait_until(completed, timeout=PATIENCE_SEC, message="the export to be completed")
    assert found is not None
    return found


def test_between_a_post_and_its_mark(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    index, killed = Index(), 0

    def kill(number: int) -> None:
        """The endpoint has taken the lines; the worker never hears of it."""
        nonlocal killed
        if killed < KILLS and number == 4 + 9 * killed:
            killed += 1
            arena.workers[-1].kill()

    index.before_answer = kill
    with Server(index) as server:
        monkeypatch.setenv("WEBQUEUE_RAG_EXPORT_URL", server.url + "/chunks")
        job_id = submit(arena, count=20, words=300)
        for _ in range(KILLS):
            worker = arena.start_worker(timing=TIMING)
            wait_until(
                lambda worker=worker: worker.ended() is not None,  # type: ignore[misc]
                timeout=PATIENCE_SEC,
                message="the worker to be killed",
            )
            assert arena.world.job(job_id).status == "done"
        arena.start_worker(timing=TIMING)
        told = wait_for_export(arena, job_id)
        assert killed == KILLS
        assert (told["total"], told["exported"], told["failed"]) == (20, 20, 0)
        assert len(index.ids) == len(set(index.ids)) == told["chunks"] > 40
        assert {line["title"] for line in index.taken} == {f"Report {number}" for number in range(20)}
        assert len(index.posts) > len(set(index.posts)) == 20, (
            "nothing was posted twice, so nothing was tried"
        )


class TestFile:
    @pytest.fixture
    def engine_name(self) -> str:
        """A file is a file, whatever the database."""
        return "sqlite"

    def test_while_the_file_is_written(self, arena: Arena, instance: Path) -> None:
        job_id = submit(arena, count=60, words=5000)
        part = instance / "exports" / ".news.jsonl.part"
        path = instance / "exports" / "news.jsonl"
        for _ in range(2):
            worker = arena.start_worker(timing=TIMING)
            wait_until(part.exists, timeout=PATIENCE_SEC, message="the file to be written", every=0.001)
            worker.kill()
            assert not path.exists()
            part.unlink()
        arena.start_worker(timing=TIMING)
        told = wait_for_export(arena, job_id)
        ids = [json.loads(line)["id"] for line in path.read_bytes().splitlines()]
        assert len(ids) == len(set(ids)) == told["chunks"]
        assert (told["exported"], told["file"]) == (60, "exports/news.jsonl")
        assert not part.exists()
