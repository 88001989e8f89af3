"""The short form of the chaos; `make chaos` runs the long one.

A seed that failed is added to FAILED_SEEDS. `CHAOS_SEED=… pytest tests/acceptance/chaos` does one again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.chaos.plan import Plan, new_seed
from tests.acceptance.chaos.report import words
from tests.acceptance.chaos.run import Verdict, run
from tests.helpers import postgres
from tests.helpers.requirements import MissingRequirementError, lacking

FAILED_SEEDS: tuple[int, ...] = ()

pytestmark = [
    pytest.mark.slow,
    # What judges is done at the end; a process that is forked while threads run is what is meant here.
    pytest.mark.timeout(600),
]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgresql":
        try:
            postgres._account()
            postgres._binaries()
        except MissingRequirementError as error:
            lacking(str(error))
    return name


@pytest.mark.parametrize("seed", [None, *FAILED_SEEDS])
def test_no_promise_is_broken_under_kills_stops_and_restarts(
    engine: str, tmp_path: Path, seed: int | None
) -> None:
    plan = Plan(seed=new_seed() if seed is None else seed).from_environment()
    verdict = run(plan, engine, tmp_path)
    assert_clean(verdict)
    kinds = {"kill", "stop", "pause", "term"} | ({"restart"} if engine == "postgresql" else set())
    assert set(verdict.faults) == kinds, "every kind of fault had its turn"


def test_32_threads_in_8_processes_run_every_job_once(engine: str, tmp_path: Path) -> None:
    quiet = Plan(seed=new_seed(), kills=0, stops=0, pauses=0, terms=0, restarts=0, operations=0)
    plan = replace(quiet, processes=8, threads=4, jobs=160, keys=40, backlog=160, lease_sec=60.0)
    verdict = run(plan, engine, tmp_path)
    assert_clean(verdict)
    assert verdict.figures["runs"] == verdict.figures["jobs"]
    assert verdict.figures["recoveries"] == 0


def assert_clean(verdict: Verdict) -> None:
    print(words(verdict))  # noqa: T201 - pytest shows it when the test fails, with the seed
    assert verdict.findings == [], f"CHAOS_SEED={verdict.plan.seed}"
    assert verdict.figures["jobs"] >= verdict.plan.jobs
