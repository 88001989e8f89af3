"""How runs end: by a cancel, by a worker that is dead, silent or overtaken, by a clean stop."""

from __future__ import annotations

import pytest

from tests.helpers.world import START, Clock, World
from webqueue import jobs
from webqueue.errors import ConflictError, LeaseLostError, NotFoundError
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, OutOfTime


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
