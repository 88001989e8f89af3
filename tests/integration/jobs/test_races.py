"""Verbs that meet: each interleaving that an earlier reading of DESIGN section 5 got wrong, stepped one by one.

The first verb has done everything but its COMMIT when the second begins in another connection. On PostgreSQL the second
then waits for a row lock, on SQLite for the one writer.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.helpers.interleaving import Meeting
from tests.helpers.verbs import (
    KEY,
    Verb,
    both_ways,
    cancel,
    claim,
    finish,
    lift,
    meet,
    pause,
    rekey,
    renew,
    resume,
    settled,
    submit,
    world_run,
)
from tests.helpers.world import START, Clock, World
from webqueue import clock, documents, jobs
from webqueue.errors import ConflictError, LeaseLostError
from webqueue.leases import RETRY_AT_MAX
from webqueue.models import Document, RateKey
from webqueue.outcomes import Blocked


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
