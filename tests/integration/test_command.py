"""`command` targets run by a real worker: output, marks, stops, ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from tests.integration.test_process_group import lives
from webqueue.database import Database
from webqueue.errors import ConflictError
from webqueue.handlers.command import CommandHandler
from webqueue.models import Document, Job, JobLog
from webqueue.settings import Settings


@pytest.fixture(autouse=True)
def _commands_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")


@pytest.fixture
def engine_name() -> str:
    """The statements are those of every handler; the marks that reach the database run on both below."""
    return "sqlite"


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    return world


@pytest.fixture
def pool(world: World, settings: Settings) -> Iterator[None]:
    with pool_of(world.database, settings, {"command": CommandHandler()}):
        yield


def script(world: World, text: str, **more: Any) -> str:
    """A target that runs a script of the shell."""
    values = {"params": {"argv": ["sh", "-c", text], **more.pop("params", {})}, **more}
    return world.add_target("script", handler="command", **values)


def run(world: World, **more: Any) -> Job:
    return ended(world, world.submit("script", **more).id)


def ended(world: World, job_id: str) -> Job:
    def found() -> Job | None:
        job = world.job(job_id)
        return job if job.finished_at is not None else None

    job = wait_until(found, timeout=20, message=f"job {job_id} to end")
    assert job is not None
    return job


def log_of(world: World, job: Job) -> list[tuple[str, str]]:
    with world.database.reading() as session:
        lines = session.scalars(select(JobLog).where(JobLog.job_seq == job.seq).order_by(JobLog.id))
        return [(line.level, line.message) for line in lines]


@pytest.mark.usefixtures("pool")
class TestEnds:
    def test_exit_code_0_is_done(self, world: World) -> None:
        script(world, "echo one; echo two")
        job = run(world)
        assert (job.status, job.result) == ("done", {"exit_code": 0, "lines": 2})
        assert log_of(world, job) == [("info", "one"), ("info", "two")]

    def test_another_code_fails_with_the_last_errors(self, world: World) -> None:
        script(world, "echo fine; echo 'disk full' >&2; exit 3")
        job = run(world)
        assert job.status == "failed"
        assert job.error_msg == "The command 'sh' ended with exit code 3. Its last errors:\ndisk full"
        assert job.result == {"exit_code": 3, "lines": 2, "stderr": ["disk full"]}

    def test_a_signal_is_named(self, world: World) -> None:
        script(world, "kill -SEGV $$")
        assert "was ended by SIGSEGV" in (run(world).error_msg or "")

    def test_a_program_that_is_not_there(self, world: World) -> None:
        world.add_target("script", handler="command", params={"argv": ["no-such-program"]})
        assert "no-such-program: No such file or directory" in (run(world).error_msg or "")

    def test_a_folder_that_is_not_there(self, world: World) -> None:
        script(world, "true", params={"cwd": "/no/such/folder"})
        job = run(world)
        assert job.status == "failed"
        assert "/no/such/folder" in (job.error_msg or "")

    def test_no_shell_reads_the_arguments(self, world: World) -> None:
        world.add_target("script", handler="command", params={"argv": ["echo", "$HOME; *", "|", "`id`"]})
        assert log_of(world, run(world)) == [("info", "$HOME; * | `id`")]

    def test_the_key_keeps_its_distance_after_a_command(self, world: World) -> None:
        script(world, "true", interval_sec=600.0)
        job = run(world)
        key = world.key()
        assert key.last_request_at is not None
        assert job.started_at is not None
        assert key.last_request_at >= job.started_at
        assert key.gap_until is not None
        assert (key.gap_until - key.last_request_at).total_seconds() == 600


@pytest.mark.usefixtures("pool")
class TestOutput:
    def test_a_flood_and_a_line_of_a_megabyte(self, world: World) -> None:
        text = "yes x | head -n 100000; head -c 1000000 /dev/zero | tr '\\0' z; echo; printf 'caf\\351\\033[2J'; exit 1"
        script(world, text)
        job = run(world)
        assert job.result is not None
        assert job.result["lines"] == 100_002
        lines = log_of(world, job)
        assert len(lines) < 2_000
        told = sum(int(message.split()[0].replace(",", "")) for level, message in lines if level == "warning")
        written = [message for level, message in lines if level == "info"]
        assert told + len(written) == 100_002
        assert job.result["lines_left_out"] == told
        assert max(map(len, written)) < 2_100

    def test_the_environment_has_the_facts_and_no_secret(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WEBQUEUE_DATABASE_URL", "postgresql://me:secret@db/x")
        monkeypatch.setenv("OTHER_SECRET", "secret")
        monkeypatch.setenv("WEBQUEUE_CONTACT", "me@example.org")
        script(world, "env", params={"env": {"MINE": "yes"}}, interval_sec=0.5)
        job = run(world, force=True, from_page=5)
        lines = dict(message.split("=", 1) for _, message in log_of(world, job))
        assert "secret" not in str(lines)
        assert lines["MINE"] == "yes"
        assert lines["PATH"].startswith(os.environ["PATH"])
        facts = {name: value for name, value in lines.items() if name.startswith("WEBQUEUE_")}
        assert facts == {
            "WEBQUEUE_JOB": job.id,
            "WEBQUEUE_JOB_SEQ": str(job.seq),
            "WEBQUEUE_ROOT_JOB": job.id,
            "WEBQUEUE_SOURCE": "api",
            "WEBQUEUE_FORCE": "1",
            "WEBQUEUE_TARGET": "script",
            "WEBQUEUE_SITE": "example",
            "WEBQUEUE_BASE_URL": "http://www.example.org/",
            "WEBQUEUE_RATE_KEY": "www.example.org",
            "WEBQUEUE_INTERVAL_SEC": "0.5",
            "WEBQUEUE_USER_AGENT": facts["WEBQUEUE_USER_AGENT"],
            "WEBQUEUE_CHECKPOINT": '{"page": 4}',
            "WEBQUEUE_CHECKPOINT_PAGE": "4",
        }
        assert "me@example.org" in facts["WEBQUEUE_USER_AGENT"]


@pytest.mark.usefixtures("pool")
class TestMarks:
    @pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
    def engine_name(self, request: pytest.FixtureRequest) -> str:
        name: str = request.param
        return name

    def test_they_reach_the_job(self, world: World, tmp_path: Path) -> None:
        (tmp_path / "a.bin").write_bytes(b"\0\1\2")
        script(
            world,
            'echo \'::progress 3/40 third\'; echo \'::checkpoint {"page": 3, "cursor": "x\\u0000y"}\'; '
            'echo \'::document {"url": "/a", "title": "A", "text": "about a\\u0000"}\'; '
            'echo \'::document {"url": "/b", "file": "a.bin", "content_type": "application/pdf"}\' >&2; '
            'echo \'::checkpoint three\'; echo \'::document {"url": "/c", "file": "missing"}\'; echo \'::unknown\'',
            params={"cwd": str(tmp_path)},
        )
        job = run(world)
        assert job.status == "done", job.error_msg
        assert (job.progress_current, job.progress_total, job.progress_message) == (3, 40, "third")
        assert job.last_completed_page == 3
        assert job.checkpoint["cursor"].startswith("x")
        assert job.counters["new"] == 2
        assert job.result == {"exit_code": 0, "lines": 7, "marks_not_understood": 2}
        with world.database.reading() as session:
            first, second = session.scalars(select(Document).order_by(Document.id)).all()
            assert (first.url, first.title) == ("http://www.example.org/a", "A")
            assert first.text.startswith("about a")
            assert (second.url, second.content_type) == ("http://www.example.org/b", "application/pdf")
            assert second.original is not None
        lines = log_of(world, job)
        warnings = [message for level, message in lines if level == "warning"]
        assert len(warnings) == 2
        assert "::checkpoint three" in warnings[0]
        assert "'missing'" in warnings[1]
        assert ("info", "::unknown") in lines

    @pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "link", "."])
    def test_no_file_outside_the_target_s_folder_becomes_a_document(
        self, world: World, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "secret").write_text("secret")
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "link").symlink_to(tmp_path / "secret")
        mark = json.dumps({"url": "/a", "file": name})
        world.add_target(
            "script", handler="command", params={"argv": ["echo", f"::document {mark}"], "cwd": str(folder)}
        )
        job = run(world)
        assert job.result == {"exit_code": 0, "lines": 1, "marks_not_understood": 1}
        with world.database.reading() as session:
            assert session.scalars(select(Document)).all() == []

    @pytest.mark.parametrize("text", ["exit 75", "echo '::blocked HTTP 429 retry_after=1000'"])
    def test_a_block_cools_the_key_down_and_is_retried(self, world: World, text: str) -> None:
        script(world, f"echo '::checkpoint {{\"page\": 2}}'; {text}")
        job = run(world)
        assert job.status == "failed"
        assert (job.error_msg or "").startswith("cooldown_abort; auto_retry_job=")
        (retry,) = world.jobs()[1:]
        assert (retry.source, retry.status, retry.last_completed_page) == ("retry", "queued", 2)
        key = world.key()
        assert key.cooldown_until is not None
        assert job.finished_at is not None
        wanted = 1000 if "retry_after" in text else 600
        assert (key.cooldown_until - job.finished_at).total_seconds() == pytest.approx(wanted, abs=5)


@pytest.mark.usefixtures("pool")
class TestStops:
    STUBBORN = "trap '' TERM; sleep 1000 & echo $! >> pids; setsid sleep 1000 & echo $! >> pids; "
    STAYS = "echo '::progress 1'; while :; do sleep 0.05; done"

    def started(self, world: World, job_id: str) -> None:
        wait_until(lambda: world.job(job_id).progress_current == 1, message="the command runs")

    def test_a_cancel_is_heard_as_sigterm_and_a_last_checkpoint_is_kept(self, world: World) -> None:
        script(world, 'trap \'echo "::checkpoint {\\"page\\": 7}"; exit 0\' TERM; ' + self.STAYS)
        job_id = world.submit("script").id
        self.started(world, job_id)
        assert world.cancel(job_id) == "cancelling"
        job = ended(world, job_id)
        assert (job.status, job.last_completed_page) == ("cancelled", 7)

    def test_one_that_takes_no_notice_is_killed_with_its_group_before_the_job_ends(
        self, world: World, tmp_path: Path
    ) -> None:
        script(world, self.STUBBORN + self.STAYS, params={"cwd": str(tmp_path), "grace_sec": 0.2})
        job_id = world.submit("script").id
        self.started(world, job_id)
        pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 2
        assert all(lives(pid) for pid in pids)
        world.cancel(job_id)
        job = ended(world, job_id)
        assert job.status == "cancelled"
        assert [pid for pid in pids if lives(pid)] == []
        assert any("is killed" in message for _, message in log_of(world, job))

    def test_one_that_is_blocked_and_goes_on_is_stopped(self, world: World) -> None:
        script(world, "echo '::blocked slow down'; while :; do sleep 0.05; done", params={"grace_sec": 0.2})
        assert (run(world).error_msg or "").startswith("cooldown_abort; auto_retry_job=")

    def test_the_time_limit_continues_from_the_checkpoint(self, world: World) -> None:
        script(
            world,
            'n=$((WEBQUEUE_CHECKPOINT_PAGE + 1)); echo "::checkpoint {\\"page\\": $n}"; '
            "if [ $n = 1 ]; then while :; do sleep 0.05; done; fi",
            max_runtime_sec=1,
        )
        first = run(world)
        assert (first.status, first.last_completed_page) == ("done", 1)
        assert first.result is not None
        second = ended(world, first.result["continued_by"])
        assert (second.status, second.last_completed_page) == ("done", 2)


def test_a_clean_stop_of_the_worker_hands_the_job_back_with_its_checkpoint(
    world: World, settings: Settings
) -> None:
    """P9: it costs no attempt."""
    told = 'echo "::checkpoint {\\"page\\": 5}"'
    script(world, f"trap '{told}; exit 1' TERM; {TestStops.STAYS}")
    with pool_of(world.database, settings, {"command": CommandHandler()}) as pool:
        job_id = world.submit("script").id
        wait_until(lambda: world.job(job_id).progress_current == 1, message="the command runs")
        assert pool.stop(8)
        job = world.job(job_id)
    assert (job.status, job.last_completed_page, job.attempt_count) == ("queued", 5, 0)


class TestOff:
    @pytest.fixture(autouse=True)
    def _commands_are_off(self, _commands_are_on: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WEBQUEUE_ALLOW_COMMANDS")

    def test_a_submission_is_refused(self, world: World) -> None:
        script(world, "true")
        with pytest.raises(ConflictError, match="WEBQUEUE_ALLOW_COMMANDS"):
            world.submit("script")
        assert world.jobs() == []

    def test_a_tick_s_job_fails_and_says_why(self, world: World, pool: None, tmp_path: Path) -> None:
        script(world, "touch ran", params={"cwd": str(tmp_path)})
        job = run(world, source="schedule")
        assert job.status == "failed"
        assert "WEBQUEUE_ALLOW_COMMANDS" in (job.error_msg or "")
        assert not (tmp_path / "ran").exists()
