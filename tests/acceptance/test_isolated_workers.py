"""Handlers in processes of their own under workers that are killed, and operators who cannot wait."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.acceptance.handlers import WITNESS_VARIABLE, lives
from tests.acceptance.harness import PATIENCE_SEC, ROOT, Arena, Witness, WorkerProcess, arena_of
from tests.acceptance.worker_program import UNSTOPPED
from tests.helpers.installation import Installation
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import jobs
from webqueue.database import Database
from webqueue.errors import ConflictError
from webqueue.models import AuditEntry


@pytest.fixture
def arena(
    database_url: str, instance: Path, open_database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Arena]:
    monkeypatch.setenv("WEBQUEUE_STOP_GRACE_SEC", "0.5")
    with arena_of(database_url, instance, open_database) as arena:
        yield arena


def add(arena: Arena, code: str, function: str, *, site: str = "example", **kwargs: object) -> None:
    """A target whose function has a process of its own."""
    params = {"function": function, "kwargs": kwargs, "isolated": True}
    arena.world.add_target(code, site=site, params=params)


def force(arena: Arena, job_id: str) -> str:
    return arena.world.database.run(lambda session: jobs.force_stop(session, job_id, by="anna"))


def kill_alone(worker: WorkerProcess, group: int) -> None:
    worker.kill()


def kill_with_its_guardian(worker: WorkerProcess, group: int) -> None:
    """Nobody is left who would end what the handler has started, but whoever finds the worker dead."""
    worker.suspend()
    os.kill(group, signal.SIGKILL)
    worker.kill()


@pytest.mark.parametrize(
    ("engine_name", "kill"),
    [
        ("sqlite", kill_alone),
        pytest.param("postgresql", kill_alone, marks=pytest.mark.postgresql),
        ("sqlite", kill_with_its_guardian),  # what finds the group is no matter of the database
    ],
)
def test_nothing_of_a_killed_worker_runs_when_its_job_goes_on(
    arena: Arena, instance: Path, kill: Callable[[WorkerProcess, int], None]
) -> None:
    gate = instance / "gate"
    add(
        arena, "news", "tests.acceptance.handlers:with_a_process", pages=4, hold_at=3, gate=str(gate),
        stubborn=True,
    )  # fmt: skip
    first = arena.start_worker()
    job_id = arena.world.submit("news").id
    page = arena.witness.wait_for("page", page=3)
    beside = arena.witness.wait_for("beside").page
    group = arena.world.job(job_id).process_group
    assert group is not None
    second = arena.start_worker() if kill is kill_with_its_guardian else None
    assert all(lives(pid) for pid in (page.pid, beside, group))

    kill(first, group)
    wait_until(lambda: not lives(page.pid) and not lives(beside), timeout=PATIENCE_SEC)
    if second is None:
        job = arena.world.job(job_id)
        assert (job.status, job.leased_by) == ("running", first.worker_id), "nobody has found it dead"
        second = arena.start_worker()

    taken_over = wait_until(lambda: arena.witness.lines("start")[1:], timeout=PATIENCE_SEC)[0]
    assert taken_over.page == 2, "it goes on after the last completed page"
    assert arena.witness.lines("still there") == [], "nothing of the first run, when the second one began"
    gate.touch()
    job = arena.wait_for_end(job_id)
    assert (job.status, job.attempt_count, job.result, job.leased_by) == (
        "done",
        1,
        {"pages": 4},
        second.worker_id,
    )
    assert [line.page for line in arena.witness.lines("completed")] == [1, 2, 3, 4]
    assert arena.witness.lines("end", pid=page.pid) == [], "it was killed, and wrote nothing any more"
    wait_until(lambda: not list((instance / "workers").glob("*.group")))


def test_force_stop_kills_what_ignores_everything(arena: Arena, instance: Path) -> None:
    """It holds the interpreter in C, takes no notice of SIGTERM, and so does the process that it has started."""
    file = instance / "pids"
    add(arena, "news", "tests.helpers.functions:spins", file=str(file), page=3)
    arena.world.add_target("next", params={"function": "tests.acceptance.handlers:steps", "kwargs": {}})
    worker = arena.start_worker()
    job_id, next_id = arena.world.submit("news").id, arena.world.submit("next").id
    wait_until(lambda: file.exists() and len(file.read_text().split()) > 1, timeout=PATIENCE_SEC)
    pids = [int(pid) for pid in file.read_text().split()]
    with pytest.raises(ConflictError, match="cancel it first"):
        force(arena, job_id)
    assert arena.world.cancel(job_id) == "cancelling"
    wait_until(
        lambda: [line for line in worker.log if line["event"].endswith("is told to end")],
        timeout=PATIENCE_SEC,
        message="SIGTERM after the grace",
    )
    assert all(lives(pid) for pid in pids)
    assert arena.world.job(job_id).status == "running", "a cancel waits for the handler"

    assert force(arena, job_id) == "cancelling"
    job = arena.wait_for_end(job_id)
    killed = [line["why"] for line in worker.log if line["event"].endswith("is killed")]
    assert killed == ["force stop"], "and not at its time limit, or at the end of its lease"
    assert (job.status, job.error_msg, job.last_completed_page) == ("cancelled", None, 3)
    assert [pid for pid in pids if lives(pid)] == [], "they were gone before the job ended"
    assert force(arena, job_id) == "cancelled", "repeats its answer"
    assert arena.wait_for_end(next_id).status == "done", "the key goes on, and so does the worker"
    assert worker.terminate() == 0
    with arena.world.database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.object_kind == "job")).one()
    assert (entry.by, entry.action, entry.object_name) == ("anna", "forced to stop", job_id)


def test_force_stop_of_a_thread_ends_its_worker_after_the_others_were_handed_back(
    arena: Arena, instance: Path
) -> None:
    gate = instance / "gate"
    arena.world.add_site("beside", "http://beside.example.org/")
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate), stubborn=True)
    arena.add_target("other", site="beside", pages=3, hold_at=2, gate=str(gate))
    worker = arena.start_worker(grace_sec=1.0)
    stubborn, other = arena.world.submit("news").id, arena.world.submit("other").id
    for job_id in (stubborn, other):
        arena.witness.wait_for("page", page=2, job=job_id)
    assert arena.world.cancel(stubborn) == "cancelling"
    assert force(arena, stubborn) == "cancelling"
    assert worker.ended(PATIENCE_SEC) == UNSTOPPED
    forced, handed_back = arena.world.job(stubborn), arena.world.job(other)
    assert (forced.status, forced.error_msg) == ("cancelled", None)
    assert (handed_back.status, handed_back.attempt_count, handed_back.last_completed_page) == (
        "queued",
        0,
        1,
    )
    assert arena.world.key().gap_cause == "a handler that did not stop"
    gate.touch()
    arena.start_worker()
    assert arena.wait_for_end(other).status == "done"
    assert len(arena.witness.lines("start", job=stubborn)) == 1, "a cancelled job never runs again"


def test_serve_ends_with_a_code_that_has_it_started_again(installation: Installation, instance: Path) -> None:
    """The whole way, through the API: Force stop of a thread ends `webqueue serve`, whose service manager starts it again."""
    installation.more |= {"WEBQUEUE_STOP_GRACE_SEC": "1", WITNESS_VARIABLE: str(instance / "witness")}
    installation.more["PYTHONPATH"] = str(ROOT)
    database = installation.database
    world = World(database)
    world.add_site()
    function = "tests.acceptance.handlers:steps"
    kwargs = {"pages": 1, "hold_at": 1, "gate": str(instance / "gate"), "stubborn": True}
    world.add_target("news", params={"function": function, "kwargs": kwargs})
    served = installation.serve()
    job_id = served.run("news")
    witness = Witness(instance / "witness")
    witness.wait_for("page", job=job_id)
    assert served.ask("POST", f"jobs/{job_id}/force-stop").status == 409
    assert served.ask("POST", f"jobs/{job_id}/cancel").job["status"] == "cancelling"
    assert served.ask("POST", f"jobs/{job_id}/force-stop").job["status"] == "cancelling"
    assert served.process.wait(PATIENCE_SEC) == 75
    job, key = world.job(job_id), world.key()
    assert (job.status, job.force_requested_by is not None) == ("cancelled", True)
    assert (key.status, key.gap_cause) == ("idle", "a handler that did not stop")
