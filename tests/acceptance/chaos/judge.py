"""The judge: compares what the processes wrote with what was asked for and what the database says in the end."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from tests.acceptance.chaos.facts import FINAL, JobFacts
from tests.acceptance.chaos.handlers import Script
from tests.acceptance.chaos.records import Operation, Records
from tests.acceptance.chaos.witness import Line

# Times of the database and times of this process come from two clocks that are read one after the other.
TOLERANCE_SEC = 0.005
COOLDOWN_SEC = 1.0
EACH_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Finding:
    """A promise that was broken."""

    kind: str
    text: str


@dataclass
class Case:
    """Everything there is to judge.

    Attributes:
        lines: of the witness, in their order; `claimed_at` on `clock.boot_seconds`.
        records: what was asked for.
        jobs: the rows at the end.
        seed: of the scripts.
    """

    lines: list[Line]
    records: Records
    jobs: list[JobFacts]
    seed: int
    figures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.by_id = {job.id: job for job in self.jobs}
        self.starts = [line for line in self.lines if line.what == "start"]
        self.lines_of: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines:
            if line.job:
                self.lines_of[line.job].append(line)


def judge(case: Case) -> list[Finding]:
    """Every broken promise of a run that has ended."""
    return [
        *lost_and_doubled(case),
        *overlaps(case),
        *cancels(case),
        *order_of_submission(case),
        *order_of_due_times(case),
        *pauses(case),
        *cooldowns(case),
        *work_done(case),
        *ticks(case),
    ]


def lost_and_doubled(case: Case) -> Iterator[Finding]:
    """P2: every accepted job is there, with one final status, written once."""
    for submission in case.records.accepted():
        assert submission.job_id is not None
        if submission.job_id not in case.by_id:
            yield Finding("lost", f"submission {submission.number} was answered with {submission.job_id}")
    for retried in case.records.of("retry"):
        if retried.answer not in {None, "refused"} and retried.answer not in case.by_id:
            yield Finding("lost", f"the retry of {retried.subject} was answered with {retried.answer}")
    numbers = Counter(
        (job.target, job.from_page) for job in case.jobs if job.source == "api" and job.retry_of is None
    )
    for (target, number), count in numbers.items():
        if count > 1:
            yield Finding("accepted twice", f"submission {number} to {target} made {count} jobs")
    for job in case.jobs:
        if job.status not in FINAL:
            yield Finding("never ended", f"job {job.id} of {job.key} is {job.status}")
        elif job.source != "schedule" and (job.finals, job.rewritten) != (1, 0):
            yield Finding(
                "final doubled", f"job {job.id}: {job.finals} final statuses, {job.rewritten} rewritten"
            )


def overlaps(case: Case) -> Iterator[Finding]:
    """P1: in a key one run follows another; an overtaken one finishes at most the request in flight."""
    open_runs: dict[str, dict[str, Line]] = defaultdict(dict)
    tokens: dict[str, set[int]] = defaultdict(set)
    late: Counter[str] = Counter()
    overtaken: set[str] = set()
    for line in case.lines:
        if line.what == "killed":
            for runs in open_runs.values():
                for run in [run for run, start in runs.items() if start.pid == line.pid]:
                    del runs[run]
        elif line.what == "start":
            case.figures["runs"] += 1
            if line.token in tokens[line.key]:
                yield Finding("token twice", f"{line.key}: token {line.token}, job {line.job}")
            if line.token < max(tokens[line.key], default=0):
                overtaken.add(line.run)
                late[line.run] += 1
            else:
                overtaken.update(open_runs[line.key])
            tokens[line.key].add(line.token)
            open_runs[line.key][line.run] = line
        elif line.what == "step":
            case.figures["steps"] += 1
            if line.run in overtaken:
                late[line.run] += 1
                if late[line.run] == 2:
                    yield Finding(
                        "overlap", f"{line.key}: job {line.job}, token {line.token}, step {line.step}"
                    )
        elif line.what == "end":
            open_runs[line.key].pop(line.run, None)
    case.figures["runs overtaken"] = len(overtaken)
    case.figures["requests in flight at a takeover"] = sum(late.values())


def cancels(case: Case) -> Iterator[Finding]:
    """P8: what was answered `cancelled` or `cancelling` ends cancelled, runs no more, and has no successor."""
    followed = {job.retry_of: job for job in case.jobs if job.source in {"retry", "continue"}}
    for operation in case.records.of("cancel"):
        case.figures[f"cancel: {operation.answer}"] += 1
        if operation.answer not in {"cancelled", "cancelling"}:
            continue
        job = case.by_id.get(operation.subject)
        if job is None or job.status != "cancelled":
            yield Finding(
                "cancel untrue", f"job {operation.subject}: {operation.answer}, then {job and job.status}"
            )
        if operation.subject in followed:
            yield Finding("retried after cancel", f"job {operation.subject}")
        if operation.answer == "cancelled":
            yield from _ran_after(case, operation)


def _ran_after(case: Case, cancel: Operation) -> Iterator[Finding]:
    steps: Counter[str] = Counter()
    for line in case.lines_of[cancel.subject]:
        if line.what == "start" and line.claimed_at > cancel.answered_at + TOLERANCE_SEC:
            yield Finding("started after cancel", f"job {line.job}, token {line.token}")
        if line.what in {"start", "step"} and line.at > cancel.answered_at:
            steps[line.run] += 1
            if steps[line.run] == 2:
                yield Finding("ran after cancel", f"job {line.job}, token {line.token}, step {line.step}")


def order_of_submission(case: Case) -> Iterator[Finding]:
    """P3, as seen from outside: jobs of a key start in the order in which they were accepted."""
    numbers = {one.job_id: one.number for one in case.records.accepted()}
    last: dict[str, int] = {}
    for line in _in_order_of_tokens(case.starts):
        number = numbers.get(line.job)
        if number is None or case.by_id[line.job].moved:
            continue
        if number < last.get(line.key, 0):
            yield Finding("order", f"{line.key}: submission {number} started after {last[line.key]}")
        last[line.key] = max(number, last.get(line.key, 0))


def order_of_due_times(case: Case) -> Iterator[Finding]:
    """P3 for all jobs, delayed ones too: no job starts before it is due, or while an earlier one of its key is due."""
    jobs_of: dict[str, list[JobFacts]] = defaultdict(list)
    for job in sorted(case.jobs, key=lambda job: (job.due_at, job.seq)):
        if not job.moved and job.status != "skipped":
            jobs_of[job.key].append(job)
    for line in case.starts:
        this = case.by_id[line.job]
        if line.claimed_at < this.due_at - 1e-5:
            yield Finding("too early", f"job {line.job} started {this.due_at - line.claimed_at:.3f} s early")
        if this.moved:
            continue
        earlier = jobs_of[line.key]
        for other in earlier[: bisect_right(earlier, (this.due_at, this.seq), key=_place)]:
            waits = other.enqueued_at < line.claimed_at and other.due_at <= line.claimed_at
            if other is not this and waits and (other.finished_at or 0) > line.claimed_at:
                yield Finding(
                    "order", f"{line.key}: job {this.id} started although {other.id} was due before"
                )


def pauses(case: Case) -> Iterator[Finding]:
    """P6: a key that was answered to be paused starts nothing until somebody asks to resume it."""
    claims = _claims_by_key(case)
    resumes = case.records.of("resume")
    for pause in case.records.of("pause"):
        if pause.answer != "done":
            continue
        case.figures["pauses"] += 1
        ends = [one.asked_at for one in resumes if one.subject == pause.subject]
        until = min((end for end in ends if end >= pause.answered_at), default=float("inf"))
        for line in claims[pause.subject]:
            if pause.answered_at + TOLERANCE_SEC < line.claimed_at < until:
                yield Finding(
                    "started on a paused key",
                    f"{line.key}: job {line.job}, claimed {line.claimed_at - pause.answered_at:.4f} s after the pause "
                    f"was answered (asked {pause.answered_at - pause.asked_at:.4f} s before), "
                    f"resumed {until - pause.answered_at:.4f} s after, started {line.at - pause.answered_at:.4f} s after",
                )


def cooldowns(case: Case) -> Iterator[Finding]:
    """P6: after a block a key starts nothing for as long as was said, unless the cooldown is lifted."""
    claims = _claims_by_key(case)
    lifts = case.records.of("lift")
    for job in case.jobs:
        if job.status != "failed" or not job.error_msg.startswith("cooldown_abort") or not job.finished_at:
            continue
        case.figures["blocks"] += 1
        began = job.finished_at
        for line in claims[job.key]:
            if not began < line.claimed_at < began + COOLDOWN_SEC:
                continue
            if any(
                one.subject == job.key and one.asked_at <= line.claimed_at and one.answered_at >= began
                for one in lifts
            ):
                continue
            yield Finding("started on a cooling key", f"{line.key}: job {line.job} after {job.id}")


def work_done(case: Case) -> Iterator[Finding]:
    """P2, P9: a done job has done all its steps, none was skipped by a checkpoint, and nothing ran after its end."""
    for job in case.jobs:
        lines = case.lines_of[job.id]
        for line in lines:
            if (
                line.what == "start"
                and job.finished_at is not None
                and line.claimed_at > job.finished_at + 1e-5
            ):
                yield Finding("started after its end", f"job {job.id}, token {line.token}")
        if job.status == "done":
            yield from _all_steps(case, job, lines)
        elif job.status == "failed" and "abandoned" not in job.error_msg:
            outcomes = {line.outcome for line in lines if line.what == "end"}
            if not outcomes & {"blocked", "failed", "error"}:
                yield Finding("failed without reason", f"job {job.id}: {job.error_msg}")


def ticks(case: Case) -> Iterator[Finding]:
    """P7: the targets with a schedule are due each minute: each has one row, a job or a visible `skipped` one."""
    ticks_of: dict[str, list[datetime]] = defaultdict(list)
    for job in case.jobs:
        if job.tick is not None:
            ticks_of[job.target].append(job.tick)
    for target, times in ticks_of.items():
        case.figures["ticks"] += len(times)
        for earlier, later in pairwise(sorted(times)):
            if later - earlier != EACH_MINUTE:
                yield Finding("tick missing or doubled", f"{target}: {earlier:%T}, then {later:%T}")


def _all_steps(case: Case, job: JobFacts, lines: list[Line]) -> Iterator[Finding]:
    if not any(line.what == "end" and line.token == job.token and line.outcome == "done" for line in lines):
        yield Finding("done without an end", f"job {job.id}, token {job.token}")
    steps = sorted({line.step for line in lines if line.what == "step"})
    last = Script.of(case.seed, job.from_page).steps
    first = steps[0] if steps else last + 1
    if steps != list(range(first, last + 1)) and steps:
        yield Finding("steps missing", f"job {job.id}: {steps} of {last}")
    if job.retry_of is None and first != 1:
        yield Finding("steps missing", f"job {job.id} began with step {first}")


def _claims_by_key(case: Case) -> dict[str, list[Line]]:
    claims: dict[str, list[Line]] = defaultdict(list)
    for line in case.starts:
        claims[line.key].append(line)
    return claims


def _in_order_of_tokens(starts: Iterable[Line]) -> list[Line]:
    """A thread that was suspended between its claim and its first line writes that line too late."""
    return sorted(starts, key=lambda line: (line.key, line.token))


def _place(job: JobFacts) -> tuple[float, int]:
    return job.due_at, job.seq
