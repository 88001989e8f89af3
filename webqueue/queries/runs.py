"""The last runs of keys and targets, for the strips; and short references to jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from statistics import median
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    String,
    bindparam,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from webqueue.jobs_sql.heads import QUEUED_STATUS, RUNNING_STATUS
from webqueue.models import Job, JobSource, JobStatus

STRIP_LENGTH = 12
# Ticks that were skipped one after another, as in hours without a scheduler, are one mark on a strip; no further back than
# this are the runs before them looked for.
_DEEP = 200
# SQLite takes at most 500 parts of a compound select.
_PARTS = 100

# Of which owner, bound to which name, how many.
_Part = Callable[[str, BindParameter[str], int], Select[Any]]

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

    @property
    def skipped(self) -> bool:
        """Whether it is a tick that made no run."""
        return self.status == JobStatus.SKIPPED


def last_runs_of_keys(
    session: Session, keys: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each key, oldest first; skipped ticks in a row count as one."""
    return _folded_runs(session, "rate_key", keys, length)


def last_runs_of_targets(
    session: Session, targets: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each target, oldest first; skipped ticks in a row count as one."""
    return _folded_runs(session, "target_code", targets, length)


def last_full_runs_of_targets(
    session: Session, targets: Iterable[str], length: int = STRIP_LENGTH
) -> Mapping[str, tuple[Run, ...]]:
    """The last finished runs of each target that began and were no tries, oldest first: they tell how long it takes."""
    return _read(session, _full_part, "target_code", targets, length)


def usual_seconds(runs: Sequence[Run]) -> float | None:
    """The median of the runs that were done; when none was, of those that ended otherwise, as they fill the key too."""
    ran = [run for run in runs if run.seconds is not None]
    done = [run for run in ran if run.status == "done"]
    return median(run.seconds or 0.0 for run in done or ran) if ran else None


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from start to end, never negative; 0.0 is a duration, None is none (SEEDS C6, C10)."""
    if start is None or end is None:
        return None
    return round(max(0.0, (end - start).total_seconds()), 3)


def _folded_runs(
    session: Session, owner: str, names: Iterable[str], length: int
) -> Mapping[str, tuple[Run, ...]]:
    found = dict(_read(session, _part, owner, names, length))
    crowded = [name for name, runs in found.items() if len(_folded(runs)) < len(runs) == length]
    if crowded:
        found.update(_read(session, _deep_part, owner, crowded, length))
    return {name: _folded(runs) for name, runs in found.items()}


def _folded(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs without skipped ticks that a skipped tick follows."""
    return tuple(
        run
        for run, later in zip_longest(runs, runs[1:])
        if later is None or not run.skipped or not later.skipped
    )


def _read(
    session: Session, part: _Part, owner: str, names: Iterable[str], length: int
) -> Mapping[str, tuple[Run, ...]]:
    """One statement for all: a limited look into the index for each name, put together."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, list[Run]] = {name: [] for name in wanted}
    for start in range(0, len(wanted), _PARTS):
        some = wanted[start : start + _PARTS]
        values = {f"name_{number}": name for number, name in enumerate(some)}
        for row in session.execute(_statement(part, owner, length, len(some)), values):
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


@functools.lru_cache(maxsize=128)
def _statement(part: _Part, owner: str, length: int, count: int) -> CompoundSelect[Any]:
    """The same look for `name_0`, `name_1`, ...: for forty keys it takes longer to put together than to run."""
    names = (bindparam(f"name_{number}", type_=String()) for number in range(count))
    return union_all(*(part(owner, name, length) for name in names))


def _part(owner: str, name: BindParameter[str], length: int) -> Select[Any]:
    return _limited(owner, name, length)


def _full_part(owner: str, name: BindParameter[str], length: int) -> Select[Any]:
    return _limited(owner, name, length, Job.started_at.is_not(None), Job.source != JobSource.TRY)


def _deep_part(owner: str, name: BindParameter[str], length: int) -> Select[Any]:
    """As `_part`, without skipped ticks that a skipped tick follows; it looks at more rows, so few names are worth it."""
    looked = _limited(owner, name, _DEEP).subquery()
    later = func.lag(looked.c.status).over(order_by=looked.c.finished_at.desc())
    marked = select(looked, later.label("later")).subquery()
    inner = (
        select(*(marked.c[column.name] for column in looked.c))
        .where(or_(marked.c.status != JobStatus.SKIPPED, marked.c.later.is_distinct_from(JobStatus.SKIPPED)))
        .order_by(marked.c.finished_at.desc())
        .limit(length)
        .subquery()
    )
    return select(inner)


def _limited(
    owner: str, name: BindParameter[str], length: int, *conditions: ColumnElement[bool]
) -> Select[Any]:
    inner = (
        select(
            name.label("owner"),
            Job.id.label("id"),
            Job.seq.label("seq"),
            Job.status.label("status"),
            Job.attention.label("attention"),
            Job.started_at.label("started_at"),
            Job.finished_at.label("finished_at"),
        )
        .where(getattr(Job, owner) == name, Job.finished_at.is_not(None), *conditions)
        .order_by(Job.finished_at.desc())
        .limit(length)
        .subquery()
    )
    return select(inner)
