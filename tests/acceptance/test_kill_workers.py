"""Worker processes that are killed, stopped and suspended in the middle of a job (DESIGN P1, P2, P4, P5, P9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.harness import PATIENCE_SEC, Arena, arena_of
from tests.acceptance.worker_program import UNSTOPPED
from tests.helpers.waiting import wait_until
from webqueue.database import Database

# Long enough that a heartbeat is in time on a machine with other things to do.
SHORT_LEASE = {"lease_sec": 4.0, "margin_sec": 1.0, "heartbeat_sec": 0.5}


@pytest.fixture
def arena(database_url: str, instance: Path, open_database: Callable[[], Database]) -> Iterator[Arena]:
    with arena_of(database_url, instance, open_database) as arena:
        yield arena


@pytest.fixture
def gate(instance: Path) -> Path:
    return instance / "gate"


def test_a_killed_workers_job_is_taken_over_at_once_from_its_checkpoint(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=5, hold_at=3, gate=str(gate))
    first = arena.start_worker()
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=3)
    second = arena.start_worker()
    first.kill()
    # Its lease has nearly a minute left: what tells is the lock that the kernel has given up.
    taken_over = arena.witness.wait_for("start", pid=second.pid)
    assert taken_over.page == 2, "it goes on after the last completed page"
    gate.touch()
    job = arena.wait_for_end(job_id)
    assert (job.status, job.attempt_count, job.result) == ("done", 1, {"pages": 5})
    assert job.error_msg == "restart_during_run (recovery attempt 1/3)"
    completed = [line.page for line in arena.witness.lines("completed")]
    assert completed == [1, 2, 3, 4, 5], "no page that was completed was done again"
    assert arena.witness.overlaps() == []
    wait_until(lambda: not (arena.instance / "workers" / f"{first.worker_id}.lock").exists())


def test_a_worker_started_after_the_crash_takes_the_job_over(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate))
    first = arena.start_worker()
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=2)
    first.kill()
    gate.touch()
    arena.start_worker()
    job = arena.wait_for_end(job_id)
    assert (job.status, job.attempt_count) == ("done", 1)


def test_the_fourth_kill_fails_the_job(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate))
    job_id = arena.world.submit("news").id
    for attempt in range(4):
        worker = arena.start_worker()
        arena.witness.wait_for("page", page=2, pid=worker.pid)
        assert arena.world.job(job_id).attempt_count == attempt
        worker.kill()
    arena.start_worker()
    job = arena.wait_for_end(job_id)
    assert job.status == "failed"
    assert job.error_msg.endswith("abandoned after 3 restart recoveries")
    assert len(arena.witness.lines("start")) == 4


def test_sigterm_hands_the_job_back_and_costs_no_attempt(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=4, hold_at=3, gate=str(gate))
    first = arena.start_worker()
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=3)
    second = arena.start_worker()
    assert first.terminate() == 0
    arena.witness.wait_for("start", pid=second.pid, page=2)
    gate.touch()
    job = arena.wait_for_end(job_id)
    assert (job.status, job.attempt_count, job.error_msg) == ("done", 0, None)
    assert arena.witness.overlaps() == []


def test_sigterm_ends_a_process_whose_handler_does_not_stop(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate), stubborn=True)
    worker = arena.start_worker(grace_sec=0.5)
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=2)
    assert worker.terminate() == UNSTOPPED
    job, key = arena.world.job(job_id), arena.world.key()
    assert (job.status, job.attempt_count, job.last_completed_page) == ("queued", 0, 1)
    assert key.gap_cause == "a handler that did not stop"


def test_a_suspended_worker_is_believed_for_three_extensions_and_writes_nothing_afterwards(
    arena: Arena, gate: Path
) -> None:
    arena.add_target("news", pages=4, hold_at=3, gate=str(gate), stubborn=True)
    first = arena.start_worker(timing=SHORT_LEASE)
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=3)
    arena.suspend(first)
    second = arena.start_worker(timing=SHORT_LEASE)
    arena.witness.wait_for("start", pid=second.pid, page=2)
    extended = [line for line in second.log if "its lease is extended" in line["event"]]
    assert len(extended) == 3
    assert arena.world.job(job_id).attempt_count == 1
    first.resume()
    gate.touch()  # both go on, and only one of them may complete the page
    arena.witness.wait_for("LeaseLostError", pid=first.pid)
    job = arena.wait_for_end(job_id)
    assert (job.status, job.attempt_count, job.leased_by) == ("done", 1, second.worker_id)
    assert [line.page for line in arena.witness.lines("completed", pid=first.pid)] == [1, 2]
    assert [line.page for line in arena.witness.lines("completed", pid=second.pid)] == [3, 4]
    assert first.terminate() == 0, "it goes on to live, and stops in order"


def test_a_suspended_worker_of_another_machine_is_waited_for_and_no_longer(
    arena: Arena, gate: Path, tmp_path: Path
) -> None:
    """Its lock file is not in this instance, so nothing is known: its lease has to end, and is not extended."""
    elsewhere = tmp_path / "other-machine"
    elsewhere.mkdir()
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate))
    first = arena.start_worker(timing=SHORT_LEASE, instance=elsewhere)
    job_id = arena.world.submit("news").id
    arena.witness.wait_for("page", page=2)
    second = arena.start_worker(timing=SHORT_LEASE)
    arena.suspend(first)
    arena.witness.wait_for("start", pid=second.pid, page=1)
    assert [line for line in second.log if "its lease is extended" in line["event"]] == []
    gate.touch()
    assert arena.wait_for_end(job_id).status == "done"


def test_a_suspended_worker_that_wakes_within_its_lease_goes_on(arena: Arena, gate: Path) -> None:
    arena.add_target("news", pages=2, hold_at=2, gate=str(gate))
    first = arena.start_worker()
    second = arena.start_worker()
    job_id = arena.world.submit("news").id
    started = arena.witness.wait_for("page", page=2)
    owner = first if started.pid == first.pid else second
    other = second if owner is first else first
    arena.suspend(owner)
    looks = arena.world.submit("news", force=True).id
    # The other one looks around meanwhile, as its job of another key shows.
    arena.world.add_site("beside", "http://beside.example.org/")
    arena.add_target("beside", site="beside", pages=1)
    beside = arena.world.submit("beside").id
    arena.witness.wait_for("start", job=beside, pid=other.pid)
    assert arena.wait_for_end(beside).status == "done"
    assert arena.world.key().leased_by == owner.worker_id
    owner.resume()
    gate.touch()
    assert arena.wait_for_end(job_id).attempt_count == 0
    assert arena.wait_for_end(looks).status == "done"
    assert arena.witness.lines("start", job=job_id, pid=other.pid) == []
    assert arena.witness.overlaps() == []


def test_processes_never_overlap_on_a_key_while_some_are_killed(arena: Arena) -> None:
    keys, each = 4, 12
    for number in range(keys):
        arena.world.add_site(f"s{number}", f"http://s{number}.example.org/")
        arena.add_target(f"t{number}", site=f"s{number}", pages=2, page_sec=0.005)
    workers = [arena.start_worker(threads=4) for _ in range(2)]
    ids = [
        arena.world.submit(f"t{number}", from_page=turn, source="retry").id
        for turn in range(each)
        for number in range(keys)
    ]

    def ended(count: int) -> bool:
        return sum(job.finished_at is not None for job in arena.world.jobs()) >= count

    for number, worker in enumerate(workers, start=1):
        wait_until(lambda wanted=8 * number: ended(wanted), timeout=PATIENCE_SEC)  # type: ignore[misc]
        arena.start_worker(threads=4)
        worker.kill()
    wait_until(lambda: ended(len(ids)), timeout=PATIENCE_SEC)
    assert [arena.world.job(job_id).status for job_id in ids] == ["done"] * len(ids)
    assert arena.witness.overlaps() == []
    for job_id in ids:
        assert [line.page for line in arena.witness.lines("completed", job=job_id)][-1] == 2
