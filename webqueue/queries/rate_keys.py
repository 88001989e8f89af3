"""Rate keys now: the one job running, who waits behind it, and why and until when a key is shut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Job, KeyEvent, RateKey, RateKeyStatus, Target
from webqueue.queries.jobs import JobRow, running_jobs
from webqueue.queries.runs import QUEUED, Run, last_runs_of_keys
from webqueue.queries.site_keys import sites_by_key

KEY_STATES = ("running", "stuck", "cooling_down", "paused", "idle")
MAX_KEYS = 200
# A handler gets 8 s to stop; one that takes this long does not listen.
STUCK_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class NotBefore:
    """The time before which a key starts nothing; `kind` is `cooldown` or `gap`."""

    at: datetime
    kind: str
    cause: str


@dataclass(frozen=True)
class RateKeyRow:
    """A rate key in the fields of DESIGN section 8, and what pages show beside them.

    Attributes:
        state: `running`, `stuck`, `cooling_down`, `paused` or `idle`.
        next_start_at: the earliest time of its next start, None when that depends on a person or a running job.
        next_tick_at: the next scheduled run of one of its targets.
    """

    key: str
    state: str
    sites: tuple[str, ...]
    running_job: JobRow | None
    queued: int
    next_start_at: datetime | None
    not_before: NotBefore | None
    paused_by: str | None
    consecutive_blocks: int
    paused_at: datetime | None = None
    paused_note: str = ""
    next_tick_at: datetime | None = None
    last_request_at: datetime | None = None
    runs: tuple[Run, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class KeyEventRow:
    """Something that happened to a key."""

    id: int
    at: datetime
    kind: str
    by: str
    message: str
    data: Mapping[str, Any]
    job_id: str | None


def list_rate_keys(
    session: Session, *, state: str | None = None, active_only: bool = False, limit: int = MAX_KEYS
) -> tuple[RateKeyRow, ...]:
    """Rate keys: those with a job first, then those that wait, cool down or are paused, then the others by name.

    Keys of sites that never ran are listed too, as idle.

    Args:
        session: reads only.
        state: only keys in this state.
        active_only: leave out keys that are idle and have nothing queued.
        limit: at most this many.

    Raises:
        InvalidInputError: `state`.
    """
    if state is not None and state not in KEY_STATES:
        raise InvalidInputError.of("state", f"{state!r} is none of {', '.join(KEY_STATES)}.")
    now = clock.now(session)
    statement = select(RateKey).order_by(_urgency(), RateKey.key).limit(MAX_KEYS)
    rows = _rows(session, session.scalars(statement).all(), now, with_new=not active_only)
    chosen = [
        row
        for row in rows
        if (state is None or row.state == state)
        and (not active_only or row.state != "idle" or row.queued > 0)
    ]
    return tuple(chosen[:limit])


def get_rate_key(session: Session, key: str) -> RateKeyRow:
    """One rate key.

    Raises:
        NotFoundError: no job ever ran in it, and no site has it.
    """
    row = session.get(RateKey, key)
    now = clock.now(session)
    if row is not None:
        return _rows(session, [row], now, with_new=False)[0]
    sites = sites_by_key(session).get(key)
    if sites is None:
        raise NotFoundError("rate key", key)
    return _unused(key, sites, _next_ticks(session, {key: sites}).get(key))


def key_events(session: Session, key: str, *, limit: int = 50) -> tuple[KeyEventRow, ...]:
    """What happened to a key, newest first."""
    rows = session.scalars(
        select(KeyEvent).where(KeyEvent.rate_key == key).order_by(KeyEvent.id.desc()).limit(limit)
    )
    return tuple(
        KeyEventRow(row.id, row.at, row.kind, row.by, row.message, row.data, row.job_id) for row in rows
    )


def _urgency() -> Any:
    return case(
        (RateKey.status == RateKeyStatus.LEASED, 0),
        (RateKey.retry_at.is_not(None), 1),
        (RateKey.paused_at.is_not(None), 2),
        (RateKey.cooldown_until.is_not(None), 3),
        else_=4,
    )


def _rows(session: Session, keys: Sequence[RateKey], now: datetime, *, with_new: bool) -> list[RateKeyRow]:
    sites = sites_by_key(session)
    names = [key.key for key in keys]
    running = {job.rate_key: job for job in running_jobs(session)}
    stuck = _stuck_jobs(session, running)
    queued = _queued_counts(session, names)
    runs = last_runs_of_keys(session, names)
    ticks = _next_ticks(session, sites)
    rows = [
        _row(
            key,
            now,
            sites=sites.get(key.key, ()),
            running=running.get(key.key),
            told_stuck=key.key in running and running[key.key].id in stuck,
            queued=queued.get(key.key, 0),
            runs=runs.get(key.key, ()),
            next_tick=ticks.get(key.key),
        )
        for key in keys
    ]
    if with_new:
        known = set(names)
        rows += [_unused(key, sites[key], ticks.get(key)) for key in sorted(sites) if key not in known][
            : MAX_KEYS - len(rows)
        ]
    return rows


def _row(
    key: RateKey,
    now: datetime,
    *,
    sites: tuple[str, ...],
    running: JobRow | None,
    told_stuck: bool,
    queued: int,
    runs: tuple[Run, ...],
    next_tick: datetime | None,
) -> RateKeyRow:
    not_before = _not_before(key, now)
    state = _state(key, running, now, told_stuck=told_stuck)
    return RateKeyRow(
        key=key.key,
        state=state,
        sites=sites,
        running_job=running,
        queued=queued,
        next_start_at=_next_start(key, state, queued, next_tick, not_before, now),
        not_before=not_before,
        paused_by=key.paused_by if key.paused_at is not None else None,
        consecutive_blocks=key.consecutive_blocks,
        paused_at=key.paused_at,
        paused_note=key.paused_note,
        next_tick_at=next_tick,
        last_request_at=key.last_request_at,
        runs=runs,
    )


def _unused(key: str, sites: tuple[str, ...], next_tick: datetime | None) -> RateKeyRow:
    return RateKeyRow(
        key=key,
        state="idle",
        sites=sites,
        running_job=None,
        queued=0,
        next_start_at=next_tick,
        not_before=None,
        paused_by=None,
        consecutive_blocks=0,
        next_tick_at=next_tick,
    )


def _state(key: RateKey, running: JobRow | None, now: datetime, *, told_stuck: bool) -> str:
    if key.status == RateKeyStatus.LEASED:
        return "stuck" if told_stuck or _is_stuck(key, running, now) else "running"
    if key.paused_at is not None:
        return "paused"
    if key.cooldown_until is not None and key.cooldown_until > now:
        return "cooling_down"
    return "idle"


def _stuck_jobs(session: Session, running: Mapping[str, JobRow]) -> set[str]:
    """The running jobs whose handlers, as their worker told, go on after their time limit (P9)."""
    told = session.execute(
        select(KeyEvent.job_id, func.max(KeyEvent.at))
        .where(
            KeyEvent.rate_key.in_(list(running)),
            KeyEvent.kind == "stuck",
            KeyEvent.job_id.in_([job.id for job in running.values()]),
        )
        .group_by(KeyEvent.job_id)
    )
    last = {job_id: at for job_id, at in told}  # noqa: C416 - rows are no plain tuples
    # An earlier run of the job may have been stuck as well; what counts is the present one.
    return {
        job.id
        for job in running.values()
        if job.id in last and job.started_at is not None and last[job.id] >= job.started_at
    }


def _is_stuck(key: RateKey, running: JobRow | None, now: datetime) -> bool:
    """Its lease had to be extended from outside, or its job was asked to stop long ago."""
    asked = running.stop_requested_at if running is not None else None
    return key.extensions > 0 or (asked is not None and asked < now - STUCK_AFTER)


def _not_before(key: RateKey, now: datetime) -> NotBefore | None:
    """The later of cooldown and gap, while it lies ahead (DESIGN section 5)."""
    found = [
        NotBefore(moment, kind, cause or "")
        for moment, kind, cause in (
            (key.cooldown_until, "cooldown", key.cooldown_cause),
            (key.gap_until, "gap", key.gap_cause),
        )
        if moment is not None and moment > now
    ]
    return max(found, key=lambda bound: bound.at, default=None)


def _next_start(
    key: RateKey,
    state: str,
    queued: int,
    next_tick: datetime | None,
    not_before: NotBefore | None,
    now: datetime,
) -> datetime | None:
    if key.paused_at is not None:
        return None
    if state in {"running", "stuck"}:
        return None if queued else next_tick
    if queued:
        return max(key.retry_at or now, now)
    if next_tick is None or not_before is None:
        return next_tick
    return max(next_tick, not_before.at)


def _queued_counts(session: Session, keys: Iterable[str]) -> Mapping[str, int]:
    rows = session.execute(
        select(Job.rate_key, func.count())
        .where(Job.status == QUEUED, Job.rate_key.in_(list(keys)))
        .group_by(Job.rate_key)
    )
    return {key: number for key, number in rows}  # noqa: C416 - rows are no plain tuples for the type checker


def _next_ticks(session: Session, sites: Mapping[str, tuple[str, ...]]) -> Mapping[str, datetime]:
    rows = session.execute(
        select(Target.site_code, func.min(Target.next_tick_at))
        .where(Target.enabled.is_(True), Target.paused_at.is_(None), Target.next_tick_at.is_not(None))
        .group_by(Target.site_code)
    )
    by_site: dict[str, datetime] = {site: tick for site, tick in rows if tick is not None}
    found: dict[str, datetime] = {}
    for key, codes in sites.items():
        ticks = [by_site[code] for code in codes if code in by_site]
        if ticks:
            found[key] = min(ticks)
    return found
