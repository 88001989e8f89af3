"""Targets with what they did last and will do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import IntervalChange, Job, Site, Target
from webqueue.queries.jobs import JobRow, job_rows
from webqueue.queries.paging import Page, by_code
from webqueue.queries.runs import Run, last_runs_of_targets
from webqueue.queries.site_keys import keys_of_sites
from webqueue.sentences import StoredText, say

S = TypeVar("S", bound=Select[*tuple[Any, ...]])

TARGET_STATES = ("enabled", "disabled", "paused", "scheduled", "by_hand")


@dataclass(frozen=True)
class TargetRow:
    """A target in the fields of the file, and its present state.

    Attributes:
        timezone: the one in force; `own_timezone` is the one written down.
        open_job: the job that runs, else the newest that is queued.
        last_job: the one that finished last.
        runs: the last 12 finished runs, oldest first.
    """

    code: str
    site: str
    handler: str
    schedule: str | None
    timezone: str
    own_timezone: str | None
    interval_sec: float
    overlap: str
    catch_up: str
    catch_up_limit: int
    jitter_sec: int
    start_at: datetime | None
    end_at: datetime | None
    track_checkpoint: bool
    max_runtime_sec: int
    retry_times: int
    retry_wait_sec: int
    enabled: bool
    tags: tuple[str, ...]
    note: str
    owner: str
    params: Mapping[str, Any]
    rate_key: str
    paused_at: datetime | None
    paused_by: str | None
    next_tick: datetime | None
    learned_interval_sec: float | None
    schedule_error: str | None
    open_job: JobRow | None = None
    last_job: JobRow | None = None
    runs: tuple[Run, ...] = field(default_factory=tuple)
    created_at: datetime | None = None
    changed_at: datetime | None = None

    @property
    def paused(self) -> bool:
        """Whether its ticks are held back by a person."""
        return self.paused_at is not None


@dataclass(frozen=True)
class IntervalChangeRow:
    """One change of a target's learned interval (seconds), with its cause."""

    at: datetime
    old_sec: float
    new_sec: float
    cause: str
    job_id: str | None


@dataclass(frozen=True)
class TargetFilter:
    """Which targets a listing shows; `q` is found in code, note, owner and tags."""

    site: str | None = None
    state: str | None = None
    q: str | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in TARGET_STATES:
            raise InvalidInputError.of(
                "state",
                say(
                    "%(value)s is none of %(known)s.", value=repr(self.state), known=", ".join(TARGET_STATES)
                ),
            )


def list_targets(
    session: Session, filters: TargetFilter | None = None, *, cursor: str | None = None, limit: int = 50
) -> Page[TargetRow]:
    """Targets by code, each with its open and last job and its last runs; the cursor is the last code seen."""
    filters = filters or TargetFilter()
    chosen = filtered_targets(session, select(Target), filters)
    targets, following = by_code(session, chosen, Target.code, cursor=cursor, limit=limit)
    return Page(_rows(session, targets), following)


def get_target(session: Session, code: str) -> TargetRow:
    """One target. Raises NotFoundError."""
    target = session.get(Target, code)
    if target is None:
        raise NotFoundError("target", code)
    return _rows(session, [target])[0]


def target_codes(session: Session) -> tuple[str, ...]:
    """The code of every target, sorted: for people to choose from."""
    return tuple(session.scalars(select(Target.code).order_by(Target.code)))


def targets_of_sites(session: Session, sites: tuple[str, ...], *, limit: int = 200) -> tuple[str, ...]:
    """The codes of the targets of some sites, sorted."""
    statement = select(Target.code).where(Target.site_code.in_(sites)).order_by(Target.code).limit(limit)
    return tuple(session.scalars(statement))


def interval_changes(session: Session, target: str, *, limit: int = 10) -> tuple[IntervalChangeRow, ...]:
    """The last changes of a target's learned interval, newest first."""
    rows = session.scalars(
        select(IntervalChange)
        .where(IntervalChange.target_code == target)
        .order_by(IntervalChange.id.desc())
        .limit(limit)
    )
    return tuple(
        IntervalChangeRow(row.at, row.old_sec, row.new_sec, StoredText(row.cause), row.job_id) for row in rows
    )


def last_runs(session: Session, target: str, *, length: int = 50) -> tuple[Run, ...]:
    """The last finished runs of a target, oldest first."""
    return last_runs_of_targets(session, [target], length)[target]


def filtered_targets(session: Session, statement: S, filters: TargetFilter) -> S:
    """`statement`, which selects from targets, with the conditions of a filter."""
    if filters.site is not None:
        statement = statement.where(Target.site_code == filters.site)
    if filters.state is not None:
        statement = statement.where(_in_state(filters.state))
    if filters.q:
        columns = (Target.code, Target.note, Target.owner)
        statement = statement.where(
            or_(
                _has_tag_with(session, filters.q),
                *(column.icontains(filters.q, autoescape=True) for column in columns),
            )
        )
    return statement


def _has_tag_with(session: Session, text: str) -> Any:
    dialect = session.get_bind().dialect.name
    each = func.jsonb_array_elements_text if dialect == "postgresql" else func.json_each
    tags = each(Target.tags).table_valued("value")
    return select(1).select_from(tags).where(tags.c.value.icontains(text, autoescape=True)).exists()


def _in_state(state: str) -> Any:
    return {
        "enabled": Target.enabled.is_(True),
        "disabled": Target.enabled.is_(False),
        "paused": Target.paused_at.is_not(None),
        "scheduled": Target.schedule.is_not(None),
        "by_hand": Target.schedule.is_(None),
    }[state]


def _rows(session: Session, targets: Sequence[Target]) -> tuple[TargetRow, ...]:
    if not targets:
        return ()
    codes = [target.code for target in targets]
    runs = last_runs_of_targets(session, codes)
    keys = keys_of_sites(session, {target.site_code for target in targets})
    zones = dict(
        session.execute(
            select(Site.code, Site.timezone).where(Site.code.in_({target.site_code for target in targets}))
        ).all()
    )
    open_numbers = _open_numbers(session, codes)
    last_numbers = {code: runs[code][-1].seq for code in codes if runs[code]}
    jobs = _jobs(session, [*open_numbers.values(), *last_numbers.values()])
    return tuple(
        _target_row(
            target,
            zone=zones.get(target.site_code, "UTC"),
            rate_key=keys.get(target.site_code, target.site_code),
            open_job=jobs.get(open_numbers.get(target.code, 0)),
            last_job=jobs.get(last_numbers.get(target.code, 0)),
            runs=runs[target.code],
        )
        for target in targets
    )


def _open_numbers(session: Session, codes: Sequence[str]) -> dict[str, int]:
    """The number of the running job of each target, else of its newest queued one."""
    rows = session.execute(
        select(Job.target_code, Job.status, func.max(Job.seq).label("seq"))
        .where(Job.finished_at.is_(None), Job.target_code.in_(codes))
        .group_by(Job.target_code, Job.status)
        .order_by(Job.status)  # queued before running, so that running wins
    )
    return {row.target_code: row.seq for row in rows}


def _jobs(session: Session, numbers: Sequence[int]) -> dict[int, JobRow]:
    now = clock.now(session)
    jobs = session.scalars(select(Job).where(Job.seq.in_(numbers))).all()
    return {row.seq: row for row in job_rows(session, jobs, now)}


def _target_row(
    target: Target,
    *,
    zone: str,
    rate_key: str,
    open_job: JobRow | None,
    last_job: JobRow | None,
    runs: tuple[Run, ...],
) -> TargetRow:
    return TargetRow(
        code=target.code,
        site=target.site_code,
        handler=target.handler,
        schedule=target.schedule,
        timezone=target.timezone or zone,
        own_timezone=target.timezone,
        interval_sec=target.interval_sec,
        overlap=target.overlap,
        catch_up=target.catch_up,
        catch_up_limit=target.catch_up_limit,
        jitter_sec=target.jitter_sec,
        start_at=target.start_at,
        end_at=target.end_at,
        track_checkpoint=target.track_checkpoint,
        max_runtime_sec=target.max_runtime_sec,
        retry_times=target.retry_times,
        retry_wait_sec=target.retry_wait_sec,
        enabled=target.enabled,
        tags=tuple(target.tags),
        note=target.note,
        owner=target.owner,
        params=target.params,
        rate_key=rate_key,
        paused_at=target.paused_at,
        paused_by=target.paused_by,
        next_tick=target.next_tick_at,
        learned_interval_sec=target.learned_interval_sec,
        schedule_error=target.schedule_error,
        open_job=open_job,
        last_job=last_job,
        runs=runs,
        created_at=target.created_at,
        changed_at=target.changed_at,
    )
