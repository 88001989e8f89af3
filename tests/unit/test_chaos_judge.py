"""The judge of the chaos tells every broken promise: what it cannot see, no chaos can show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.chaos.facts import JobFacts
from tests.acceptance.chaos.handlers import Script
from tests.acceptance.chaos.judge import Case, judge
from tests.acceptance.chaos.records import Operation, Records, Submission
from tests.acceptance.chaos.witness import Line

SEED = 1
# A job whose script has one step and is done; and one that is blocked.
DONE = next(n for n in range(1000, 2000) if (s := Script.of(SEED, n)).steps == 1 and s.outcome == "done")
NEXT = next(n for n in range(DONE + 1, 2000) if (s := Script.of(SEED, n)).steps == 1 and s.outcome == "done")


def run_of(job: str, token: int, at: float, *, pid: int = 1, outcome: str = "done") -> list[Line]:
    """The lines of a run that does one step."""
    facts: dict[str, Any] = {"pid": pid, "run": f"{job}/{token}", "job": job, "key": "k", "token": token}
    return [
        Line("start", at, claimed_at=at - 0.1, **facts),
        Line("step", at + 0.1, claimed_at=at - 0.1, step=1, **facts),
        Line("end", at + 0.2, claimed_at=at - 0.1, outcome=outcome, **facts),
    ]


def job_of(job_id: str, number: int, token: int, at: float, **more: object) -> JobFacts:
    """A row of a done job that became due at `at` and ended 5 s later."""
    facts = JobFacts(
        id=job_id,
        seq=number,
        key="k",
        target="t",
        source="api",
        status="done",
        from_page=number,
        retry_of=None,
        error_msg="",
        token=token,
        attempts=0,
        moved=False,
        tick=None,
        due_at=at,
        enqueued_at=at,
        finished_at=at + 5,
        finals=1,
        rewritten=0,
    )
    return replace(facts, **more)  # type: ignore[arg-type]


def sound() -> Case:
    """Two jobs of one key, one after the other."""
    records = Records()
    records.add(Submission(DONE, "k", 0.9, 1.1, "a"))
    records.add(Submission(NEXT, "k", 1.9, 2.1, "b"))
    lines = [*run_of("a", 1, 5.5), *run_of("b", 2, 6.8)]
    return Case(lines, records, [job_of("a", DONE, 1, 1.0), job_of("b", NEXT, 2, 2.0)], SEED)


def kinds(case: Case) -> set[str]:
    return {finding.kind for finding in judge(Case(case.lines, case.records, case.jobs, SEED))}


def test_a_sound_run_has_no_finding() -> None:
    case = sound()
    assert judge(case) == []
    assert case.figures["runs"] == 2


def test_a_job_that_is_gone_is_lost() -> None:
    case = sound()
    case.records.add(Submission(3000, "k", 3.0, 3.1, "gone"))
    assert kinds(case) == {"lost"}


def test_a_submission_that_made_two_jobs() -> None:
    case = sound()
    case.jobs.append(job_of("c", DONE, 3, 9.0, moved=True))
    case.lines += run_of("c", 3, 9.5)
    assert kinds(case) == {"accepted twice"}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"status": "running", "finished_at": None, "finals": 0}, "never ended"),
        ({"finals": 2}, "final doubled"),
        ({"rewritten": 1}, "final doubled"),
        ({"due_at": 7.5}, "too early"),
        ({"token": 9}, "done without an end"),
        ({"status": "failed", "error_msg": "?"}, "failed without reason"),
        ({"finished_at": 6.0}, "started after its end"),
    ],
)
def test_a_row_that_cannot_be(change: dict[str, object], kind: str) -> None:
    case = sound()
    case.jobs[1] = replace(case.jobs[1], **change)  # type: ignore[arg-type]
    assert kinds(case) == {kind}


def test_one_step_after_a_takeover_was_in_flight_and_two_are_an_overlap() -> None:
    case = sound()
    first, second = case.lines[:3], case.lines[3:]
    step, end = first[1], first[2]
    taken_over = [first[0], second[0], replace(step, at=7.0), *second[1:], end]
    case.lines = taken_over
    assert kinds(case) == set()
    case.lines = [*taken_over[:3], replace(step, at=7.1, step=1), *taken_over[3:]]
    assert kinds(case) == {"overlap"}


def test_a_killed_process_runs_nothing_any_more() -> None:
    case = sound()
    start, step, end = case.lines[:3]
    again = [replace(line, run="again", token=2, pid=2) for line in (start, step, end)]
    case.jobs = [replace(case.jobs[0], token=2)]
    case.records.submissions.pop()
    case.lines = [start, Line("killed", 5.7, 1), *again]
    assert kinds(case) == set()
    figures = Case(case.lines, case.records, case.jobs, SEED)
    judge(figures)
    assert figures.figures["runs overtaken"] == 0


def test_a_token_that_was_given_twice() -> None:
    case = sound()
    case.lines[3:] = [replace(line, token=1) for line in case.lines[3:]]
    case.jobs[1] = replace(case.jobs[1], token=1)
    assert kinds(case) == {"token twice"}


def test_a_cancelled_job_that_ended_otherwise_or_has_a_successor() -> None:
    case = sound()
    case.records.add(Operation("cancel", "a", 5.55, 5.56, "cancelling"))
    assert kinds(case) == {"cancel untrue"}
    case.jobs[0] = replace(case.jobs[0], status="cancelled")
    assert kinds(case) == set()
    case.jobs[1] = replace(case.jobs[1], source="retry", retry_of="a")
    assert kinds(case) == {"retried after cancel"}


def test_a_job_that_runs_after_it_was_answered_cancelled() -> None:
    case = sound()
    case.records.add(Operation("cancel", "a", 5.0, 5.1, "cancelled"))
    case.jobs[0] = replace(case.jobs[0], status="cancelled")
    assert kinds(case) == {"started after cancel", "ran after cancel"}


def test_a_later_submission_that_starts_first() -> None:
    case = sound()
    case.lines = [*run_of("b", 1, 5.5), *run_of("a", 2, 5.8)]
    case.jobs = [replace(case.jobs[0], token=2), replace(case.jobs[1], token=1)]
    assert kinds(case) == {"order"}
    # Moved to the front, it may.
    case.jobs[1] = replace(case.jobs[1], moved=True)
    assert kinds(case) == set()


def test_a_delayed_job_that_is_passed_over() -> None:
    case = sound()
    case.jobs.append(job_of("delayed", NEXT, 3, 1.5, retry_of="x", source="retry", finished_at=20.0))
    case.lines += run_of("delayed", 3, 19.0)
    assert kinds(case) == {"order"}


def test_a_start_on_a_paused_key() -> None:
    case = sound()
    case.records.add(Operation("pause", "k", 6.0, 6.1, "done"))
    assert kinds(case) == {"started on a paused key"}
    case.records.add(Operation("resume", "k", 6.2, 6.3, "done"))
    assert kinds(case) == set()


def test_a_start_on_a_cooling_key() -> None:
    case = sound()
    blocked = {"status": "failed", "error_msg": "cooldown_abort; auto_retry_job=c"}
    case.jobs[0] = replace(case.jobs[0], **blocked)  # type: ignore[arg-type]
    case.lines[2] = replace(case.lines[2], outcome="blocked")
    assert kinds(case) == {"started on a cooling key"}
    case.records.add(Operation("lift", "k", 6.2, 6.3, "done"))
    assert kinds(case) == set()


def test_a_done_job_with_a_step_missing() -> None:
    case = sound()
    case.lines.pop(1)
    assert kinds(case) == {"steps missing"}


@pytest.mark.parametrize("minutes", [(0, 2), (0, 0)])
def test_a_tick_that_is_missing_or_doubled(minutes: tuple[int, ...]) -> None:
    case = sound()
    start = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    skipped = {"status": "skipped", "source": "schedule", "retry_of": "x"}
    ticks = [start + timedelta(minutes=minute) for minute in (*minutes, 3)]
    rows = [job_of(f"tick{place}", NEXT, 0, 9.0, tick=tick, **skipped) for place, tick in enumerate(ticks)]
    case.jobs += rows
    assert kinds(case) == {"tick missing or doubled"}
    case.jobs[-3:] = [replace(row, tick=start + timedelta(minutes=place)) for place, row in enumerate(rows)]
    assert kinds(case) == set()
