"""Verbs that meet: each interleaving that an earlier reading of DESIGN section 5 got wrong, stepped one by one.

The first verb has done everything but its COMMIT when the second begins in another connection. On PostgreSQL the second
then waits for a row lock, on SQLite for the one writer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.helpers.interleaving import Background, Meeting
from tests.helpers.lossy import LossyProxy
from tests.helpers.waiting import wait_until
from tests.helpers.world import START, Clock, World, assert_settled
from webqueue import clock, documents, jobs, jobs_sql
from webqueue.database import Database
from webqueue.database import engine as engine_module
from webqueue.errors import ConflictError, LeaseLostError
from webqueue.leases import RETRY_AT_MAX
from webqueue.models import Document, Job, JobStatus, RateKey, Site
from webqueue.outcomes import Blocked, Done

KEY = "www.example.org"
Verb = Callable[[Session], Any]
both_ways = pytest.mark.parametrize("swapped", [False, True], ids=["as_named", "swapped"])


@pytest.fixture
def now() -> Iterator[Clock]:
    moving = Clock()
    with clock.replaced(moving):
        yield moving


@pytest.fixture
def meeting(database: Database, open_database: Callable[[], Database]) -> Meeting:
    return Meeting(database, open_database())


@pytest.fixture
def world(database: Database, now: Clock) -> Iterator[World]:
    world = World(database)
    world.add_site()
    world.add_target("news")
    world.add_target("law")
    yield world
    settled(world)


def settled(world: World) -> None:
    with world.database.reading() as session:
        assert_settled(session)


def submit(target: str, **more: Any) -> Verb:
    return lambda session: jobs.submit(session, target, **{"source": "api", **more})


def finish(world: World, claimed: jobs.Claimed, outcome: Any = None) -> Verb:
    return lambda session: jobs.finish(session, claimed.lease, outcome or Done(), world.policy)


def claim(worker: str = "w2", limit: int = 10) -> Verb:
    return lambda session: jobs.claim(session, worker, limit=limit, life=lambda _worker: jobs.Life.UNKNOWN)


def cancel(job_id: str) -> Verb:
    return lambda session: jobs.cancel(session, job_id, by="anna")


def pause(session: Session) -> None:
    jobs.pause_key(session, KEY, by="anna")


def resume(session: Session) -> None:
    jobs.resume_key(session, KEY, by="anna")


def lift(session: Session) -> None:
    jobs.lift_cooldown(session, KEY, by="anna")


def renew(claimed: jobs.Claimed) -> Verb:
    return lambda session: jobs.renew(session, claimed.lease.worker_id, [claimed.lease])


def meet(meeting: Meeting, first: Verb, second: Verb, *, swapped: bool) -> tuple[Any, Any]:
    """Both results, in the order of the arguments, whichever of the two came first."""
    if swapped:
        result, rival = meeting.run(second, first)
        return rival.result(), result
    result, rival = meeting.run(first, second)
    return result, rival.result()


# --- submit, pause, resume, lift against a run -----------------------------------------------------------------


@both_ways
def test_submit_against_finish_loses_no_wake_up(world: World, meeting: Meeting, swapped: bool) -> None:
    world.submit("news")
    claimed = world.claim_one()
    submitted, finished = meet(meeting, submit("law"), finish(world, claimed), swapped=swapped)
    assert finished.status == "done"
    settled(world)
    assert world.claim_one().lease.job_id == submitted.id


@both_ways
def test_submit_against_a_claim_that_finds_no_head(
    world: World, meeting: Meeting, now: Clock, swapped: bool
) -> None:
    """Such a claim settles the key, and must not settle the new job away."""
    world.finish(world_run(world))
    with world.database.transaction() as session:
        session.get_one(RateKey, KEY).retry_at = now.now
    if swapped:
        claimed, rival = meeting.run(claim(), submit("law"))
        assert claimed == []
        submitted = rival.result()
    else:
        submitted, claiming = meeting.run(submit("law"), claim(), waits=False)
        if claimed := claiming.result():  # SQLite: it waited, and sees the job
            assert [one.lease.job_id for one in claimed] == [submitted.id]
            settled(world)
            return
    settled(world)
    assert world.claim_one().lease.job_id == submitted.id


@both_ways
def test_a_pause_against_the_end_of_a_run_holds(world: World, meeting: Meeting, swapped: bool) -> None:
    world.submit("news")
    world.submit("law")
    claimed = world.claim_one()
    meet(meeting, pause, finish(world, claimed), swapped=swapped)
    assert world.key().retry_at == RETRY_AT_MAX
    assert world.claim() == []


@both_ways
def test_a_pause_against_a_heartbeat_keeps_the_lease_findable(
    world: World, meeting: Meeting, now: Clock, swapped: bool
) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    now.advance(15)
    _, lost = meet(meeting, pause, renew(claimed), swapped=swapped)
    assert lost == set()
    assert world.key().retry_at == now.now + timedelta(seconds=60)
    now.advance(61)
    assert world.claim("w2") == []
    assert world.job(submitted.id).status == "queued", "the orphan is found, and stays paused"
    assert world.key().retry_at == RETRY_AT_MAX


@both_ways
def test_a_submit_against_a_pause_does_not_open_the_key(
    world: World, meeting: Meeting, swapped: bool
) -> None:
    world.finish(world_run(world))
    meet(meeting, pause, submit("law"), swapped=swapped)
    assert world.key().retry_at == RETRY_AT_MAX
    assert world.claim() == []


def world_run(world: World) -> jobs.Claimed:
    world.submit("news")
    return world.claim_one()


@both_ways
@pytest.mark.parametrize("verb", [resume, lift], ids=["resume", "lift"])
def test_resume_and_lift_against_a_heartbeat_start_no_second_run(
    world: World, meeting: Meeting, verb: Verb, swapped: bool
) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429"))
    world.database.run(lift)
    claimed = world.claim_one()
    world.submit("law")
    world.database.run(pause)
    if verb is lift:
        world.database.run(resume)
    _, lost = meet(meeting, verb, renew(claimed), swapped=swapped)
    assert lost == set()
    assert world.claim("w2") == [], "P1"


@pytest.mark.parametrize("verb", [pause, resume, lift], ids=["pause", "resume", "lift"])
def test_a_verb_that_waits_for_a_claim_leaves_its_lease_alone(
    world: World, meeting: Meeting, verb: Verb
) -> None:
    world.submit("news")
    world.submit("law")
    if verb is resume:
        world.database.run(pause)
        with world.database.transaction() as session:
            session.get_one(RateKey, KEY).paused_at = None
            jobs.settle(session, session.get_one(RateKey, KEY), START)
    [claimed], rival = meeting.run(claim("w1"), verb)
    rival.result()
    assert world.key().retry_at == START + timedelta(seconds=60)
    assert world.claim("w2") == []
    assert world.finish(claimed).status == "done"


def test_a_claim_passes_by_a_key_that_is_being_changed(world: World, meeting: Meeting, now: Clock) -> None:
    """A heartbeat under way on a lease that has just ended: SKIP LOCKED, not a takeover."""
    world.submit("news")
    claimed = world.claim_one()
    now.advance(60)
    lost, rival = meeting.run(renew(claimed), claim(), waits=False)
    assert (lost, rival.result()) == (set(), [])
    assert world.finish(claimed).status == "done"


def test_the_leases_of_a_dead_worker_that_finishes_after_all(world: World, meeting: Meeting) -> None:
    """The key's row is read again once its lock is got: what is leased no more is not freed."""
    submitted = world.submit("news")
    claimed = world.claim_one()
    finished, rival = meeting.run(
        finish(world, claimed), lambda session: jobs.free_dead(session, ["w1"]), waits=True
    )
    assert (finished.status, rival.result()) == ("done", [])
    assert world.job(submitted.id).attempt_count == 0


# --- cancel ----------------------------------------------------------------------------------------------------


def test_cancel_of_the_head_against_a_claim(world: World, meeting: Meeting, now: Clock) -> None:
    head = world.submit("news")
    answer, rival = meeting.run(cancel(head.id), claim(), waits=False)
    assert answer == "cancelled"
    assert rival.result() == []
    assert world.key().retry_at is None
    now.advance(60)
    assert world.claim() == []


def test_a_claim_against_cancel_of_the_head(world: World, meeting: Meeting) -> None:
    head = world.submit("news")
    [claimed], rival = meeting.run(claim("w1"), cancel(head.id))
    assert rival.result() == "cancelling"
    assert world.finish(claimed).status == "cancelled"


@both_ways
def test_cancel_of_the_head_against_a_submit_behind_it(world: World, meeting: Meeting, swapped: bool) -> None:
    head = world.submit("news")
    _answer, behind = meet(meeting, cancel(head.id), submit("law"), swapped=swapped)
    settled(world)
    assert world.claim_one().lease.job_id == behind.id


def test_cancel_of_the_head_before_a_delayed_job_keeps_its_wake_up(world: World, now: Clock) -> None:
    world.add_target("flaky", retry_times=1, retry_wait_sec=300)
    world.submit("flaky")
    failed = world.claim_one()
    delayed = world.finish(failed, Blocked("HTTP 429")).follow_up_id
    head = world.submit("news")
    world.database.run(lambda session: jobs.move_to_front(session, head.id, by="anna"))
    world.cancel(head.id)
    now.advance(600)
    assert world.claim_one().lease.job_id == delayed


def test_a_stop_between_heartbeat_and_finish_wins(world: World, meeting: Meeting) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    assert world.database.run(lambda session: jobs.stop_requests(session, "w1")) == set()
    answer, rival = meeting.run(cancel(submitted.id), finish(world, claimed, Blocked("HTTP 429")))
    assert answer == "cancelling"
    assert rival.result() == jobs.Finished("cancelled"), "and no retry"
    assert [job.status for job in world.jobs()] == ["cancelled"]


def test_a_stop_after_the_finish_is_refused(world: World, meeting: Meeting) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    finished, rival = meeting.run(finish(world, claimed), cancel(submitted.id))
    assert finished.status == "done"
    with pytest.raises(ConflictError, match="is done already"):
        rival.result()


# --- a worker that was overtaken -------------------------------------------------------------------------------


def store(claimed: jobs.Claimed) -> Verb:
    def write(session: Session) -> None:
        jobs.fence(session, claimed.lease)
        draft = documents.DocumentDraft(url="http://www.example.org/1", title="One", text="Text")
        documents.store(
            session,
            draft,
            target_code="news",
            job_id=claimed.lease.job_id,
            root_id=claimed.lease.job_id,
            now=clock.now(session),
        )

    return write


def stored(world: World) -> int:
    with world.database.reading() as session:
        return len(session.scalars(select(Document.id)).all())


def test_no_document_is_written_after_the_takeover(world: World, meeting: Meeting, now: Clock) -> None:
    world.submit("news")
    stale = world.claim_one()
    now.advance(61)
    [fresh], rival = meeting.run(claim(), store(stale))
    with pytest.raises(LeaseLostError):
        rival.result()
    assert stored(world) == 0
    world.database.run(store(fresh))
    assert stored(world) == 1


def test_a_takeover_waits_for_a_document_being_written(world: World, meeting: Meeting, now: Clock) -> None:
    world.submit("news")
    stale = world.claim_one()
    now.advance(61)
    _, rival = meeting.run(store(stale), claim())
    [fresh] = rival.result()
    assert fresh.job.attempt_count == 1
    assert stored(world) == 1, "it was written under the lease"
    with pytest.raises(LeaseLostError):
        world.database.run(store(stale))


def test_a_job_that_moved_to_another_key_gets_no_token_twice(world: World, now: Clock) -> None:
    """Tokens are the keys' own; the job brings the one of its old key along."""
    world.submit("news")
    world.finish(world.claim_one())
    world.submit("news")
    stale = world.claim_one()
    assert stale.lease.token == 2
    now.advance(61)
    world.database.run(lambda session: jobs.free_dead(session, ["w1"]))
    world.add_site("other", "http://other.test/")
    world.add_target("else", "other")
    world.submit("else")
    world.finish(world.claim("w2", limit=1)[0])  # one of the two: whichever it is, a key has given tokens
    world.submit("else")
    for claimed in world.claim("w2"):
        world.finish(claimed)
    rekey(world, "other")
    world.submit("news")
    world.claim("w2")
    with pytest.raises(LeaseLostError):
        world.database.run(store(stale))


def rekey(world: World, key: str | None) -> None:
    world.database.run(change_key(key))


def change_key(key: str | None) -> Verb:
    def change(session: Session) -> None:
        session.get_one(Site, "example").rate_key = key
        session.flush()
        jobs.rekey_site(session, "example")

    return change


def test_the_token_of_a_stale_lease_is_not_given_by_the_new_key(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    stale = world.claim_one()
    world.database.run(lambda session: jobs.free_dead(session, ["w1"]))
    rekey(world, "new.key")
    fresh = world.claim_one("w2")
    assert fresh.lease.job_id == submitted.id
    assert fresh.lease.rate_key == "new.key"
    assert fresh.lease.token > stale.lease.token
    with pytest.raises(LeaseLostError):
        world.database.run(lambda session: jobs.progress(session, stale.lease, current=9))
    assert world.finish(fresh).status == "done"


# --- several keys ----------------------------------------------------------------------------------------------


@pytest.fixture
def two_keys(world: World) -> World:
    world.add_site("other", "http://other.test/")
    world.add_target("else", "other")
    return world


def batch(*targets: str, between: Callable[[], None] = lambda: None, sorts: bool = False) -> Verb:
    def work(session: Session) -> list[str]:
        if sorts:
            jobs.lock_keys_of_targets(session, targets)
        first = jobs.submit(session, targets[0], source="schedule")
        between()
        return [first.id, *(jobs.submit(session, code, source="schedule").id for code in targets[1:])]

    return work


@pytest.mark.parametrize("sorts", [False, True], ids=["unsorted", "sorted"])
def test_two_batches_in_opposite_order(two_keys: World, meeting: Meeting, sorts: bool) -> None:
    """Unsorted they deadlock: one of them is tried again, none is lost. Sorted they only wait."""
    begun = threading.Event()
    tried: list[str] = []
    other_holds = threading.Event()

    def hold() -> None:
        # Only the first time, and only where the other batch can get that far.
        if not begun.is_set() and not sorts and not meeting.one.is_sqlite:
            begun.set()
            assert other_holds.wait(30)

    def first(session: Session) -> list[str]:
        tried.append("first")
        return list(batch("news", "else", between=hold, sorts=sorts)(session))

    def second(session: Session) -> list[str]:
        tried.append("second")
        return list(batch("else", "news", between=other_holds.set, sorts=sorts)(session))

    one = Background(lambda: meeting.one.run(first))
    two = Background(lambda: meeting.other.run(second))
    ids = [*one.result(), *two.result()]
    assert {job.id for job in two_keys.jobs()} == set(ids)
    assert len(ids) == 4
    deadlocked = not sorts and not meeting.one.is_sqlite
    assert len(tried) == (3 if deadlocked else 2)


def test_a_failed_operation_takes_the_whole_transaction_back(two_keys: World, now: Clock) -> None:
    world = two_keys
    world.submit("news")
    world.submit("else")
    one, two = sorted(world.claim(), key=lambda claimed: claimed.lease)
    world.database.run(lambda session: jobs.free_dead(session, []))
    now.advance(61)
    world.claim("w2", limit=1)
    taken = next(job for job in world.jobs() if job.leased_by == "w2")
    stale, good = (one, two) if one.lease.job_id == taken.id else (two, one)

    def finish_both(session: Session) -> None:
        for claimed in (good, stale):
            jobs.finish(session, claimed.lease, Done(), world.policy)

    with pytest.raises(LeaseLostError):
        world.database.run(finish_both)
    assert world.job(good.lease.job_id).status == "running"
    settled(world)
    assert world.finish(good).status == "done"


def test_a_refusal_that_the_caller_catches_leaves_nothing_behind(two_keys: World) -> None:
    world = two_keys
    done = world.submit("news")
    world.finish(world.claim_one())
    waiting = world.submit("else")

    def cancel_both(session: Session) -> list[str]:
        answers = []
        for job_id in (done.id, waiting.id):
            with suppress(ConflictError):
                answers.append(jobs.cancel(session, job_id, by="anna"))
        return answers

    assert world.database.run(cancel_both) == ["cancelled"]
    assert [world.job(one.id).status for one in (done, waiting)] == ["done", "cancelled"]


# --- a site that changes its key -------------------------------------------------------------------------------


def assert_runs_in_the_new_key(world: World, job_id: str) -> None:
    """The claim of the old key moves the job, the next one of the new key finds it."""
    claimed = [*world.claim(), *world.claim()]
    assert [(one.lease.job_id, one.lease.rate_key) for one in claimed] == [(job_id, "new.key")]


def test_rekey_against_a_submit_that_it_cannot_see(world: World, meeting: Meeting) -> None:
    submitted, rival = meeting.run(submit("news"), change_key("new.key"), waits=False)
    rival.result()
    assert_runs_in_the_new_key(world, submitted.id)
    assert world.key().retry_at is None


def test_a_submit_against_a_rekey_that_it_cannot_see(world: World, meeting: Meeting) -> None:
    _, rival = meeting.run(change_key("new.key"), submit("news"), waits=False)
    submitted = rival.result()
    assert_runs_in_the_new_key(world, submitted.id)


@both_ways
def test_rekey_against_a_submit_behind_another_job(world: World, meeting: Meeting, swapped: bool) -> None:
    world.submit("news")
    meet(meeting, change_key("new.key"), submit("law"), swapped=swapped)
    assert {job.rate_key for job in world.jobs()} == {"new.key"}
    assert len(world.claim()) == 1, "both in one key"


def test_a_job_that_comes_back_from_its_run_follows_its_site(world: World) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    rekey(world, "new.key")
    world.hand_back(claimed)
    assert_runs_in_the_new_key(world, submitted.id)


def test_a_claim_that_cannot_move_a_job_now_looks_again(world: World, meeting: Meeting, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    rekey(world, "new.key")
    world.hand_back(claimed)
    _, rival = meeting.run(
        lambda session: jobs_sql.lock_keys(session, ["new.key"], now=now.now), claim(), waits=False
    )
    assert rival.result() == []
    if not meeting.one.is_sqlite:
        assert world.key().retry_at == now.now + timedelta(seconds=1)
    now.advance(1)
    assert_runs_in_the_new_key(world, claimed.lease.job_id)


# --- pause of everything ---------------------------------------------------------------------------------------


def test_nothing_starts_after_pause_all_has_answered(world: World, meeting: Meeting) -> None:
    world.submit("news")
    _, rival = meeting.run(lambda session: jobs.pause_all(session, by="anna"), claim())
    assert rival.result() == []


def test_pause_all_waits_for_a_claim_under_way(world: World, meeting: Meeting) -> None:
    world.submit("news")
    claimed, rival = meeting.run(claim("w1"), lambda session: jobs.pause_all(session, by="anna"))
    assert len(claimed) == 1
    rival.result()
    world.submit("law")
    world.finish(claimed[0])
    assert world.claim() == []


# --- the database's own part -----------------------------------------------------------------------------------


def test_the_unique_index_keeps_a_second_run_out(world: World, meeting: Meeting, now: Clock) -> None:
    """A running row that came past the key's lock, and is not committed yet, so that no query sees it."""
    if meeting.one.is_sqlite:
        pytest.skip("no second writer can be under way")
    world.submit("news")

    def trespass(session: Session) -> None:
        row = dict.fromkeys(("id", "root_id"), "f" * 12)
        session.execute(
            insert(Job).values(
                **row,
                site_code="example",
                target_code="news",
                rate_key=KEY,
                source="api",
                status=JobStatus.RUNNING,
                due_at=START,
                retry_at=START + timedelta(seconds=30),
                enqueued_at=START,
                started_at=START,
                leased_by="w0",
                progress_message="",
                checkpoint={},
                counters={},
            )
        )

    _, rival = meeting.run(trespass, claim())
    assert rival.result() == [], "P1"
    assert world.key().retry_at == START + timedelta(seconds=60), "put off"
    assert [job.status for job in world.jobs()].count("running") == 1
    now.advance(60)
    assert len(world.claim()) == 1, "the trespasser is an orphan by now"


def test_a_frozen_process_loses_its_locks(
    engine_name: str, database_url: str, instance: Path, monkeypatch: pytest.MonkeyPatch, now: Clock
) -> None:
    """PostgreSQL ends a transaction in which nothing happens, as of a stopped process or a lost machine."""
    if engine_name == "sqlite":
        pytest.skip("SQLite has no server that could take a lock away")
    monkeypatch.setattr(engine_module, "IDLE_IN_TRANSACTION_MS", 1000)
    with (
        closing(Database(database_url, instance_path=instance)) as frozen,
        closing(Database(database_url, instance_path=instance)) as healthy,
    ):
        _freeze_and_thaw(frozen, World(healthy))


def _freeze_and_thaw(frozen: Database, world: World) -> None:
    world.add_site()
    world.add_target("news")
    world.submit("news")
    asked = 0

    def freeze(session: Session) -> list[jobs.Claimed]:
        nonlocal asked
        asked += 1
        claimed = jobs.claim(session, "w1", limit=1, life=lambda _worker: jobs.Life.UNKNOWN)
        if asked == 1:
            session.flush()
            assert len(claimed) == 1
            assert world.claim("w2") == [], "the key is locked"
            assert wait_until(lambda: world.claim("w2"))
        return claimed

    assert frozen.run(freeze) == [], "thawed, it is told to try again, and finds the key taken"
    assert asked == 2
    assert [job.leased_by for job in world.jobs()] == ["w2"]
    settled(world)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_to_commit(
    engine_name: str, database_url: str, instance: Path, when: str, now: Clock
) -> None:
    if engine_name == "sqlite":
        pytest.skip("SQLite answers in the process itself")
    with LossyProxy(database_url) as proxy:
        database = Database(proxy.url, instance_path=instance)
        world = World(database)
        world.add_site()
        world.add_target("news", retry_times=1)
        proxy.cut(when)
        submitted = world.submit("news")
        assert [job.id for job in world.jobs()] == [submitted.id], "accepted once, and named"
        proxy.cut(when)
        claimed = world.claim()
        if when == "after":
            assert claimed == [], (
                "its lease stands, and its worker knows nothing of it: see the worker's sweep"
            )
            now.advance(61)
            claimed = world.claim()
        [one] = claimed
        asked: list[str] = []

        def left(session: Session) -> jobs.Finished | None:
            status = session.scalars(select(Job.status).where(Job.seq == one.lease.job_seq)).one()
            asked.append(status)
            return None if status == "running" else jobs.Finished(status)

        proxy.cut(when)
        finished = database.run(finish(world, one, Blocked("HTTP 429")), read_back=left)
        assert finished.status == "failed"
        assert asked == ["running" if when == "before" else "failed"]
        assert [job.status for job in world.jobs()] == ["failed", "queued"], "one retry"
        assert proxy.cuts == 3
        settled(world)
        database.close()


def test_a_read_back_that_fails_is_asked_again(database: Database) -> None:
    """The server is often still away when the answer to a COMMIT has just got lost."""
    asked = 0
    broken = False

    def work(_session: Session) -> str:
        return "worked"

    def read_back(_session: Session) -> str | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise lost()
        return "read back"

    def lost() -> DBAPIError:
        return DBAPIError("COMMIT", None, OSError("gone"), connection_invalidated=True)

    def break_once(_session: Session) -> None:
        nonlocal broken
        if not broken:
            broken = True
            raise lost()

    event.listen(Session, "before_commit", break_once)
    try:
        assert database.run(work, read_back=read_back) == "read back"
    finally:
        event.remove(Session, "before_commit", break_once)
    assert asked == 2
