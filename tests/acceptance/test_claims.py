"""Many threads, and many processes, claim from one table: every job runs exactly once, and one a key at a time."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers import claimer
from tests.helpers.world import World, assert_settled
from webqueue.database import Database

KEYS = 30
DEPTH = 4


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    for number in range(KEYS):
        world.add_site(f"s{number}", f"http://h{number}.test/")
        world.add_target(f"t{number}", f"s{number}")
    return world


def fill(world: World) -> set[str]:
    return {world.submit(f"t{number}", source="schedule").id for _ in range(DEPTH) for number in range(KEYS)}


def judge(world: World, witness: Path, submitted: set[str]) -> None:
    """Hold the witness against what was submitted, and both against the tables."""
    runs = [line.split() for line in witness.read_text().splitlines()]
    assert Counter(job for _key, job, _began, _ended in runs) == Counter(submitted), "each once"
    by_key: dict[str, list[tuple[int, int]]] = {}
    for key, _job, began, ended in runs:
        by_key.setdefault(key, []).append((int(began), int(ended)))
    for key, spans in by_key.items():
        # A run "ends" a moment after its finish was committed, when the next one may have been claimed already.
        starts = [began for began, _ended in sorted(spans)]
        assert len(set(starts)) == len(starts) == DEPTH, key
        assert all(earlier < later for earlier, later in pairwise(starts))
    rows = world.jobs()
    assert {job.id for job in rows} == submitted
    assert {(job.status, job.attempt_count, job.lease_token > 0) for job in rows} == {("done", 0, True)}
    for key in by_key:
        of_key = sorted((job for job in rows if job.rate_key == key), key=lambda job: job.lease_token)
        assert [job.lease_token for job in of_key] == list(range(1, DEPTH + 1)), "a token a run"
        assert [job.seq for job in of_key] == sorted(job.seq for job in of_key), "P3"
        for first, second in pairwise(of_key):
            assert first.finished_at is not None
            assert second.started_at is not None
            assert first.finished_at <= second.started_at, "P1"
    with world.database.reading() as session:
        assert_settled(session)


def test_32_threads_claim_every_job_once(world: World, tmp_path: Path) -> None:
    submitted = fill(world)
    witness = tmp_path / "witness"
    assert claimer.run(world.database, 32, witness) == []
    judge(world, witness, submitted)


def test_8_processes_claim_every_job_once(
    world: World, database_url: str, instance: Path, tmp_path: Path
) -> None:
    submitted = fill(world)
    witness = tmp_path / "witness"
    # Each child is forked from a small server that has imported all once, not from this process with its threads.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.claimer"])
    arguments = (database_url, instance, 2, witness)
    processes = [context.Process(target=claimer.process, args=arguments) for _ in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    judge(world, witness, submitted)
