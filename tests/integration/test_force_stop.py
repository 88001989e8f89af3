"""Force stop: what it asks for, what it answers, and where it is offered. What it does is tested with real processes."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask

from tests.helpers.admin import running_job
from tests.helpers.api import ApiClient, problem
from tests.helpers.browsing import Browser
from tests.helpers.command_line import command_line
from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from tests.integration.test_worker_runs import final, log_of
from webqueue import clock, jobs, queries
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.errors import ConflictError, NotFoundError
from webqueue.handlers.command.handler import CommandHandler
from webqueue.queries.stopping import Stopping, stopping
from webqueue.settings import Settings


def force(world: World, job_id: str, **more: object) -> str:
    return world.database.run(lambda session: jobs.force_stop(session, job_id, by="anna", **more))  # type: ignore[arg-type]


def forced(world: World, worker: str = "w1") -> set[str]:
    return world.database.run(lambda session: jobs.force_requests(session, worker))


def state_of(world: World, seq: int) -> Stopping | None:
    with world.database.reading() as session:
        return stopping(session, seq)


def test_it_asks_for_a_cancel_first_and_repeats_its_answer(world: World) -> None:
    job = world.submit("news")
    with pytest.raises(ConflictError, match="is queued"):
        force(world, job.id)
    claimed = world.claim_one()
    with pytest.raises(ConflictError, match="cancel it first"):
        force(world, job.id)
    assert world.cancel(job.id) == "cancelling"
    assert forced(world) == set()
    assert [force(world, job.id), force(world, job.id)] == ["cancelling", "cancelling"]
    assert forced(world) == {job.id}
    assert forced(world, "another") == set()
    with world.database.reading() as session:
        lines = [line.message for line in queries.job_log_tail(session, job.seq).lines]
    assert lines.count("force stop requested by anna") == 1
    assert world.finish(claimed) == jobs.Finished("cancelled")
    assert force(world, job.id) == "cancelled"
    done = world.submit("news")
    world.finish(world.claim_one())
    with pytest.raises(ConflictError, match="is done"):
        force(world, done.id)
    with pytest.raises(NotFoundError):
        force(world, "000000000000")


@pytest.mark.parametrize("lost_by", ["death", "time"])
def test_a_job_that_nobody_runs_any_more_is_cancelled_at_once(world: World, now: Clock, lost_by: str) -> None:
    job = world.submit("news")
    world.claim_one()
    assert world.cancel(job.id) == "cancelling"
    if lost_by == "time":
        now.advance(61)
        assert force(world, job.id) == "cancelled"
    else:
        assert force(world, job.id, life=lambda _worker: jobs.Life.DEAD) == "cancelled"
    assert world.job(job.id).status == "cancelled"
    assert world.key().status == "idle"


def test_it_is_offered_after_half_a_minute_and_once(world: World, now: Clock) -> None:
    job = world.submit("news")
    assert state_of(world, job.seq) is None, "it does not run"
    claimed = world.claim_one()
    world.cancel(job.id)
    versions = []
    for seconds, offered, stuck in ((29, False, False), (1, True, False), (31, True, True)):
        now.advance(seconds)
        world.database.run(lambda session: jobs.renew(session, "w1", [claimed.lease]))
        state = state_of(world, job.seq)
        assert state is not None
        assert (state.offers_force, state.stuck, state.isolated) == (offered, stuck, False)
    for _ in range(2):
        with world.database.reading() as session:
            versions.append(queries.job_version(session, job.seq))
    assert versions[0] == versions[1]
    force(world, job.id)
    state = state_of(world, job.seq)
    assert state is not None
    assert (state.offers_force, state.forced_by) == (False, "anna")


def test_the_page_of_a_job_changes_when_it_may_be_forced_and_when_it_is_stuck(
    world: World, now: Clock
) -> None:
    """Nothing but time passes: without it a poll would answer 204 for ever."""
    job = world.submit("news")
    world.claim_one()
    world.cancel(job.id)
    seen = []
    for seconds in (0, 29, 1, 29, 2):
        now.advance(seconds)
        with world.database.reading() as session:
            seen.append((queries.job_version(session, job.seq), queries.state_version(session)))
    assert seen[0][0] == seen[1][0] != seen[2][0] == seen[3][0] != seen[4][0]
    assert seen[0][1] == seen[3][1] != seen[4][1]


def test_a_run_in_a_process_of_its_own_is_known_by_its_group_until_the_next_run(world: World) -> None:
    job = world.submit("news")
    claimed = world.claim_one()
    world.database.run(lambda session: jobs.note_process_group(session, claimed.lease, 2**31))
    state = state_of(world, job.seq)
    assert state is not None
    assert state.isolated
    world.hand_back(claimed)
    world.claim_one()
    state = state_of(world, job.seq)
    assert state is not None
    assert not state.isolated


def test_who_waits_behind_a_stuck_job_is_told(world: World, now: Clock) -> None:
    running, waiting = world.submit("news"), world.submit("news", force=True)
    claimed = world.claim_one()

    def told() -> str:
        with world.database.reading() as session:
            found = queries.get_job(session, waiting.id).waiting
        assert found is not None
        return found.message

    assert told() == f"Next, behind #{running.seq} news, which runs in www.example.org now."
    version = world.database.run(lambda session: queries.job_version(session, running.seq))
    now.advance(1)
    world.database.run(lambda session: jobs.note_stuck(session, claimed.lease, "it does not stop"))
    assert told() == (
        f"Next, behind #{running.seq} news, which does not stop; www.example.org stays shut until it has."
    )
    assert world.database.run(lambda session: queries.job_version(session, running.seq)) != version


class TestWhereItIsOffered:
    """Pages, API and command line, on SQLite."""

    @pytest.fixture
    def engine_name(self) -> str:
        return "sqlite"

    @pytest.fixture
    def app(self, settings: Settings, database: Database) -> Flask:
        made = create_app(settings, database)
        made.testing = True
        return made

    @pytest.fixture
    def cancelling(self, database: Database) -> str:
        """The id of a job that was cancelled 31 s ago, and runs."""
        world = World(database)
        world.add_site()
        world.add_target("news")
        asked = {
            "stop_requested": True,
            "stop_requested_at": clock.local_now() - timedelta(seconds=31),
            "stop_requested_by": "ann",
        }
        return database.run(lambda session: running_job(session, "news", **asked).id)

    def test_the_page_asks_says_what_it_does_and_does_it(
        self, app: Flask, database: Database, cancelling: str
    ) -> None:
        browser = Browser(app, database)
        page = browser.get(f"/jobs/{cancelling}").text
        assert 'id="force-stop"' in page
        assert "a thread cannot be killed" in page
        asked = browser.post(f"/jobs/{cancelling}/force-stop")
        assert asked.status_code == 200
        assert "Force stop?" in asked.text
        assert "its whole worker ends instead" in asked.text
        assert World(database).job(cancelling).force_requested_at is None
        answer = browser.post(f"/jobs/{cancelling}/force-stop", confirmed="yes")
        assert answer.status_code == 303
        assert World(database).job(cancelling).force_requested_by == "admin"
        page = browser.get(f"/jobs/{cancelling}").text
        assert 'id="force-stop"' not in page
        assert "hands its other jobs back and ends" in page

    def test_a_viewer_sees_no_button_and_may_not(
        self, app: Flask, database: Database, cancelling: str
    ) -> None:
        browser = Browser(app, database, role="viewer")
        assert 'id="force-stop"' not in browser.get(f"/jobs/{cancelling}").text
        assert browser.post(f"/jobs/{cancelling}/force-stop", confirmed="yes").status_code == 403

    def test_a_run_that_goes_on_after_its_time_limit_is_shown(self, app: Flask, database: Database) -> None:
        world = World(database)
        world.add_site()
        world.add_target("news")
        job = database.run(lambda session: running_job(session, "news"))
        lease = jobs.Lease(job.rate_key, job.seq, job.id, job.lease_token, "worker-1")
        browser = Browser(app, database)
        assert "It does not stop." not in browser.get(f"/jobs/{job.id}").text
        database.run(lambda session: jobs.note_stuck(session, lease, "it does not stop"))
        assert "It does not stop." in browser.get(f"/jobs/{job.id}").text

    def test_the_api(self, database: Database, cancelling: str) -> None:
        client = ApiClient(database)
        path = f"jobs/{cancelling}/force-stop"
        problem(client.call("POST", path, role="viewer"), 403)
        answer = client.call("POST", path, role="operator")
        assert (answer.status_code, answer.json["job"]["status"]) == (200, "cancelling")  # type: ignore[index]
        assert World(database).job(cancelling).force_requested_by == "token:operator"
        other = client.call("POST", "targets/news/run", {"force": True}).json["job"]  # type: ignore[index]
        problem(client.call("POST", f"jobs/{other['id']}/force-stop"), 409)
        problem(client.call("POST", f"jobs/{'0' * 12}/force-stop"), 404)

    def test_the_command_line_asks(
        self,
        instance: Path,
        database: Database,
        cancelling: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        with command_line(monkeypatch, capsys, [("WEBQUEUE_INSTANCE_PATH", str(instance))]) as line:
            asked = line("jobs", "force-stop", cancelling)
            assert asked.code != 0
            assert "a thread cannot be killed" in asked.out + asked.err
            assert World(database).job(cancelling).force_requested_at is None
            told = line.done("jobs", "force-stop", cancelling, "--yes")
            assert told.lines[0] == "cancelling"
            assert "its whole worker ends instead" in told.lines[1]
            assert told.lines[2:] == [f"`webqueue jobs show {cancelling}` tells when it is cancelled."]
            assert World(database).job(cancelling).force_requested_at is not None


def test_a_command_is_killed_by_it_whatever_its_own_grace_is(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")
    world = World(database)
    world.add_site()
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    world.add_target("loop", handler="command", params={"argv": ["sh", "-c", script], "grace_sec": 300})
    with pool_of(database, settings, {"command": CommandHandler()}):
        job_id = world.submit("loop").id
        wait_until(lambda: "ready" in str(log_of(world, world.job(job_id))), timeout=20)
        assert world.job(job_id).process_group is not None
        assert world.cancel(job_id) == "cancelling"
        force(world, job_id)
        job = final(world, job_id, timeout=20)
    assert (job.status, job.result and job.result["exit_code"]) == ("cancelled", -signal.SIGKILL)
