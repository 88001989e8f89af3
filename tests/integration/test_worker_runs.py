"""What a worker pool makes of handlers: their outcomes, their mistakes, and what they tell meanwhile."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.pools import handler, pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue.database import Database
from webqueue.handlers.protocol import BlockedError, Context, DocumentDraft, Parameters
from webqueue.models import Document, Job, JobLog, JobStatus, Process
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, Outcome
from webqueue.settings import Settings


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    world.add_target("news", params={"a": 1})
    return world


def final(world: World, job_id: str, timeout: float = 10) -> Job:
    """The job, once it has its final status."""

    def finished() -> Job | None:
        job = world.job(job_id)
        return job if job.finished_at is not None else None

    job = wait_until(finished, timeout=timeout, message=f"job {job_id} to end")
    assert job is not None
    return job


def log_of(world: World, job: Job) -> list[tuple[str, str]]:
    with world.database.reading() as session:
        lines = session.scalars(select(JobLog).where(JobLog.job_seq == job.seq).order_by(JobLog.id))
        return [(line.level, line.message) for line in lines]


def test_a_job_is_run_and_done(world: World, settings: Settings) -> None:
    seen: list[Context] = []

    def run(ctx: Context) -> Outcome:
        seen.append(ctx)
        ctx.page(7)
        ctx.progress(3, 40, "three of forty")
        ctx.log("hello")
        ctx.log("careful", "warning")
        ctx.checkpoint(6, {"cursor": "x"})
        return Done({"items": 40}, attention="look at it")

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("news", force=True, from_page=2).id)
    assert (job.status, job.result, job.attention) == ("done", {"items": 40}, "look at it")
    assert (job.current_page, job.last_completed_page, job.checkpoint) == (7, 6, {"cursor": "x"})
    assert (job.progress_current, job.progress_total, job.progress_message) == (3, 40, "three of forty")
    assert log_of(world, job) == [("info", "hello"), ("warning", "careful")]
    assert job.attempt_count == 0
    (ctx,) = seen
    assert (ctx.force, ctx.job.id, ctx.job.from_page, ctx.job.source) == (True, job.id, 2, "api")
    assert (ctx.site.code, ctx.site.rate_key, ctx.target.code) == ("example", "www.example.org", "news")
    assert ctx.params.a == 1
    assert ctx.checkpoint_at_start == Checkpoint(0, {})
    assert world.key().status == "idle"


def test_progress_is_seen_while_the_handler_runs(world: World, settings: Settings) -> None:
    go_on = threading.Event()

    def run(ctx: Context) -> Outcome:
        ctx.progress(1, 2, "half")
        ctx.log("in the middle")
        assert go_on.wait(20)
        return Done()

    with pool_of(world.database, settings, run):
        job_id = world.submit("news").id
        wait_until(lambda: world.job(job_id).progress_message == "half")
        job = world.job(job_id)
        assert job.status == "running"
        wait_until(lambda: log_of(world, job) == [("info", "in the middle")])
        go_on.set()
        assert final(world, job_id).status == "done"


def test_an_exception_fails_the_job_with_type_message_and_traceback(world: World, settings: Settings) -> None:
    def run(ctx: Context) -> Outcome:
        raise ValueError("no such page")

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("news").id)
    assert (job.status, job.error_msg) == ("failed", "ValueError: no such page")
    assert job.result is not None
    assert (job.result["error_type"], job.result["error"]) == ("ValueError", "no such page")
    assert 'raise ValueError("no such page")' in job.result["traceback"]


def test_a_handler_that_exits_fails_its_job_and_nothing_else(world: World, settings: Settings) -> None:
    def run(ctx: Context) -> Outcome:
        if ctx.force:
            raise SystemExit(3)
        return Done()

    with pool_of(world.database, settings, run):
        assert final(world, world.submit("news", force=True).id).error_msg == "SystemExit: 3"
        assert final(world, world.submit("news").id).status == "done"


def test_a_wrong_parameter_fails_the_job_naming_the_field(world: World, settings: Settings) -> None:
    class Strict(Parameters):
        a: str
        pages: int

    called: list[Context] = []
    with pool_of(world.database, settings, {"python": handler(called.append, Strict)}):
        job = final(world, world.submit("news").id)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert "params.a: " in job.error_msg
    assert "params.pages: " in job.error_msg
    assert not called


def test_an_unknown_handler_fails_the_job(world: World, settings: Settings) -> None:
    world.add_target("strange", handler="carrier_pigeon")
    with pool_of(world.database, settings, {}):
        job = final(world, world.submit("strange").id)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert "carrier_pigeon" in job.error_msg


def test_what_is_no_outcome_fails_the_job(world: World, settings: Settings) -> None:
    with pool_of(world.database, settings, lambda _ctx: {"ok": True}):
        job = final(world, world.submit("news").id)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert "instead of an outcome" in job.error_msg


def test_a_block_that_is_let_through_cools_the_key_down(world: World, settings: Settings) -> None:
    def run(ctx: Context) -> Outcome:
        ctx.checkpoint(4)
        raise BlockedError("HTTP 429 from www.example.org", "http://www.example.org/5", 700)

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("news").id)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert job.error_msg.startswith("cooldown_abort; auto_retry_job=")
    retry = next(other for other in world.jobs() if other.retry_of == job.id)
    assert (retry.source, retry.status, retry.last_completed_page) == ("retry", "queued", 4)
    key = world.key()
    assert key.cooldown_until is not None
    assert (key.cooldown_until - job.finished_at).total_seconds() == pytest.approx(700, abs=2)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Failed("the list is empty"), "failed"),
        (Blocked("HTTP 503"), "failed"),
        (Cancelled({"pages": 2}), "cancelled"),
    ],
)
def test_outcomes_become_statuses(world: World, settings: Settings, outcome: Outcome, status: str) -> None:
    with pool_of(world.database, settings, lambda _ctx: outcome):
        assert final(world, world.submit("news").id).status == status


def test_a_result_that_is_no_json_is_stored_as_text(world: World, settings: Settings) -> None:
    endless: list[Any] = []
    endless.append(endless)
    result = {
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "set": {1},
        "nan": float("nan"),
        "nul": "a\x00b",
        "huge": 10**40,
        "object": object(),
        3: "three",
        "endless": endless,
    }

    def run(ctx: Context) -> Outcome:
        ctx.checkpoint(1, {"at": result["at"]})
        return Done(result)  # type: ignore[arg-type]

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("news").id)
    assert job.status == "done"
    assert job.result is not None
    assert job.result["at"] == "2026-01-02T00:00:00+00:00"
    assert job.result["set"] == [1]
    assert job.result["nan"] == "nan"
    assert job.result["huge"] == 10**40
    assert job.result["3"] == "three"


def test_progress_that_the_database_refuses_does_not_keep_the_job(world: World, settings: Settings) -> None:
    def run(ctx: Context) -> Outcome:
        ctx.progress(10**30, None, "too much for a number")
        ctx.log("still here")
        return Done()

    with pool_of(world.database, settings, run):
        job = final(world, world.submit("news").id)
    assert job.status == "done"
    assert any("could not be stored" in message for _, message in log_of(world, job))


def test_documents_are_stored_by_runs_and_not_by_trials(world: World, settings: Settings) -> None:
    answers: list[tuple[str, str, str]] = []

    def run(ctx: Context) -> Outcome:
        url = "http://www.example.org/1"
        before = ctx.known(url)
        stored = ctx.store(DocumentDraft(url, "One", "text", original=b"<html>one", etag='"1"'))
        answers.append((before, stored.what, ctx.known(url)))
        return Done({"validators": ctx.validators(url), "kept": ctx.keep_page("list", b"<html>list")})

    with pool_of(world.database, settings, run):
        trial = final(world, world.submit("news", source="try").id)
        first = final(world, world.submit("news").id)
        second = final(world, world.submit("news").id)
    assert [trial.status, first.status, second.status] == ["done"] * 3
    assert answers == [
        ("new", "new", "new"),
        ("new", "new", "in_chain"),
        ("known", "unchanged", "in_chain"),
    ]
    assert first.result is not None
    assert first.result["validators"] == {"if-none-match": '"1"'}
    assert (first.counters, second.counters) == ({"new": 1}, {"unchanged": 1})
    with world.database.reading() as session:
        (document,) = session.scalars(select(Document))
    assert (document.first_job_id, document.last_job_id) == (first.id, second.id)
    kept = sorted(path.name for path in (settings.instance_path / "store").rglob("*.gz"))
    assert f"{document.original}.gz" in kept
    assert f"{first.result['kept']}.gz" in kept


def test_one_key_runs_one_job_at_a_time_and_other_keys_run_beside_it(
    world: World, settings: Settings
) -> None:
    world.add_site("other", "http://other.example.net/")
    world.add_target("laws", site="other")
    world.add_target("decrees")
    meet = threading.Barrier(2)
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    count = threading.Lock()

    def run(ctx: Context) -> Outcome:
        key = ctx.job.rate_key
        with count:
            running[key] = running.get(key, 0) + 1
            most[key] = max(most.get(key, 0), running[key])
        if ctx.target.code != "decrees":
            meet.wait(20)  # only passed when both keys run at once
        with count:
            running[key] -= 1
        return Done()

    ids = [world.submit(code).id for code in ("news", "decrees", "laws")]
    with pool_of(world.database, settings, run):
        assert [final(world, job_id).status for job_id in ids] == ["done"] * 3
    assert most == {"www.example.org": 1, "other.example.net": 1}


def test_no_more_jobs_are_taken_than_there_are_threads(world: World, settings: Settings) -> None:
    for number in range(5):
        world.add_site(f"s{number}", f"http://s{number}.example.org/")
        world.add_target(f"t{number}", site=f"s{number}")
    go_on = threading.Event()

    def run(ctx: Context) -> Outcome:
        assert go_on.wait(20)
        return Done()

    ids = [world.submit(f"t{number}").id for number in range(5)]
    with pool_of(world.database, settings, run, threads=2) as pool:
        wait_until(lambda: len(pool.running) == 2)
        statuses = [world.job(job_id).status for job_id in ids]
        assert statuses.count(JobStatus.RUNNING) == 2
        assert statuses.count(JobStatus.QUEUED) == 3
        go_on.set()
        assert [final(world, job_id).status for job_id in ids] == ["done"] * 5


def test_a_pool_tells_that_it_lives_and_that_it_left(world: World, settings: Settings) -> None:
    def rows() -> list[tuple[str, str, int]]:
        with world.database.reading() as session:
            return [(row.id, row.role, row.threads) for row in session.scalars(select(Process))]

    with pool_of(world.database, settings, lambda _ctx: Done(), threads=3) as pool:
        wait_until(lambda: rows() == [(pool.worker_id, "worker", 3)])
        lock = settings.instance_path / "workers" / f"{pool.worker_id}.lock"
        assert lock.exists()
        assert pool.problems == []
    assert rows() == []
    assert not lock.exists()


def test_while_everything_is_paused_nothing_is_claimed(world: World, settings: Settings) -> None:
    from webqueue import jobs

    world.database.run(lambda session: jobs.pause_all(session, by="anna"))
    job_id = world.submit("news").id
    with pool_of(world.database, settings, lambda _ctx: Done()) as pool:
        wait_until(lambda: pool._dispatcher._in_vain >= 3)
        assert world.job(job_id).status == "queued"
        world.database.run(lambda session: jobs.resume_all(session, by="anna"))
        assert final(world, job_id).status == "done"
