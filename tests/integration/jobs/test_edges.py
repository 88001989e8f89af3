"""The verbs where numbers are large, clocks are wrong, or rows are not what they should be."""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, select, update

from tests.helpers.world import START, Clock, World
from webqueue import jobs
from webqueue.database import Database
from webqueue.errors import LeaseLostError
from webqueue.models import Job, KeyEvent, RateKey
from webqueue.outcomes import Blocked, Done, Ending, Failed, OutOfHours, OutOfTime

KEY = "www.example.org"


def test_the_hundredth_retry_of_a_failure_is_still_within_the_calendar(world: World, now: Clock) -> None:
    world.add_target("hopeless", retry_times=100, retry_wait_sec=604_800)
    submitted = world.submit("hopeless")
    with world.database.transaction() as session:
        session.execute(update(Job).where(Job.id == submitted.id).values(failure_retry_count=99))
    finished = world.finish(world.claim_one(), Failed("no"))
    assert world.job(str(finished.follow_up_id)).due_at == now.now + timedelta(days=30)


def test_failures_between_blocks_give_a_chain_no_new_attempts(world: World, now: Clock) -> None:
    world.policy = jobs.Policy(cooldown_auto_retry_max=3)
    world.add_target("flaky", retry_times=5, retry_wait_sec=1)
    world.submit("flaky")
    blocks = 0
    for number in range(20):
        now.advance(100_000)
        claimed = world.claim()
        if not claimed:
            break
        blocked = number % 2 == 0
        blocks += blocked
        world.finish(claimed[0], Blocked("HTTP 429") if blocked else Failed("HTTP 500"))
    assert blocks == 4, "the first attempt and three retries"


def test_a_worker_whose_clock_is_fast_does_not_shut_the_key(world: World, now: Clock) -> None:
    world.add_target("spaced", interval_sec=20)
    world.submit("spaced")
    world.submit("news")
    world.finish(world.claim_one(), last_request_at=now.now + timedelta(hours=1))
    assert world.key().gap_until == now.now + timedelta(seconds=20)
    assert world.key().last_request_at == now.now


def test_an_id_that_exists_is_not_given_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.submit("news")
    ids = iter([first.id, "0123456789ab"])
    monkeypatch.setattr(secrets, "token_hex", lambda _length: next(ids))
    assert world.submit("law").id == "0123456789ab"
    assert world.job("0123456789ab").root_id == "0123456789ab"


def test_a_stop_at_the_time_limit_is_told_as_a_stop(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, 3, {}))
    world.cancel(submitted.id)
    assert world.finish(claimed, OutOfTime(5)) == jobs.Finished("cancelled")
    assert world.job(submitted.id).error_msg is None, "not: without completing a page"


def test_the_gap_between_jobs_holds_after_a_lost_worker_too(world: World, now: Clock) -> None:
    world.add_site("slow", "http://slow.test/", min_gap_sec=40)
    world.add_target("of_slow", "slow")
    world.submit("of_slow")
    world.claim_one()
    world.database.run(lambda session: jobs.free_dead(session, ["w1"]))
    now.advance(39)
    assert world.claim() == []
    now.advance(1)
    assert len(world.claim()) == 1


def test_a_submit_does_not_put_a_deep_key_in_front_again(world: World, now: Clock) -> None:
    """P3: with one thread, and a submit between any two runs, the other key would never have its turn."""
    world.add_site("other", "http://other.test/")
    world.add_target("else", "other")
    for _ in range(3):
        world.submit("news", source="schedule")
    now.advance(1)
    world.submit("else")
    [first] = world.claim(limit=1)
    now.advance(1)
    world.finish(first)
    world.submit("news", source="schedule")
    [second] = world.claim(limit=1)
    assert second.lease.rate_key == "other.test"


def test_a_running_job_whose_key_is_not_leased_is_recovered(world: World, now: Clock) -> None:
    """Its worker could neither renew nor finish, so that it is alive helps nobody."""
    submitted = world.submit("news")
    world.claim_one()
    world.life["w1"] = jobs.Life.ALIVE
    with world.database.transaction() as session:
        session.execute(
            update(RateKey).where(RateKey.key == KEY).values(status="idle", leased_by=None, retry_at=now.now)
        )
    [claimed] = world.claim("w2")
    assert (claimed.lease.job_id, claimed.job.attempt_count) == (submitted.id, 1)


def test_the_place_in_line_of_the_first_of_many(world: World, now: Clock) -> None:
    first = world.submit("news")
    for _ in range(5):
        now.advance(1)
        world.submit("law", source="schedule")
    again = world.submit("news")
    assert (again.id, again.position) == (first.id, 1)
    world.database.run(lambda session: jobs.move_to_front(session, world.jobs()[-1].id, by="anna"))
    assert world.submit("news").position == 2
    assert world.submit("law", force=True).position == 7


def test_moving_several_jobs_to_the_front_within_one_microsecond(world: World, now: Clock) -> None:
    ids = [world.submit("news", source="schedule").id for _ in range(4)]
    for job_id in (ids[2], ids[3], ids[1], ids[3]):
        world.database.run(lambda session, job_id=job_id: jobs.move_to_front(session, job_id, by="anna"))  # type: ignore[misc]
    order = []
    for _ in range(4):
        claimed = world.claim_one()
        order.append(claimed.lease.job_id)
        world.finish(claimed)
    assert order == [ids[3], ids[1], ids[2], ids[0]]


def test_all_keys_are_renewed_before_any_job(world: World) -> None:
    """The order of DESIGN section 5: whoever holds a key and waits for its job must not meet a renewal the other way."""
    world.add_site("second", "http://a.example.org/")
    world.add_target("news2", "second")
    for target in ("news", "news2"):
        world.submit(target)
    leases = [one.lease for one in world.claim()]
    assert len(leases) == 2
    changed: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE"):
            changed.append(statement.split()[1])

    event.listen(world.database.engine, "before_cursor_execute", note)
    lost = world.database.run(lambda session: jobs.renew(session, "w1", leases))
    event.remove(world.database.engine, "before_cursor_execute", note)
    assert lost == set()
    assert changed == ["rate_keys", "rate_keys", "jobs", "jobs"]


@pytest.mark.parametrize(
    "ending",
    [
        Failed("no"), Blocked("HTTP 429"), OutOfTime(60), OutOfHours(), Done(attention="Odd."),
        Failed("host_cooldown: HTTP 429"),
    ],
    ids=lambda ending: type(ending).__name__,
)  # fmt: skip
def test_a_cancelled_job_keeps_no_text_of_a_failure(world: World, ending: Ending) -> None:
    """A stop wins over every other outcome, and is no failure (P8)."""
    job_id = world.submit("news").id
    claimed = world.claim_one()
    world.cancel(job_id)
    finished = world.finish(claimed, ending)
    job = world.job(job_id)
    assert (finished.status, finished.follow_up_id) == ("cancelled", None)
    assert (job.status, job.error_msg, job.attention) == ("cancelled", None, None)


def test_a_worker_that_lost_its_lease_calls_no_key_stuck(world: World, now: Clock) -> None:
    def told() -> list[tuple[str, str | None]]:
        with world.database.reading() as session:
            return [(one.message, one.job_id) for one in session.scalars(select(KeyEvent))]

    job_id = world.submit("news").id
    claimed = world.claim_one()
    world.database.run(partial(jobs.note_stuck, lease=claimed.lease, message="it does not stop"))
    assert told() == [("it does not stop", job_id)]
    now.advance(61)
    again = world.claim_one("w2")
    with pytest.raises(LeaseLostError):
        world.database.run(partial(jobs.note_stuck, lease=claimed.lease, message="nor now"))
    world.finish(again)
    with pytest.raises(LeaseLostError):
        world.database.run(partial(jobs.note_stuck, lease=again.lease, message="nor now"))
    assert told() == [("it does not stop", job_id)]


def test_a_clock_that_was_set_back_runs_nothing_twice(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    now.advance(-3600)
    assert world.claim("w2") == []
    with world.database.heartbeat() as session:
        assert jobs.renew(session, "w1", [claimed.lease]) == set()
    assert world.finish(claimed).status == "done"
    assert world.submit("law").position == 1
    assert world.claim_one().lease.job_id != submitted.id


def test_a_clock_that_was_set_forward_takes_nothing_from_a_living_worker(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    world.life["w1"] = jobs.Life.ALIVE
    now.advance(3600)
    assert world.claim("w2") == []
    assert world.finish(claimed).status == "done"


def test_a_transaction_within_a_transaction_is_refused(database: Database) -> None:
    with (
        database.transaction(),
        pytest.raises(RuntimeError, match="open in this thread already"),
        database.transaction(),
    ):
        pass


def test_a_reading_session_has_one_view(world: World) -> None:
    world.submit("news")
    with world.database.reading() as session:
        before = session.query(Job).count()
        world.submit("law")
        assert session.query(Job).count() == before == 1
    assert len(world.jobs()) == 2
    assert world.jobs()[0].due_at == START
