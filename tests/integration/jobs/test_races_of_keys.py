"""Verbs that meet over several keys, and over a site that changes its key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from tests.helpers.interleaving import Background, Meeting
from tests.helpers.verbs import (
    Verb,
    both_ways,
    change_key,
    claim,
    meet,
    rekey,
    settled,
    submit,
)
from tests.helpers.world import Clock, World
from webqueue import jobs, jobs_sql
from webqueue.errors import ConflictError, LeaseLostError
from webqueue.outcomes import Done


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
