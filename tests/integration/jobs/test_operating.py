"""What a person does to keys and jobs; time limits, gaps, sites that move, and ticks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from tests.helpers.world import START, Clock, World
from webqueue import jobs
from webqueue.errors import ConflictError
from webqueue.models import JobStatus, RateGroupRow, Site
from webqueue.outcomes import Blocked, Done, Failed, OutOfTime


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
