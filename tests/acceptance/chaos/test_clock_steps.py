"""A wall clock that jumps by an hour: leases of living workers hold, and nothing runs twice (DESIGN P1, P5, P10)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.chaos.stage import QUICK, Stage, stage
from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.models import Target

JOBS = 3
FORWARD, BACK = signal.SIGUSR1, signal.SIGUSR2


@pytest.fixture
def on(database_url: str, tmp_path: Path) -> Iterator[Stage]:
    with stage(database_url, tmp_path / "stage") as on:
        yield on


def step(on: Stage, which: signal.Signals, members: slice = slice(None)) -> None:
    """Step the clocks of some processes, and wait until they have lived with it for longer than a lease."""
    stepped = on.fleet.members[members]
    for member in stepped:
        member.wait_until_ready()
    before = len(on.lines("clock_stepped"))
    for member in stepped:
        member.signal(which)
    wait_until(lambda: len(on.lines("clock_stepped")) == before + len(stepped), timeout=60)
    lived_until = clock.boot_seconds() + 1.5 * QUICK.lease_sec
    wait_until(lambda: clock.boot_seconds() > lived_until, timeout=60)


@pytest.mark.parametrize("stepped", [slice(None), slice(1)], ids=["machine", "one process"])
def test_jobs_that_run_go_on_in_their_process(on: Stage, stepped: slice) -> None:
    """A lease that looks ended, or an hour long, is its living owner's: it is extended, and then renewed.

    One of the jobs has a time limit of minutes: by the clock that jumped it is far beyond it; its worker, which counts
    by another, knows better.
    """
    codes = on.add_targets(JOBS)
    with on.world.database.transaction() as session:
        session.get_one(Target, codes[0]).max_runtime_sec = 600
    for _ in range(2):
        on.fleet.start("machine")
    job_ids = [on.world.submit(code).id for code in codes]
    on.wait_for_steps(job_ids)
    for which in (FORWARD, BACK):
        step(on, which, stepped)
        on.wait_for_steps(job_ids, after=clock.boot_seconds())
    on.gate.touch()
    on.wait_for_ends(job_ids)
    assert on.overlaps() == []
    assert len(on.lines("start")) == JOBS, "nobody took a job over"
    assert [on.world.job(job_id).attempt_count for job_id in job_ids] == [0] * JOBS


def test_the_job_of_a_worker_that_dies_after_a_step_is_freed_at_once(on: Stage) -> None:
    """Set back by an hour, its lease has an hour to go: what tells is the lock."""
    if not on.world.database.is_sqlite:
        pytest.skip("PostgreSQL has a clock of its own")
    [code] = on.add_targets(1)
    first = on.fleet.start("machine")
    job_id = on.world.submit(code).id
    on.wait_for_steps([job_id])
    second = on.fleet.start("machine")
    step(on, BACK)
    first.kill()
    wait_until(lambda: on.world.job(job_id).status == "queued", timeout=60)
    assert on.world.job(job_id).attempt_count == 1
    # Its due time lies an hour ahead of the clock that the machine has now: it waits, and is not lost.
    second.terminate()
    assert second.reaped(60)
    assert second.exit_code == 0
    on.fleet.start("machine")  # with the clock that was right
    on.wait_for_steps([job_id], after=clock.boot_seconds())
    on.gate.touch()
    on.wait_for_ends([job_id])
    assert on.overlaps() == []
