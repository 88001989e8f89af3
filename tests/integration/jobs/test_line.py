"""The line of a key: submitting, order, retries and blocks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.helpers.world import Clock, World
from webqueue import jobs
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.outcomes import Blocked, Checkpoint, Failed


def test_submit_returns_a_twelve_hex_id_and_the_place_in_line(world: World) -> None:
    first, second = world.submit("news"), world.submit("law")
    assert len(first.id) == 12
    assert int(first.id, 16) >= 0
    assert (first.position, second.position) == (1, 2)
    assert first.rate_key == "www.example.org"


def test_submit_refuses_unknown_targets_and_pages(world: World) -> None:
    with pytest.raises(NotFoundError, match="no target 'nothing'"):
        world.submit("nothing")
    with pytest.raises(InvalidInputError, match="from_page"):
        world.submit("news", from_page=-1)


def test_a_trial_that_is_retried_is_one_again(world: World) -> None:
    """Who tries a target does not expect it to store documents, or to be told of a run that stands already."""
    world.submit("news", source="try")
    first = world.claim_one()
    world.finish(first, Failed("no link"))
    world.submit("news")
    again = world.database.run(lambda session: jobs.retry(session, first.job.id, by="anna"))
    assert not again.deduplicated
    job = world.job(again.id)
    assert (job.source, job.retry_of) == ("try", first.job.id)


@pytest.mark.parametrize("source", ["manual", "api"])
def test_an_equal_run_is_named_instead_of_added(world: World, source: str) -> None:
    standing = world.submit("news", source=source)
    again = world.submit("news", source=source)
    assert (again.id, again.deduplicated) == (standing.id, True)
    assert not world.submit("news", source=source, force=True).deduplicated
    assert not world.submit("news", source=source, from_page=3).deduplicated
    assert world.claim_one().lease.job_id == standing.id
    assert world.submit("news", source=source).id == standing.id, "a running one counts too"


@pytest.mark.parametrize("source", ["schedule", "try"])
def test_ticks_and_trials_never_deduplicate(world: World, source: str) -> None:
    world.submit("news")
    assert not world.submit("news", source=source).deduplicated


def test_one_key_runs_one_job_in_the_order_of_due_time_and_number(world: World, now: Clock) -> None:
    ids = [world.submit(target).id for target in ("news", "law")]
    first = world.claim_one()
    assert first.lease.job_id == ids[0]
    assert world.claim("w2") == [], "P1: the key is leased"
    world.finish(first)
    assert world.claim_one("w2").lease.job_id == ids[1]


def test_other_keys_run_meanwhile(world: World) -> None:
    world.add_site("other", "http://other.test/")
    world.add_target("else", "other")
    world.submit("news")
    world.submit("else")
    assert {one.lease.rate_key for one in world.claim()} == {"www.example.org", "other.test"}


def test_a_deep_key_goes_to_the_back_of_the_line(world: World, now: Clock) -> None:
    world.add_site("other", "http://other.test/")
    world.add_target("else", "other")
    for _ in range(3):
        world.submit("news", source="schedule")
    now.advance(1)
    world.submit("else")
    [first] = world.claim(limit=1)
    now.advance(1)
    world.finish(first)
    [second] = world.claim(limit=1)
    assert second.lease.rate_key == "other.test"


def test_a_job_due_later_never_holds_up_one_that_is_due(world: World, now: Clock) -> None:
    world.add_target("slow", retry_times=2, retry_wait_sec=300)
    world.submit("slow")
    world.finish(world.claim_one(), Failed("no"))
    due = world.submit("news")
    assert world.claim_one().lease.job_id == due.id


def test_a_failed_job_is_retried_twice_waiting_twice_as_long(world: World, now: Clock) -> None:
    world.add_target("flaky", retry_times=2, retry_wait_sec=300)
    world.submit("flaky")
    for wait in (300, 600):
        claimed = world.claim_one()
        finished = world.finish(claimed, Failed("HTTP 500"))
        assert finished.follow_up_id is not None
        retry = world.job(finished.follow_up_id)
        assert (retry.source, retry.retry_of) == ("retry", claimed.job.id)
        assert retry.due_at == now.now + timedelta(seconds=wait)
        assert world.claim() == []
        now.advance(wait)
    assert world.finish(world.claim_one(), Failed("HTTP 500")).follow_up_id is None
    assert [job.status for job in world.jobs()] == ["failed"] * 3
    assert len({job.root_id for job in world.jobs()}) == 1


def test_a_block_cools_the_key_and_queues_the_retry_in_one_transaction(world: World, now: Clock) -> None:
    submitted = world.submit("news", force=True)
    claimed = world.claim_one()
    blocked = Blocked(
        "HTTP 429 from www.example.org", retry_after=30, checkpoint=Checkpoint(7, {"next": "x"})
    )
    finished = world.finish(claimed, blocked)
    job = world.job(submitted.id)
    assert job.status == "failed"
    assert job.error_msg == f"cooldown_abort; auto_retry_job={finished.follow_up_id}"
    assert job.result is not None
    assert job.result["auto_retry"] == {
        "status": "queued",
        "job_id": finished.follow_up_id,
        "resume_from_page": 7,
        "cooldown_retry_count": 1,
        "max_retries": 12,
        "delay_sec": 600,
    }
    assert job.result["cooldown_interval_adjustment"] == {
        "target_code": "news",
        "old_interval_sec": 0,
        "new_interval_sec": 11,
        "status": "updated",
    }
    assert world.target("news").learned_interval_sec == 11
    assert world.key().cooldown_until == now.now + timedelta(seconds=600)
    assert world.key().cooldown_cause == "HTTP 429 from www.example.org"
    retry = world.job(str(finished.follow_up_id))
    assert (retry.source, retry.force, retry.cooldown_retry_count) == ("retry", True, 1)
    assert (retry.last_completed_page, retry.from_page, retry.checkpoint) == (7, 8, {"next": "x"})
    now.advance(599)
    assert world.claim() == []
    now.advance(1)
    assert world.claim_one().lease.job_id == retry.id


def test_a_server_that_always_blocks_gets_thirteen_attempts_at_most(world: World, now: Clock) -> None:
    world.submit("news")
    for _ in range(13):
        now.advance(8 * 3600)
        world.finish(world.claim_one(), Blocked("HTTP 503"))
    now.advance(8 * 3600)
    assert world.claim() == []
    assert len(world.jobs()) == 13
    last = world.jobs()[-1]
    assert last.error_msg == "cooldown_abort; auto_retry_max_reached"
    assert last.result is not None
    assert last.result["auto_retry"] == {
        "status": "max_reached",
        "cooldown_retry_count": 12,
        "max_retries": 12,
    }


def test_a_running_cooldown_is_never_shortened(world: World, now: Clock) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429", retry_after=3600))
    until = world.key().cooldown_until
    world.database.run(lambda session: jobs.lift_cooldown(session, "www.example.org", by="anna"))
    assert world.key().cooldown_until is None
    world.finish(world.claim_one(), Blocked("HTTP 429", retry_after=3600))
    assert world.key().cooldown_until == until
    assert world.key().consecutive_blocks == 2, "lifting forgives nothing"


def test_lifting_a_cooldown_leaves_the_gap(world: World, now: Clock) -> None:
    world.add_target("spaced", interval_sec=50)
    world.submit("spaced")
    world.finish(world.claim_one(), Blocked("HTTP 429"), last_request_at=now.now)
    world.database.run(lambda session: jobs.lift_cooldown(session, "www.example.org", by="anna"))
    now.advance(49)
    assert world.claim() == []
    now.advance(1)
    assert len(world.claim()) == 1


def test_a_clean_run_forgives_blocks_and_shrinks_the_interval_after_three(world: World, now: Clock) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429"))
    assert world.target("news").learned_interval_sec == 11
    learned = []
    for _ in range(6):
        now.advance(3600)
        for claimed in world.claim():
            world.finish(claimed)
        learned.append(world.target("news").learned_interval_sec)
        world.submit("news")
    assert learned[:3] == [11, 11, 11]
    assert learned[3] is not None
    assert learned[3] < 11
    assert world.key().consecutive_blocks == 0
