"""Rate keys now: the one job running, who waits behind it, and why and until when a key is shut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, not_, select
from sqlalchemy.orm import Session, aliased

from webqueue import clock
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Job, KeyEvent, RateKey, RateKeyNote, RateKeyStatus, Target
from webqueue.politeness.rate_key import is_key
from webqueue.queries.jobs import JobRow, running_jobs
from webqueue.queries.paging import MAX_LIMIT, Page, checked_limit
from webqueue.queries.runs import QUEUED, Run, last_runs_of_keys
from webqueue.queries.site_keys import sites_by_key
from webqueue.queries.stuck import stuck_keys
from webqueue.queries.waiting import Waiting, waiting_for
from webqueue.sentences import StoredText, say

KEY_STATES = ("running", "stuck", "cooling_down", "paused", "idle")


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
        next_start_at: the earliest time of its next start, None when that depends on a person, a worker or a running job.
        next_tick_at: the next scheduled run of one of its targets.
        schedules_paused: it has schedules, and all of them belong to paused targets.
        waiting: why the first in its line does not run, where the key itself is free.
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
    schedules_paused: bool = False
    last_request_at: datetime | None = None
    runs: tuple[Run, ...] = field(default_factory=tuple)
    owner: str = ""
    note: str = ""
    waiting: Waiting | None = None


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
    session: Session, *, state: str | None = None, cursor: str | None = None, limit: int = MAX_LIMIT
) -> Page[RateKeyRow]:
    """Rate keys, page by page, by name; within a page those at work stand first, then those that wait.

    Keys of sites that never ran are listed too, as idle.

    Args:
        session: reads only.
        state: only keys in this state.
        cursor: the `next_cursor` of the page before: the last name on it, which does not change as states do.
        limit: at most this many.

    Raises:
        InvalidInputError: `state`, `cursor` or `limit`.
    """
    limit = checked_limit(limit)
    if state is not None and state not in KEY_STATES:
        raise InvalidInputError.of(
            "state", say("%(value)s is none of %(known)s.", value=repr(state), known=", ".join(KEY_STATES))
        )
    if cursor and not is_key(cursor):
        raise InvalidInputError.of("cursor", say("is no cursor; use the one of the last answer."))
    world = _World.of(session)
    statement = select(RateKey).order_by(_name(session)).limit(limit + 1)
    if state is not None:
        statement = statement.where(_in_state(state, world))
    if cursor:
        statement = statement.where(_name(session) > cursor)
    keys = list(session.scalars(statement))
    unused = _unused_names(session, world, cursor or "") if state in {None, "idle"} else []
    names = sorted([*(key.key for key in keys), *unused[: limit + 1]])
    shown = set(names[:limit])
    rows = _rows(session, _by_urgency((key for key in keys if key.key in shown), world.now), world)
    rows += [_unused(name, world) for name in unused if name in shown]
    return Page(tuple(rows), names[limit - 1] if len(names) > limit else None)


def busiest_rate_keys(session: Session, *, limit: int) -> tuple[RateKeyRow, ...]:
    """The keys with a job first, then those that cool down, those that wait or are paused, and the others by name.

    A banner says of what cools down, so that it must not drop out behind many that wait.
    """
    world = _World.of(session)
    statement = select(RateKey).order_by(_urgency_in_sql(world.now), _name(session)).limit(limit)
    keys = session.scalars(statement).all()
    rows = _rows(session, keys, world)
    if len(rows) < limit:
        unused = _unused_names(session, world, "")[: limit - len(rows)]
        rows += [_unused(name, world) for name in unused]
    return tuple(rows)


def get_rate_key(session: Session, key: str) -> RateKeyRow:
    """One rate key.

    Raises:
        NotFoundError: no job ever ran in it, and no site has it.
    """
    row = session.get(RateKey, key)
    world = _World.of(session)
    if row is not None:
        return _rows(session, [row], world)[0]
    if key not in world.sites:
        raise NotFoundError("rate key", key)
    return _unused(key, world)


def key_events(session: Session, key: str, *, limit: int = 50) -> tuple[KeyEventRow, ...]:
    """What happened to a key, newest first."""
    rows = session.scalars(
        select(KeyEvent).where(KeyEvent.rate_key == key).order_by(KeyEvent.id.desc()).limit(limit)
    )
    return tuple(
        KeyEventRow(row.id, row.at, row.kind, row.by, StoredText(row.message), row.data, row.job_id)
        for row in rows
    )


@dataclass(frozen=True)
class _World:
    """What is read once for all keys: sites, ticks and notes by key, running jobs, the keys of stuck ones and of paused schedules."""

    now: datetime
    sites: Mapping[str, tuple[str, ...]]
    ticks: Mapping[str, datetime]
    paused: frozenset[str]
    running: Mapping[str, JobRow]
    stuck: frozenset[str]
    notes: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, session: Session) -> _World:
        now = clock.now(session)
        sites = sites_by_key(session)
        running = {job.rate_key: job for job in running_jobs(session)}
        # There are never more than people have written.
        notes = {row.key: (row.owner, row.note) for row in session.scalars(select(RateKeyNote))}
        ticks, paused = _next_ticks(session, sites), _with_paused_schedules(session, sites)
        return cls(now, sites, ticks, paused, running, stuck_keys(session, now), notes)


def _name(session: Session) -> Any:
    """The key's name in the order of its characters, as Python sorts: a server may have another order."""
    return RateKey.key.collate("BINARY" if session.get_bind().dialect.name == "sqlite" else "C")


def _in_state(state: str, world: _World) -> Any:
    """What `_state` tells of a row, as a condition; an idle key that has no row is not found by it."""
    leased = RateKey.status == RateKeyStatus.LEASED
    # There are never more running jobs than worker threads.
    stuck = RateKey.key.in_(sorted(world.stuck))
    paused = RateKey.paused_at.is_not(None)
    cooling = cooling_down(world.now)
    return {
        "running": and_(leased, not_(stuck)),
        "stuck": and_(leased, stuck),
        "paused": and_(not_(leased), paused),
        "cooling_down": cooling,
        "idle": and_(not_(leased), not_(paused), not_(cooling)),
    }[state]


def cooling_down(now: datetime) -> ColumnElement[bool]:
    """Of keys: shut by nothing but a cooldown. One that runs is shown as running, and one that is paused as paused."""
    return and_(
        RateKey.status != RateKeyStatus.LEASED,
        RateKey.paused_at.is_(None),
        RateKey.cooldown_until.is_not(None),
        RateKey.cooldown_until > now,
    )


def _unused_names(session: Session, world: _World, after: str) -> list[str]:
    """The keys of sites that never ran, which have no row yet, by name."""
    names = [name for name in world.sites if name > after]
    known = set(session.scalars(select(RateKey.key).where(RateKey.key.in_(names))))
    return sorted(name for name in names if name not in known)


def _by_urgency(keys: Iterable[RateKey], now: datetime) -> list[RateKey]:
    """The order of `_urgency_in_sql`, within a page."""

    def place(key: RateKey) -> tuple[int, str]:
        cools = key.paused_at is None and key.cooldown_until is not None and key.cooldown_until > now
        reasons = (
            key.status == RateKeyStatus.LEASED,
            cools,
            key.retry_at is not None,
            key.paused_at is not None,
        )
        return reasons.index(True) if True in reasons else len(reasons), key.key

    return sorted(keys, key=place)


def _urgency_in_sql(now: datetime) -> Any:
    return case(
        (RateKey.status == RateKeyStatus.LEASED, 0),
        (and_(RateKey.paused_at.is_(None), RateKey.cooldown_until > now), 1),
        (RateKey.retry_at.is_not(None), 2),
        (RateKey.paused_at.is_not(None), 3),
        else_=4,
    )


def _rows(session: Session, keys: Sequence[RateKey], world: _World) -> list[RateKeyRow]:
    names = [key.key for key in keys]
    queued = _queued_counts(session, names)
    runs = last_runs_of_keys(session, names)
    free = [key.key for key in keys if queued.get(key.key) and _state(key, world) == "idle"]
    waiting = _why_the_first_waits(session, free, world.now)
    return [
        _row(key, world, queued.get(key.key, 0), runs.get(key.key, ()), waiting.get(key.key)) for key in keys
    ]


def _why_the_first_waits(session: Session, keys: Sequence[str], now: datetime) -> Mapping[str, Waiting]:
    """Why the first in the line of each key waits; "about to start" would be untrue of most."""
    if not keys:
        return {}
    first = aliased(Job)
    head = (
        select(first.seq)
        .where(first.rate_key == RateKey.key, first.status == QUEUED)
        .order_by(first.retry_at, first.seq)
        .limit(1)
        .correlate(RateKey)
        .scalar_subquery()
    )
    jobs = session.scalars(
        select(Job).where(Job.seq.in_(select(head).select_from(RateKey).where(RateKey.key.in_(keys))))
    ).all()
    why = waiting_for(session, jobs, now)
    return {job.rate_key: why[job.seq] for job in jobs if job.seq in why}


def _row(
    key: RateKey, world: _World, queued: int, runs: tuple[Run, ...], waiting: Waiting | None
) -> RateKeyRow:
    not_before = _not_before(key, world.now)
    state = _state(key, world)
    next_tick = world.ticks.get(key.key)
    owner, note = world.notes.get(key.key, ("", ""))
    return RateKeyRow(
        key=key.key,
        state=state,
        sites=world.sites.get(key.key, ()),
        running_job=world.running.get(key.key),
        queued=queued,
        next_start_at=waiting.earliest_start
        if waiting is not None
        else _next_start(key, state, queued, next_tick, not_before, world.now),
        not_before=not_before,
        paused_by=key.paused_by if key.paused_at is not None else None,
        consecutive_blocks=key.consecutive_blocks,
        paused_at=key.paused_at,
        paused_note=key.paused_note,
        next_tick_at=next_tick,
        schedules_paused=next_tick is None and key.key in world.paused,
        last_request_at=key.last_request_at,
        runs=runs,
        owner=owner,
        note=note,
        waiting=waiting,
    )


def _unused(key: str, world: _World) -> RateKeyRow:
    next_tick = world.ticks.get(key)
    owner, note = world.notes.get(key, ("", ""))
    return RateKeyRow(
        key=key,
        state="idle",
        sites=world.sites[key],
        running_job=None,
        queued=0,
        next_start_at=next_tick,
        not_before=None,
        paused_by=None,
        consecutive_blocks=0,
        next_tick_at=next_tick,
        schedules_paused=next_tick is None and key in world.paused,
        owner=owner,
        note=note,
    )


def _state(key: RateKey, world: _World) -> str:
    """One of `KEY_STATES`."""
    if key.status == RateKeyStatus.LEASED:
        return "stuck" if key.key in world.stuck else "running"
    if key.paused_at is not None:
        return "paused"
    if key.cooldown_until is not None and key.cooldown_until > world.now:
        return "cooling_down"
    return "idle"


def _not_before(key: RateKey, now: datetime) -> NotBefore | None:
    """The later of cooldown and gap, while it lies ahead (DESIGN section 5)."""
    found = [
        NotBefore(moment, kind, StoredText(cause or ""))
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


def _with_paused_schedules(session: Session, sites: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The keys of sites that have a target whose schedule rests because the target is paused."""
    paused = set(
        session.scalars(
            select(Target.site_code).where(
                Target.enabled.is_(True), Target.paused_at.is_not(None), Target.schedule.is_not(None)
            )
        )
    )
    return frozenset(key for key, codes in sites.items() if paused.intersection(codes))


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
