"""The last runs of keys and targets, for the strips; and short references to jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, literal, select, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session

from webqueue.jobs_sql.heads import QUEUED_STATUS, RUNNING_STATUS
from webqueue.models import Job, JobSource

STRIP_LENGTH = 12
# SQLite takes at most 500 parts of a compound select.
_PARTS = 100

# To be compared with the status of any alias of a job.
QUEUED: Any = QUEUED_STATUS
RUNNING: Any = RUNNING_STATUS


@dataclass(frozen=True)
class JobRef:
    """Enough of a job to name it and to link to it."""

    id: str
    seq: int
    target: str


@dataclass(frozen=True)
class Run:
    """One finished run, as a bar of a strip; `seconds` is None for a job that never ran."""

    id: str
    seq: int
    status: str
    attention: bool
    seconds: float | None
    finished_at: datetime


def last_runs_of_keys(
    session: Session, keys: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each key, oldest first."""
    return _last_runs(session, Job.rate_key, keys, length)


def last_runs_of_targets(
    session: Session, targets: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each target, oldest first."""
    return _last_runs(session, Job.target_code, targets, length)


def last_full_runs_of_targets(
    session: Session, targets: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each target that began and were no tries, oldest first: they tell how long it takes."""
    return _last_runs(
        session, Job.target_code, targets, length, Job.started_at.is_not(None), Job.source != JobSource.TRY
    )


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from start to end, never negative; 0.0 is a duration, None is none (SEEDS C6, C10)."""
    if start is None or end is None:
        return None
    return round(max(0.0, (end - start).total_seconds()), 3)


def _last_runs(
    session: Session,
    owner: InstrumentedAttribute[str],
    names: Iterable[str],
    length: int,
    *conditions: ColumnElement[bool],
) -> Mapping[str, tuple[Run, ...]]:
    """One statement for all: a limited look into the index for each name, put together."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, list[Run]] = {name: [] for name in wanted}
    for start in range(0, len(wanted), _PARTS):
        parts = [_part(owner, name, length, conditions) for name in wanted[start : start + _PARTS]]
        for row in session.execute(union_all(*parts)):
            found[row.owner].append(
                Run(
                    id=row.id,
                    seq=row.seq,
                    status=row.status,
                    attention=row.attention is not None,
                    seconds=seconds_between(row.started_at, row.finished_at),
                    finished_at=row.finished_at,
                )
            )
    return {
        name: tuple(sorted(runs, key=lambda run: (run.finished_at, run.seq))) for name, runs in found.items()
    }


def _part(
    owner: InstrumentedAttribute[str], name: str, length: int, conditions: Sequence[ColumnElement[bool]]
) -> Select[Any]:
    inner = (
        select(
            literal(name).label("owner"),
            Job.id.label("id"),
            Job.seq.label("seq"),
            Job.status.label("status"),
            Job.attention.label("attention"),
            Job.started_at.label("started_at"),
            Job.finished_at.label("finished_at"),
        )
        .where(owner == name, Job.finished_at.is_not(None), *conditions)
        .order_by(Job.finished_at.desc())
        .limit(length)
        .subquery()
    )
    return select(inner)
