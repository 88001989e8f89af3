"""Handlers in a process of their own: the same as in a thread where they behave, and survived where they do not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.conftest import SQLITE_FILE, Serve
from tests.helpers.pools import pool_of
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from tests.integration.test_worker_runs import final, log_of
from webqueue import clock, jobs
from webqueue import settings as webqueue_settings
from webqueue.database import Database
from webqueue.handlers.python import PythonHandler
from webqueue.models import Document, Job, KeyEvent
from webqueue.settings import Settings

FUNCTIONS = "tests.helpers.functions"
PYTHON = {"python": PythonHandler()}


@pytest.fixture
def engine_name() -> str:
    """Where the handler runs is no matter of the database; Force stop and takeover are tested on both elsewhere."""
    return "sqlite"


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site(http={"headers": {"X-A": "b"}})
    return world


def add(world: World, code: str, function: str, *, isolated: bool = True, **more: Any) -> None:
    kwargs = more.pop("kwargs", {})
    params = {"function": f"{FUNCTIONS}:{function}", "kwargs": kwargs, "isolated": isolated}
    world.add_target(code, params=params, **more)


def run(world: World, settings: Settings, function: str, **more: Any) -> Job:
    """The finished job of a target that runs the function."""
    add(world, "news", function, **more)
    with pool_of(world.database, settings, PYTHON):
        return final(world, world.submit("news").id, timeout=30)


def pids(file: Path) -> list[int]:
    """The numbers that a function has written, as soon as it has."""
    wait_until(lambda: file.exists() and len(file.read_text().split()) > 1, timeout=30)
    return [int(number) for number in file.read_text().split()]


def members(group: int) -> list[int]:
    """The processes of a group that run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _parent, pgrp = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(pgrp) == group and state != "Z":
                found.append(int(folder.name))
    return found


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


BOTH_WAYS: dict[str, str] = {
    "done": "done",
    "blocked": "failed",
    "raises_blocked": "failed",
    "raises": "failed",
    "exits": "failed",
    "stops_unasked": "failed",
    "a_wrong_call": "failed",
    "what_it_sees": "done",
    "like_govcrawler": "done",
}


def seen(world: World, job: Job) -> dict[str, Any]:
    """What is stored of a run, without what differs from run to run."""
    result = dict(job.result or {})
    result.get("retry", {}).pop("due_at", None)
    traceback = result.pop("traceback", "")
    result = json.loads(re.sub(r"\b[0-9a-f]{12}\b", "a job", json.dumps(result)))
    with world.database.reading() as session:
        found = session.scalars(select(Document).where(Document.target_code == job.target_code))
        documents = [(document.url, document.title, document.text) for document in found]
    return {
        "status": job.status,
        "error": re.sub(r"=\w{12}\b", "=a job", job.error_msg or ""),
        "result": result,
        "last line of the traceback": traceback.rstrip().rpartition("\n")[2],
        "tells where it was raised": "functions.py" in traceback,
        "attention": job.attention,
        "page": (job.current_page, job.last_completed_page, job.checkpoint),
        "progress": (job.progress_current, job.progress_total, job.progress_message),
        "counters": job.counters,
        "log": log_of(world, job),
        "documents": documents,
        "cooldown": world.key(job.rate_key).cooldown_cause,
        "jobs": sorted(other.source for other in world.jobs() if other.target_code == job.target_code),
    }


@pytest.fixture(scope="module")
def both_ways(
    _sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, dict[str, dict[str, Any]]]:
    """What each function came to, in a thread (False) and in a process of its own (True)."""
    found = {}
    for isolated in (False, True):
        folder = tmp_path_factory.mktemp("isolated" if isolated else "thread")
        url = f"sqlite:///{shutil.copyfile(_sqlite_template, folder / SQLITE_FILE)}"
        database = Database(url, instance_path=folder)
        world = World(database)
        settings = webqueue_settings.load(instance_path=folder, database_url=url)
        for function in BOTH_WAYS:
            code = function.replace("_", "-")
            world.add_site(code, f"http://{code}.example.org/", http={"headers": {"X-A": "b"}})
            kwargs = {"word": "räksmörgås"} if function == "what_it_sees" else {}
            add(world, function, function, site=code, isolated=isolated, kwargs=kwargs, retry_times=1)
        ids = {function: world.submit(function, force=True).id for function in BOTH_WAYS}
        with pool_of(database, settings, PYTHON):
            ended = {function: final(world, job_id, timeout=60) for function, job_id in ids.items()}
        found[isolated] = {function: seen(world, job) for function, job in ended.items()}
        assert all((job.process_group is not None) is isolated for job in ended.values())
        database.close()
    return found


@pytest.mark.parametrize(("function", "status"), BOTH_WAYS.items())
def test_what_comes_of_it_is_the_same_as_in_a_thread(
    both_ways: dict[bool, dict[str, dict[str, Any]]], function: str, status: str
) -> None:
    assert both_ways[True][function] == both_ways[False][function]
    assert both_ways[True][function]["status"] == status


def test_a_process_of_its_own_tells_what_a_thread_tells(
    both_ways: dict[bool, dict[str, dict[str, Any]]],
) -> None:
    """Both agree; here is what on."""
    told = both_ways[True]
    assert told["done"]["page"] == (
        7,
        6,
        {"cursor": "räksmörgås", "seen": [1], "huge": "an integer of 16610 bits"},
    )
    assert told["done"]["progress"] == (3, 40, "three of forty")
    assert told["done"]["log"] == [("info", "hello"), ("warning", "careful")]
    assert told["raises"]["error"] == "SurpriseError: somewhere deep"
    assert told["raises"]["tells where it was raised"]
    assert told["raises"]["jobs"] == ["api", "retry"]
    assert told["blocked"]["cooldown"] == "HTTP 429"
    assert told["blocked"]["result"]["auto_retry"]["resume_from_page"] == 4
    assert told["exits"]["error"] == "SystemExit: 3"
    sees = told["what_it_sees"]["result"]
    assert sees["stored"] == "new"
    assert sees["known"] == [True, True, "new"]
    assert told["what_it_sees"]["documents"] == [("http://www.example.org/1", "Title", "Text")]


def test_requests_are_the_worker_s(world: World, settings: Settings, serve: Serve) -> None:
    server = serve(HostileSite())
    world.add_site("local", server.url)
    add(world, "news", "fetches", site="local", kwargs={"url": f"{server.url}/ok"}, interval_sec=0.2)
    add(world, "busy", "fetches", site="local", kwargs={"url": f"{server.url}/status/429"})
    with pool_of(world.database, settings, PYTHON):
        done = final(world, world.submit("news").id, timeout=30)
        blocked = final(world, world.submit("busy").id, timeout=30)
    assert (done.status, done.result["status"] if done.result else None) == ("done", 200), done.error_msg
    assert done.counters["requests"] == 2, "robots.txt and the page"
    assert blocked.error_msg is not None
    assert blocked.error_msg.startswith("cooldown_abort; auto_retry_job=")
    with world.database.reading() as session:
        event = session.scalars(select(KeyEvent).where(KeyEvent.kind == "blocked")).one()
    assert [response["status"] for response in event.data["responses"]][-1] == 429


@pytest.mark.parametrize(
    ("function", "kwargs", "words"),
    [
        ("segfaults", {}, ["died by SIGSEGV (Segmentation fault)", "before the end", "in segfaults"]),
        ("leaves", {"code": 3}, ["ended with exit code 3", "words without an end"]),
        ("kills_itself", {}, ["died by SIGKILL", "memory ran out"]),
        ("breaks_the_wire", {}, ["broke the rules of the wire: There is no '__class__'."]),
    ],
)
def test_a_process_that_dies_fails_its_job_and_says_how(
    world: World, settings: Settings, function: str, kwargs: dict[str, Any], words: list[str]
) -> None:
    job = run(world, settings, function, kwargs=kwargs)
    assert job.status == "failed"
    assert job.error_msg is not None
    assert [word for word in words if word not in job.error_msg] == []


def test_what_it_prints_is_bounded(world: World, settings: Settings) -> None:
    job = run(world, settings, "floods", kwargs={"lines": 20_000})
    lines = log_of(world, job)
    assert job.result == {"lines": 20_000}
    assert lines[0] == ("info", "line 0 " + "x" * 200)
    left_out = [text for _level, text in lines if text.endswith("were left out here: they came too fast.")]
    assert left_out
    assert (
        len(lines) - len(left_out) + sum(int(text.split()[0].replace(",", "")) for text in left_out) == 20_001
    )
    assert sum(len(text) for _level, text in lines) < 1_000_000


def test_a_process_that_it_forked_has_no_part_in_it_and_ends_with_it(
    world: World, settings: Settings
) -> None:
    job = run(world, settings, "forks")
    assert job.result is not None
    assert "a process forked from it cannot use it" in job.result["told"]
    assert job.process_group is not None
    assert members(job.process_group) == []


def test_threads_of_it_wait_for_each_other(world: World, settings: Settings) -> None:
    job = run(world, settings, "talks_in_threads")
    assert job.result == {"answers": {"ok": 80}}


def test_it_is_killed_at_its_time_limit_whatever_it_ignores(
    world: World, settings: Settings, tmp_path: Path
) -> None:
    """It holds the interpreter in C, takes no notice of SIGTERM, and so does the process that it has started."""
    add(world, "news", "spins", max_runtime_sec=3600, kwargs={"file": str(tmp_path / "pids"), "page": 5})
    quick = settings.model_copy(update={"stop_grace_sec": 0.5})
    with pool_of(world.database, quick, PYTHON) as pool:
        job_id = world.submit("news").id
        spinning = pids(tmp_path / "pids")
        (run,) = pool._runs.all()
        run.time_limit_at = clock.boot_seconds()  # the hour is over
        world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
        job = final(world, job_id, timeout=30)
        assert [pid for pid in spinning if lives(pid)] == [], "nothing of it is left when its job ends"
    assert (job.status, job.last_completed_page) == ("done", 5)
    assert job.result is not None
    assert job.result["stopped_because"] == "time limit of 3600 s"
    assert len(spinning) == 2


def test_a_cancel_is_heard_and_what_does_not_listen_tidies_up_after_the_grace(
    world: World, settings: Settings, tmp_path: Path
) -> None:
    quick = settings.model_copy(update={"stop_grace_sec": 1.0})
    files = {name: tmp_path / name for name in ("polite", "tidies_up")}
    for name, file in files.items():
        world.add_site(name, f"http://{name.replace('_', '-')}.example.org/")
        add(world, name, name, site=name, kwargs={"file": str(file)})
    with pool_of(world.database, quick, PYTHON):
        ids = {name: world.submit(name).id for name in files}
        wait_until(lambda: all(file.exists() for file in files.values()), timeout=30)
        assert {world.cancel(job_id) for job_id in ids.values()} == {"cancelling"}
        ended = {name: final(world, job_id, timeout=30) for name, job_id in ids.items()}
    assert {job.status for job in ended.values()} == {"cancelled"}
    assert files["polite"].read_text() == "was asked"
    assert ended["polite"].result == {"asked": True}
    assert files["tidies_up"].read_text() == "tidied up", "by SIGTERM, which no `except Exception` stops"


def test_a_shutdown_kills_what_does_not_listen_and_costs_no_attempt(
    world: World, settings: Settings, tmp_path: Path
) -> None:
    add(world, "news", "spins", kwargs={"file": str(tmp_path / "pids"), "page": 5})
    with pool_of(world.database, settings, PYTHON) as pool:
        job_id = world.submit("news").id
        spinning = pids(tmp_path / "pids")
        assert pool.stop(3) is True, "a thread would go on"
    job, key = world.job(job_id), world.key()
    assert (job.status, job.attempt_count, job.last_completed_page) == ("queued", 0, 5)
    assert key.gap_cause != "a handler that did not stop"
    assert [pid for pid in spinning if lives(pid)] == []
    assert list((settings.instance_path / "workers").glob("*.group")) == []


def test_a_lost_lease_kills_it_at_once(world: World, settings: Settings, tmp_path: Path) -> None:
    add(world, "news", "spins", kwargs={"file": str(tmp_path / "pids")})
    with pool_of(world.database, settings, PYTHON) as pool:
        job_id = world.submit("news").id
        spinning = pids(tmp_path / "pids")
        world.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="anna"))
        assert world.database.run(lambda session: jobs.free_dead(session, [pool.worker_id])) == [job_id]
        wait_until(lambda: not pool.running, timeout=20)
        assert [pid for pid in spinning if lives(pid)] == []
    job = world.job(job_id)
    assert (job.status, job.attempt_count, job.result) == ("queued", 1, None)


def test_sigterm_to_every_process_of_a_service_is_a_stop_and_no_failure(
    world: World, settings: Settings, tmp_path: Path
) -> None:
    """Systemd tells all processes at once; the worker hears of it when its process is gone already."""
    add(world, "news", "tidies_up", kwargs={"file": str(tmp_path / "file")})
    with pool_of(world.database, settings, PYTHON) as pool:
        job_id = world.submit("news").id
        wait_until((tmp_path / "file").exists, timeout=30)
        group = world.job(job_id).process_group
        assert group is not None
        os.killpg(group, signal.SIGTERM)
        wait_until(lambda: (tmp_path / "file").read_text() == "tidied up")
        pool.stop(5)
    job = world.job(job_id)
    assert (job.status, job.attempt_count, job.error_msg) == ("queued", 0, None)
