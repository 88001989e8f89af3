"""The verbs of jobs and keys, one behaviour a test, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from tests.helpers.world import START, Clock, World, assert_settled
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError, LeaseLostError, NotFoundError
from webqueue.models import JobStatus, RateGroupRow, Site
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, OutOfTime


@pytest.fixture
def now() -> Iterator[Clock]:
    moving = Clock()
    with clock.replaced(moving):
        yield moving


@pytest.fixture
def world(database: Database, now: Clock) -> Iterator[World]:
    world = World(database)
    world.add_site()
    world.add_target("news")
    world.add_target("law")
    yield world
    with database.reading() as session:
        assert_settled(session)


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


def test_cancel_of_a_queued_job_is_at_once_and_it_never_runs(world: World) -> None:
    submitted = world.submit("news")
    assert world.cancel(submitted.id) == "cancelled"
    assert world.cancel(submitted.id) == "cancelled", "the answer repeats"
    assert world.claim() == []
    job = world.job(submitted.id)
    assert job.finished_at is not None
    assert job.stop_requested_by == "anna"


def test_a_job_cancelled_while_its_key_cools_down_does_not_run(world: World, now: Clock) -> None:
    """SEEDS C 1."""
    world.submit("news")
    retry = world.finish(world.claim_one(), Blocked("HTTP 429")).follow_up_id
    assert world.cancel(str(retry)) == "cancelled"
    now.advance(3600)
    assert world.claim() == []


@pytest.mark.parametrize("ending", [Done(), Failed("no"), Blocked("HTTP 429"), Cancelled(), OutOfTime(5)])
def test_a_stop_wins_over_every_outcome_and_starts_nothing(
    world: World, ending: Done | Failed | Blocked | Cancelled | OutOfTime
) -> None:
    world.add_target("retried", retry_times=2)
    submitted = world.submit("retried")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, 3, {}))
    assert world.cancel(submitted.id) == "cancelling"
    assert world.cancel(submitted.id) == "cancelling"
    assert world.database.run(lambda session: jobs.stop_requests(session, "w1")) == {submitted.id}
    assert world.finish(claimed, ending) == jobs.Finished("cancelled")
    assert [job.status for job in world.jobs()] == ["cancelled"]


def test_done_and_failed_jobs_cannot_be_cancelled(world: World) -> None:
    done = world.submit("news")
    world.finish(world.claim_one())
    with pytest.raises(ConflictError, match="is done already"):
        world.cancel(done.id)
    with pytest.raises(NotFoundError):
        world.cancel("000000000000")


def test_cancel_of_a_dead_workers_job_is_at_once(world: World) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    assert world.cancel(submitted.id, life=lambda _worker: jobs.Life.DEAD) == "cancelled"
    with pytest.raises(LeaseLostError):
        world.finish(claimed)


def test_cancel_of_a_job_whose_lease_has_ended_is_at_once(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    world.claim_one()
    now.advance(60)
    assert world.cancel(submitted.id) == "cancelled"
    assert world.job(submitted.id).status == "cancelled"


def test_three_recoveries_and_the_fourth_orphaning_fails(world: World, now: Clock) -> None:
    """SEEDS C 5."""
    submitted = world.submit("news")
    for attempt in range(1, 4):
        world.claim_one()
        now.advance(61)
        claimed = world.claim_one("w2")
        assert claimed.job.attempt_count == attempt
        assert f"(recovery attempt {attempt}/3)" in str(claimed.job.error_msg)
        world.hand_back(claimed)
    world.claim_one()
    now.advance(61)
    assert world.claim("w2") == []
    job = world.job(submitted.id)
    assert (job.status, job.attempt_count) == ("failed", 3)
    assert str(job.error_msg).endswith("abandoned after 3 restart recoveries")
    assert str(job.error_msg).count("restart_during_run") == 3, "annotations are appended"


def test_a_recovered_job_with_a_stop_requested_is_cancelled(world: World, now: Clock) -> None:
    """SEEDS C 12."""
    submitted = world.submit("news")
    world.claim_one()
    assert world.cancel(submitted.id) == "cancelling"
    assert world.database.run(lambda session: jobs.free_dead(session, ["w1"])) == [submitted.id]
    assert world.job(submitted.id).status == "cancelled"


def test_the_leases_of_a_dead_worker_are_freed_at_once_in_place(world: World) -> None:
    first, second = world.submit("news"), world.submit("law")
    world.claim_one()
    assert world.database.run(lambda session: jobs.free_dead(session, ["w1"])) == [first.id]
    assert world.claim_one("w2").lease.job_id == first.id
    assert world.job(second.id).status == "queued"


def test_a_silent_but_living_worker_gets_three_extensions(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    world.life["w1"] = jobs.Life.ALIVE
    for _ in range(3):
        now.advance(60)
        assert world.claim("w2") == []
    now.advance(60)
    assert world.claim_one("w2").job.attempt_count == 1
    with pytest.raises(LeaseLostError):
        world.finish(claimed)


def test_a_heartbeat_gives_extensions_anew(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    world.life["w1"] = jobs.Life.ALIVE
    for _ in range(5):
        now.advance(60)
        assert world.claim("w2") == []
        with world.database.heartbeat() as session:
            assert jobs.renew(session, "w1", [claimed.lease]) == set()


def test_extensions_end_with_the_time_limit(world: World, now: Clock) -> None:
    world.add_target("short", max_runtime_sec=30)
    world.submit("short")
    world.claim_one()
    world.life["w1"] = jobs.Life.ALIVE
    now.advance(60)
    assert world.claim("w2") == []
    now.advance(31)
    assert len(world.claim("w2")) == 1


def test_an_orphan_is_found_also_when_its_key_is_paused(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    world.claim_one()
    world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna", note="asked"))
    now.advance(61)
    assert world.claim("w2") == []
    assert world.job(submitted.id).status == "queued"


def test_a_worker_that_lost_its_lease_changes_nothing(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    stale = world.claim_one()
    now.advance(61)
    fresh = world.claim_one("w2")
    for verb in (
        lambda session: jobs.progress(session, stale.lease, current=5),
        lambda session: jobs.checkpoint(session, stale.lease, 5, {}),
        lambda session: jobs.fence(session, stale.lease),
        lambda session: jobs.add_log_lines(session, stale.lease, [(START, "info", "late")]),
        lambda session: jobs.finish(session, stale.lease, Done(), world.policy),
        lambda session: jobs.hand_back(session, stale.lease, stopped=True),
    ):
        with pytest.raises(LeaseLostError):
            world.database.run(verb)
    with world.database.heartbeat() as session:
        assert jobs.renew(session, "w1", [stale.lease]) == {stale.lease}
    job = world.job(submitted.id)
    assert (job.status, job.last_completed_page, job.leased_by) == ("running", 0, "w2")
    assert world.finish(fresh).status == "done"


def test_a_clean_stop_hands_back_with_the_checkpoint_and_costs_no_attempt(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, 4, {"next": "/p5"}))
    world.hand_back(claimed)
    again = world.claim_one("w2")
    assert (again.lease.job_id, again.job.attempt_count) == (submitted.id, 0)
    assert (again.job.last_completed_page, again.job.checkpoint) == (4, {"next": "/p5"})


def test_the_key_of_an_unstopped_handler_stays_shut_ten_seconds(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.hand_back(session, claimed.lease, stopped=False))
    now.advance(9)
    assert world.claim() == []
    now.advance(1)
    assert len(world.claim()) == 1


def test_a_stop_between_heartbeat_and_hand_back_wins(world: World) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    world.cancel(submitted.id)
    finished = world.hand_back(claimed)
    assert finished.status == "cancelled"


def test_pause_and_resume_of_a_key(world: World) -> None:
    world.submit("news")
    world.database.run(
        lambda session: jobs.pause_key(session, "www.example.org", by="anna", note="owner asked")
    )
    assert world.claim() == []
    world.submit("law")
    assert world.claim() == [], "a submit to a paused key does not open it"
    key = world.key()
    assert (key.paused_by, key.paused_note) == ("anna", "owner asked")
    assert key.is_paused is False, "the mixin's pause is not the key's"
    world.database.run(lambda session: jobs.resume_key(session, "www.example.org", by="anna"))
    assert len(world.claim()) == 1


def test_a_pause_during_a_lease_lets_the_run_end(world: World) -> None:
    world.submit("news")
    world.submit("law")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
    assert world.finish(claimed).status == "done"
    assert world.claim() == []


def test_resume_and_lift_during_a_run_start_no_second_one(world: World) -> None:
    world.submit("news")
    world.submit("law")
    world.claim_one()
    world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
    world.database.run(lambda session: jobs.resume_key(session, "www.example.org", by="anna"))
    world.database.run(lambda session: jobs.lift_cooldown(session, "www.example.org", by="anna"))
    assert world.claim("w2") == []


def test_pause_all_is_one_stored_flag(world: World, now: Clock) -> None:
    world.submit("news")
    world.database.run(lambda session: jobs.pause_all(session, by="anna"))
    assert world.claim() == []
    world.database.run(lambda session: jobs.resume_all(session, by="anna"))
    assert len(world.claim()) == 1


def test_move_to_front(world: World, now: Clock) -> None:
    world.submit("news", source="schedule")
    now.advance(1)
    last = world.submit("law")
    now.advance(1)
    world.database.run(lambda session: jobs.move_to_front(session, last.id, by="anna"))
    claimed = world.claim_one()
    assert claimed.lease.job_id == last.id
    with pytest.raises(ConflictError, match="only a queued job"):
        world.database.run(lambda session: jobs.move_to_front(session, last.id, by="anna"))


def test_move_to_front_of_a_delayed_retry_makes_it_due(world: World, now: Clock) -> None:
    world.add_target("flaky", retry_times=1)
    world.submit("flaky")
    retry = world.finish(world.claim_one(), Failed("no")).follow_up_id
    assert world.claim() == []
    world.database.run(lambda session: jobs.move_to_front(session, str(retry), by="anna"))
    assert world.claim_one().lease.job_id == retry


def test_retry_by_hand_goes_on_from_the_checkpoint(world: World) -> None:
    submitted = world.submit("news", force=True)
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, 9, {"a": 1}))
    with pytest.raises(ConflictError, match="only a failed or cancelled"):
        world.database.run(lambda session: jobs.retry(session, submitted.id, by="anna"))
    world.finish(claimed, Failed("no"))
    retried = world.database.run(lambda session: jobs.retry(session, submitted.id, by="anna"))
    job = world.job(retried.id)
    assert (job.source, job.force, job.retry_of) == ("manual", True, submitted.id)
    assert (job.last_completed_page, job.from_page, job.checkpoint) == (9, 10, {"a": 1})
    again = world.database.run(lambda session: jobs.retry(session, submitted.id, by="anna"))
    assert (again.id, again.deduplicated) == (retried.id, True), "a double click makes one job"


def test_out_of_time_goes_on_at_the_end_of_the_line_when_it_advanced(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    waiting = world.submit("law")
    claimed = world.claim_one()
    now.advance(5)
    world.database.run(lambda session: jobs.checkpoint(session, claimed.lease, 2, {}))
    finished = world.finish(claimed, OutOfTime(max_runtime_sec=4))
    assert finished.status == "done"
    following = world.job(str(finished.follow_up_id))
    assert (following.source, following.last_completed_page) == ("continue", 2)
    assert following.root_id == submitted.id
    assert world.claim_one().lease.job_id == waiting.id


def test_out_of_time_without_a_page_fails(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    claimed = world.claim_one()
    now.advance(5)
    finished = world.finish(claimed, OutOfTime(max_runtime_sec=4))
    assert finished == jobs.Finished("failed")
    assert "time limit of 4 s" in str(world.job(submitted.id).error_msg)


def test_a_host_cooldown_in_a_result_cools_the_key_but_the_job_stays_done(world: World, now: Clock) -> None:
    submitted = world.submit("news")
    finished = world.finish(world.claim_one(), Done({"pages": [{"note": "host_cooldown: www.example.org"}]}))
    assert finished == jobs.Finished("done")
    assert world.key().cooldown_until == now.now + timedelta(seconds=600)
    result = world.job(submitted.id).result
    assert result is not None
    assert result["cooldown_interval_adjustment"]["status"] == "updated"


def test_the_interval_holds_between_jobs_and_after_an_orphan(world: World, now: Clock) -> None:
    world.add_target("spaced", interval_sec=20)
    world.submit("spaced")
    world.submit("spaced", force=True)
    world.submit("news")
    now.advance(1)
    world.finish(world.claim_one(), last_request_at=now.now)
    now.advance(19)
    assert world.claim() == []
    now.advance(1)
    claimed = world.claim_one()
    assert claimed.last_request_at == START + timedelta(seconds=1)
    world.database.run(lambda session: jobs.free_dead(session, ["w1"]))
    now.advance(19)
    assert world.claim() == []
    now.advance(1)
    assert len(world.claim()) == 1


def test_the_largest_gap_and_cooldown_of_the_sites_of_a_key_hold(world: World, now: Clock) -> None:
    world.add_site("a", "http://a.test/", rate_key="shared", min_gap_sec=5, cooldown_sec=30)
    world.add_site("b", "http://b.test/", rate_key="shared", min_gap_sec=40, cooldown_sec=900)
    world.add_target("of_a", "a")
    world.submit("of_a")
    world.finish(world.claim_one())
    assert world.key("shared").gap_until == now.now + timedelta(seconds=40)
    now.advance(40)
    world.submit("of_a")
    world.finish(world.claim_one(), Blocked("HTTP 429"))
    assert world.key("shared").cooldown_until == now.now + timedelta(seconds=900)


def test_queued_jobs_follow_a_site_that_gets_another_key_and_the_running_one_stays(world: World) -> None:
    running = world.submit("news")
    claimed = world.claim_one()
    waiting = world.submit("law")

    def change(session: Session) -> None:
        session.get_one(Site, "example").rate_key = "behind_one_firewall"
        session.flush()
        jobs.rekey_site(session, "example")

    world.database.run(change)
    assert world.job(waiting.id).rate_key == "behind_one_firewall"
    assert world.job(running.id).rate_key == "www.example.org"
    assert world.claim_one("w2").lease.job_id == waiting.id
    finished = world.finish(claimed, Blocked("HTTP 429"))
    assert world.job(str(finished.follow_up_id)).rate_key == "behind_one_firewall"


def test_a_rate_group_shares_a_key_and_may_keep_its_interval(world: World) -> None:
    with world.database.transaction() as session:
        session.execute(
            update(RateGroupRow).values(grow_interval=False, cooldown_factor=1)
        )  # the shipped one
    world.add_site("one", "http://www.gd.gov.cn/", adapter="gkmlpt")
    world.add_site("two", "http://wjk.gd.gov.cn/", adapter="gkmlpt")
    world.add_target("t1", "one")
    world.add_target("t2", "two")
    submitted = world.submit("t1")
    assert (submitted.rate_key, world.submit("t2").rate_key) == ("gd_gkmlpt_shared", "gd_gkmlpt_shared")
    finished = world.finish(world.claim_one(), Blocked("HTTP 429"))
    result = world.job(submitted.id).result
    assert result is not None
    assert "cooldown_interval_adjustment" not in result
    assert finished.follow_up_id is not None


def test_a_skipped_tick_leaves_a_row_once(world: World) -> None:
    skipped = world.database.run(lambda session: jobs.skip_tick(session, "news", START, "overlap"))
    assert skipped is not None
    job = world.job(skipped)
    assert (job.status, job.error_msg, job.tick) == (JobStatus.SKIPPED, "overlap", START)
    assert world.database.run(lambda session: jobs.skip_tick(session, "news", START, "again")) is None
    assert world.submit("news", source="schedule", tick=START).id == skipped
    assert world.claim() == []


def test_a_tick_makes_one_job(world: World) -> None:
    first = world.submit("news", source="schedule", tick=START)
    second = world.submit("news", source="schedule", tick=START)
    assert (second.id, second.deduplicated) == (first.id, True)


def test_a_claim_verb_of_the_protocol_refuses_a_job(world: World) -> None:
    world.submit("news")
    with world.database.transaction() as session:
        job = session.merge(world.jobs()[0])
        with pytest.raises(Exception, match="section 5"):
            job.claim_processing_lock()
