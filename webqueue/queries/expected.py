"""When the waiting jobs of a rate key are expected to start: one after the other, each as long as its target usually takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from webqueue.politeness.keys import rate_groups, shared_politeness
from webqueue.queries.jobs import JobRow
from webqueue.queries.runs import last_full_runs_of_targets, usual_seconds


def min_gap_of_key(session: Session, key: str) -> float:
    """Seconds between two jobs of the key, 0.0 for none: the largest that its sites ask for."""
    return shared_politeness(session, key, rate_groups(session)).min_gap_sec


def expected_starts(
    session: Session, running: JobRow | None, line: Sequence[JobRow], *, gap_sec: float, now: datetime
) -> Mapping[str, datetime]:
    """The expected starts of a key's waiting jobs, by id.

    From the first one on of which nobody can tell (its key is paused, say, or one before it never ran), none is told.

    Args:
        session: reads only.
        running: the job that the key runs.
        line: the waiting ones, in their order.
        gap_sec: seconds between two jobs.
    """
    runs = last_full_runs_of_targets(session, [job.target for job in (running, *line) if job is not None])
    found: dict[str, datetime] = {}
    free: datetime | None = now
    if running is not None:
        left = running.left_sec
        usual = usual_seconds(runs[running.target])
        if left is None and usual is not None:
            # One that takes longer than usual may end at any moment.
            left = max(0.0, usual - (running.running_for_sec or 0.0))
        free = None if left is None else now + timedelta(seconds=left + gap_sec)
    for job in line:
        if free is None or job.waiting is None or job.waiting.earliest_start is None:
            break
        found[job.id] = max(free, job.waiting.earliest_start)
        usual = usual_seconds(runs[job.target])
        free = None if usual is None else found[job.id] + timedelta(seconds=usual + gap_sec)
    return found
