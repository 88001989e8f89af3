"""Why and how runs stop: cancel, time limit, shutdown, lost and ended leases."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.pools import QUICK, pool_of
from tests.helpers.servers.base import Server
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from tests.integration.test_worker_runs import final
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.errors import LeaseLostError
from webqueue.handlers.protocol import Context, DocumentDraft, Request
from webqueue.models import Document, KeyEvent
from webqueue.outcomes import Cancelled, Done, Failed, Outcome
from webqueue.settings import Settings
from webqueue.worker.context import RunContext
from webqueue.worker.runs import Stop


class Gate:
    """A handler that completes pages, then waits until it is asked to stop or is let through."""

    def __init__(self, *, pages: int = 2, stubborn: bool = False) -> None:
        self.pages = pages
        self.stubborn = stubborn
        self.waiting = threading.Event()
        self.open = threading.Event()
        self.started_from: list[int] = []
        self.after: Callable[[Context], None] = lambda _ctx: None

    def __call__(self, ctx: Context) -> Outcome:
        start = ctx.checkpoint_at_start.page
        self.started_from.append(start)
        for page in range(start + 1, start + 1 + self.pages):
            ctx.checkpoint(page)
        self.waiting.set()
        while not self.open.wait(0.01):
            if not self.stubborn and ctx.should_stop():
                return Cancelled({"pages": self.pages})
        self.after(ctx)
        return Done({"pages": self.pages})


def wait(event: threading.Event) -> None:
    assert event.wait(20), "the handler was not reached"


def test_a_running_job_is_cancelled(world: World, settings: Settings) -> None:
    gate = Gate()
    with pool_of(world.database, settings, gate, timing=dataclasses.replace(QUICK, watch_sec=1.0)):
        job_id = world.submit("news").id
        wait(gate.waiting)
        assert world.cancel(job_id) == "cancelling"
        job = final(world, job_id)
    assert (job.status, job.last_completed_page) == ("cancelled", 2)
    assert [other.id for other in world.jobs()] == [job_id], "a cancelled job starts nothing"
    assert world.key().status == "idle"


def test_a_server_that_hangs_does_not_hold_a_cancel_up(world: World, settings: Settings) -> None:
    with Server(HostileSite()) as server:
        world.add_site("hostile", server.url)
        world.add_target("hang", site="hostile")
        outcomes: list[str] = []

        def run(ctx: Context) -> Outcome:
            try:
                ctx.fetch(
                    Request(server.url + "never" if server.url.endswith("/") else server.url + "/never")
                )
            except Exception as error:
                outcomes.append(type(error).__name__)
                raise
            return Done()

        with pool_of(world.database, settings, run, timing=dataclasses.replace(QUICK, watch_sec=1.0)):
            job_id = world.submit("hang").id
            wait_until(lambda: any(path.endswith("/never") for path in server.paths))
            assert world.cancel(job_id) == "cancelling"
            job = final(world, job_id)
    assert job.status == "cancelled"
    assert outcomes == ["StopRequested"], "and no time-out"
    assert world.key(job.rate_key).last_request_at is not None


def test_a_stop_wins_over_the_outcome_that_comes_after_it(world: World, settings: Settings) -> None:
    gate = Gate(stubborn=True)
    with pool_of(world.database, settings, gate):
        job_id = world.submit("news").id
        wait(gate.waiting)
        assert world.cancel(job_id) == "cancelling"
        assert world.cancel(job_id) == "cancelling"
        assert world.job(job_id).status == "running"
        gate.open.set()
        job = final(world, job_id)
    assert job.status == "cancelled"
    assert job.result == {"pages": 2}


def test_at_its_time_limit_a_job_is_continued_from_its_checkpoint(world: World, settings: Settings) -> None:
    world.add_target("long", max_runtime_sec=1)
    gate = Gate(pages=3)
    with pool_of(world.database, settings, gate):
        job_id = world.submit("long").id
        job = final(world, job_id)
        gate.open.set()
        assert job.status == "done"
        (follow_up,) = [other for other in world.jobs() if other.retry_of == job_id]
        assert follow_up.source == "continue"
        assert final(world, follow_up.id).status == "done"
    assert gate.started_from == [0, 3]
    assert job.result is not None
    assert job.result["continued_by"] == follow_up.id


def test_at_its_time_limit_a_job_without_progress_fails(world: World, settings: Settings) -> None:
    world.add_target("long", max_runtime_sec=1)
    with pool_of(world.database, settings, Gate(pages=0)):
        job = final(world, world.submit("long").id)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert "time limit of 1 s" in job.error_msg


def test_a_handler_that_is_done_at_its_time_limit_unasked_is_done(world: World, settings: Settings) -> None:
    """It never looked whether it should stop, so it did all of its work."""
    world.add_target("long", max_runtime_sec=0)

    def run(ctx: Context) -> Outcome:
        wait_until(lambda: ctx.run.stop is not None)  # type: ignore[attr-defined]
        return Done({"all": True})

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("long").id)
    assert (job.status, job.result) == ("done", {"all": True})
    assert len(world.jobs()) == 1


def test_a_stuck_handler_is_shown(world: World, settings: Settings) -> None:
    quick_grace = settings.model_copy(update={"stop_grace_sec": 0.1})
    world.add_target("long", max_runtime_sec=1)
    gate = Gate(stubborn=True)
    with pool_of(world.database, quick_grace, gate) as pool:
        job_id = world.submit("long").id

        def events() -> list[KeyEvent]:
            with world.database.reading() as session:
                return list(session.scalars(select(KeyEvent).where(KeyEvent.kind == "stuck")))

        wait_until(lambda: bool(events()))
        wait_until(lambda: pool.problems == [f"the handler of job {job_id} is stuck"])
        (event,) = events()
        assert (event.job_id, event.rate_key) == (job_id, "www.example.org")
        assert world.job(job_id).status == "running", "its key stays shut"
        gate.open.set()
        final(world, job_id)


def test_a_clean_stop_hands_the_job_back_and_costs_no_attempt(world: World, settings: Settings) -> None:
    gate = Gate()
    with pool_of(world.database, settings, gate) as pool:
        job_id = world.submit("news").id
        wait(gate.waiting)
        assert pool.stop(5) is True
        job = world.job(job_id)
        assert (job.status, job.attempt_count, job.last_completed_page) == ("queued", 0, 2)
        assert job.started_at is None
        assert job.error_msg is None
        assert pool.stop(5) is True, "a second stop does nothing"
    gate.open.set()
    with pool_of(world.database, settings, gate):
        assert final(world, job_id).status == "done"
    assert gate.started_from == [0, 2]


def test_a_handler_that_leaves_its_loop_when_told_is_not_taken_for_done(
    world: World, settings: Settings
) -> None:
    """A function that breaks out of its loop returns what one that is through returns."""
    reached = threading.Event()

    def run(ctx: Context) -> Outcome:
        ctx.checkpoint(1)
        reached.set()
        wait_until(ctx.should_stop)
        return Done()

    with pool_of(world.database, settings, run) as pool:
        job_id = world.submit("news").id
        wait(reached)
        assert pool.stop(5) is True
    assert world.job(job_id).status == "queued"


def test_what_a_stop_breaks_is_no_failure_of_the_job(world: World, settings: Settings) -> None:
    reached = threading.Event()

    def run(ctx: Context) -> Outcome:
        reached.set()
        wait_until(ctx.should_stop)
        return Failed("interrupted in the middle")

    with pool_of(world.database, settings, run) as pool:
        job_id = world.submit("news").id
        wait(reached)
        assert pool.stop(5) is True
    assert world.job(job_id).status == "queued"


def test_a_handler_that_does_not_stop_is_handed_back_last_and_writes_nothing(
    world: World, settings: Settings
) -> None:
    gate = Gate(stubborn=True)
    errors: list[str] = []

    def write(ctx: Context) -> None:
        tries: list[Callable[[], Any]] = [
            lambda: ctx.checkpoint(9),
            lambda: ctx.store(DocumentDraft("http://www.example.org/1", "late", "late")),
            lambda: ctx.fetch(Request("http://www.example.org/")),
        ]
        for attempt in tries:
            try:
                attempt()
            except Exception as error:  # noqa: BLE001 - the test wants to know each
                errors.append(type(error).__name__)

    gate.after = write
    with pool_of(world.database, settings, gate) as pool:
        job_id = world.submit("news").id
        wait(gate.waiting)
        before = clock.local_now()
        assert pool.stop(0.3) is False
        job, key = world.job(job_id), world.key()
        assert (job.status, job.attempt_count) == ("queued", 0)
        assert key.gap_until is not None
        assert (key.gap_until - before).total_seconds() >= 10
        lock = settings.instance_path / "workers" / f"{pool.worker_id}.lock"
        assert lock.exists(), "its process is alive, and must not be taken for dead"
        gate.open.set()
        wait_until(lambda: not pool.running)
    assert errors == ["LeaseLostError", "LeaseLostError", "StopRequested"]
    job = world.job(job_id)
    assert (job.status, job.last_completed_page) == ("queued", 2)
    with world.database.reading() as session:
        assert session.scalars(select(Document)).all() == []


def test_a_database_that_does_not_answer_keeps_no_process_from_ending(
    world: World, settings: Settings, open_database: Callable[[], Database]
) -> None:
    """Somebody holds the lock of SQLite, or the job's row; what cannot be handed back is freed as a dead worker's."""
    gate = Gate(stubborn=True)
    with pool_of(world.database, settings, gate) as pool:
        world.submit("news")
        wait(gate.waiting)
        other = open_database()
        with other.transaction() as session:
            jobs.pause_key(session, "www.example.org", by="anna")
            session.flush()
            assert pool.stop(0.2) is False
            assert "last hand-backs" in {thread.name for thread in threading.enumerate()}, (
                "they wait for the lock, and the stop does not wait for them"
            )
        gate.open.set()
        # A real process has ended by now. Here what it left behind has a connection, which the next test must not meet.
        wait_until(lambda: "last hand-backs" not in {thread.name for thread in threading.enumerate()})
        wait_until(lambda: not pool.running)


def test_a_lost_lease_stops_the_handler_and_nothing_is_written(world: World, settings: Settings) -> None:
    """Another process believed this one dead, and freed what it held."""
    gate = Gate()
    timing = dataclasses.replace(QUICK, heartbeat_sec=0.1)
    with pool_of(world.database, settings, gate, timing=timing) as pool:
        job_id = world.submit("news").id
        wait(gate.waiting)
        world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
        freed = world.database.run(lambda session: jobs.free_dead(session, [pool.worker_id]))
        assert freed == [job_id]
        wait_until(lambda: not pool.running)
        job = world.job(job_id)
        assert (job.status, job.attempt_count) == ("queued", 1)
        assert job.result is None


def test_a_write_after_the_takeover_raises_at_once(world: World, settings: Settings) -> None:
    gate = Gate(stubborn=True)
    raised: list[BaseException] = []

    def write(ctx: Context) -> None:
        with pytest.raises(LeaseLostError) as caught:
            ctx.store(DocumentDraft("http://www.example.org/1", "late", "late"))
        raised.append(caught.value)

    gate.after = write
    with pool_of(world.database, settings, gate) as pool:
        job_id = world.submit("news").id
        wait(gate.waiting)
        world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
        world.database.run(lambda session: jobs.free_dead(session, [pool.worker_id]))
        gate.open.set()
        wait_until(lambda: not pool.running)
        assert len(raised) == 1
        assert world.job(job_id).status == "queued"
    with world.database.reading() as session:
        assert session.scalars(select(Document)).all() == []


def test_a_lease_that_cannot_be_renewed_stops_the_handler_before_it_ends(
    world: World, settings: Settings
) -> None:
    gate = Gate()
    # No heartbeat within the test: as if the database did not answer any.
    timing = dataclasses.replace(QUICK, lease_sec=2.0, margin_sec=1.0, heartbeat_sec=100.0)
    with pool_of(world.database, settings, gate, timing=timing, threads=1) as pool:
        job_id = world.submit("news").id
        wait(gate.waiting)
        wait_until(lambda: len(gate.started_from) == 2, message="the job to be started again")
        pool.stop(5)
    job = world.job(job_id)
    assert (job.status, job.attempt_count) == ("queued", 0), "handed back in time, so it is no orphan"
    assert gate.started_from[:2] == [0, 2]


@pytest.mark.parametrize("stop", [Stop.SHUTDOWN, Stop.DISK, Stop.CANCEL])
def test_a_run_whose_lease_could_not_be_renewed_after_another_stop_ends_by_that_stop(
    world: World, settings: Settings, stop: Stop
) -> None:
    """The worker's own clock says that the lease is over, and the database that nobody else has the job."""
    starts: list[int] = []

    def run(ctx: Context) -> Outcome:
        assert isinstance(ctx, RunContext)
        starts.append(ctx.checkpoint_at_start.page)
        if len(starts) > 1:
            return Done()
        ctx.checkpoint(2)
        if stop is Stop.CANCEL:
            world.database.run(lambda session: jobs.cancel(session, ctx.job.id, by="anna"))
        ctx.requested()
        ctx.run.request_stop(stop)
        ctx.run.lease_deadline = clock.boot_seconds() - 1
        ctx.check_lease()
        raise AssertionError("the lease is over")

    # Nor does the worker look for jobs that it holds and does not run, which it would hand back without their last request.
    timing = dataclasses.replace(QUICK, heartbeat_sec=100.0, sweep_sec=100.0)
    with pool_of(world.database, settings, run, timing=timing):
        job = final(world, world.submit("news").id)
    assert job.attempt_count == 0, "an end was written under the lease, so it is no orphan"
    assert world.key("www.example.org").last_request_at is not None, "the next job keeps its distance"
    assert (job.status, starts) == (("cancelled", [0]) if stop is Stop.CANCEL else ("done", [0, 2]))


def test_a_claim_whose_answer_was_lost_is_handed_back(world: World, settings: Settings) -> None:
    job_id = world.submit("news").id
    world.claim_one("w-of-this-test")
    assert world.job(job_id).status == "running"
    with pool_of(world.database, settings, lambda _ctx: Done(), worker_id="w-of-this-test"):
        job = final(world, job_id)
    assert (job.status, job.attempt_count) == ("done", 0)


def test_what_a_dead_worker_held_is_freed_at_the_start(world: World, settings: Settings) -> None:
    job_id = world.submit("news").id
    world.claim_one("dead-worker")
    folder = settings.instance_path / "workers"
    folder.mkdir()
    (folder / "dead-worker.lock").write_text("1\n")
    with pool_of(world.database, settings, lambda _ctx: Done()):
        job = final(world, job_id)
        wait_until(lambda: not (folder / "dead-worker.lock").exists())
    assert (job.status, job.attempt_count) == ("done", 1)
    assert job.error_msg == "restart_during_run (recovery attempt 1/3)"
