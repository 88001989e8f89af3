"""What is kept of the history of jobs, and what the next round removes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.job_verbs.history import finished_to_forget, logs_to_forget
from webqueue.job_verbs.retention import Rule, retention, rules
from webqueue.models import Job
from webqueue.settings import Settings

# Of a round.
BATCH: Final = 500


@dataclass(frozen=True)
class KeptRow:
    """The history of one target.

    Attributes:
        kept: finished jobs that are there.
        oldest: when the first of them ended.
        goes, logs_go: jobs, and logs, that the next round removes.
        own: its own rule, None without one.
        rule: what holds for it.
    """

    target: str
    kept: int
    oldest: datetime | None
    goes: int
    logs_go: int
    own: Rule | None
    rule: Rule


def kept_jobs(session: Session, settings: Settings) -> tuple[Rule, tuple[KeptRow, ...]]:
    """The rule of the installation, and each target that has finished jobs or a rule of its own.

    Targets with a rule of their own stand first, then those that lose something in the next round.

    What goes is found by the statements that remove it.
    """
    now = clock.now(session)
    holds, own = retention(session, settings), rules(session)
    cut, cuts = holds.jobs(now)
    goes = Counter(old.target for old in finished_to_forget(session, cut, limit=BATCH, own=cuts))
    logs_go: Counter[str] = Counter()
    if holds.forgets_logs:
        cut, cuts = holds.logs(now)
        logs_go = Counter(old.target for old in logs_to_forget(session, cut, limit=BATCH, own=cuts))
    counted = {
        target: (number, oldest)
        for target, number, oldest in session.execute(
            select(Job.target_code, func.count(), func.min(Job.finished_at))
            .where(Job.finished_at.is_not(None))
            .group_by(Job.target_code)
        )
    }
    rows = (
        KeptRow(
            target, *counted.get(target, (0, None)), goes[target], logs_go[target], own.get(target),
            holds.own.get(target, holds.default),
        )
        for target in sorted(counted.keys() | own.keys())
    )  # fmt: skip
    return holds.default, tuple(
        sorted(rows, key=lambda row: (row.own is None, row.goes + row.logs_go == 0, row.target))
    )
