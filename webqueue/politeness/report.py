"""`webqueue politeness`: the proof, on request, of how a month's visits went (DESIGN section 6, "Evidence")."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.errors import InvalidInputError
from webqueue.models import KeyEvent, RequestDay
from webqueue.politeness.evidence import EvidenceLog
from webqueue.politeness.figures import KeyFigures, by_key
from webqueue.politeness.keeping import machine_of


@dataclass(frozen=True)
class Reaction:
    """A block, and what followed it.

    Attributes:
        until: the end of the cooldown that it caused.
        next_request_at: the key's first request after it; None when there was none yet.
        lifted_by: who ended the cooldown by hand before that.
        obeyed: no request came before `until`, or a person had lifted the cooldown.
    """

    at: datetime
    cause: str
    seconds: int
    until: datetime
    next_request_at: datetime | None
    lifted_by: str | None
    obeyed: bool


@dataclass(frozen=True)
class KeyReport:
    """One key in a month. `machines` of other folders are known by their summaries only."""

    key: str
    requests: int
    bytes: int
    jobs: int
    statuses: Mapping[str, int]
    smallest_gap_sec: float | None
    most_parallel: int
    first_at: datetime | None
    last_at: datetime | None
    machines: tuple[str, ...]
    blocks: tuple[Reaction, ...] = field(default_factory=tuple)


def month_of(text: str) -> tuple[datetime, datetime]:
    """Beginning and end (UTC) of a month written as `2026-11`.

    Raises:
        InvalidInputError: it is none.
    """
    try:
        first = date.fromisoformat(f"{text}-01")
        following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    except ValueError:
        raise InvalidInputError.of("month", f"{text!r} is no month; write 2026-11") from None
    return _midnight(first), _midnight(following)


def politeness_report(
    session: Session, instance: Path, month: str, *, key: str | None = None
) -> tuple[KeyReport, ...]:
    """What the evidence of this machine, the summaries of others, and the histories of the keys tell of a month.

    Args:
        session: reads only.
        instance: its evidence files are read.
        month: `2026-11`; of UTC.
        key: only this one.

    Raises:
        InvalidInputError: `month`.
    """
    since, until = month_of(month)
    figures, starts = _from_files(instance, since, until, key)
    summaries = _summaries(session, instance, since, until, key)
    events = _events(session, since, until, key)
    keys = sorted({*figures, *summaries, *(name for name, _events_of in events.items())})
    return tuple(
        _report(
            one,
            figures.get(one),
            summaries.get(one, ()),
            _reactions(events.get(one, ()), starts.get(one, ())),
            machine_of(instance),
        )
        for one in keys
    )


def _from_files(
    instance: Path, since: datetime, until: datetime, key: str | None
) -> tuple[dict[str, KeyFigures], dict[str, list[datetime]]]:
    """Figures, and the starts of all requests up to two days after the month: a cooldown may reach beyond it."""
    log = EvidenceLog(instance)
    figures: dict[str, KeyFigures] = {}
    starts: dict[str, list[datetime]] = {}
    for day in log.days():
        if not since.date() <= day < (until + timedelta(days=2)).date():
            continue
        for name, lines in by_key(log.read(day, key)).items():
            starts.setdefault(name, []).extend(line.at for line in lines)
            if day < until.date():
                figures.setdefault(name, KeyFigures()).add(lines)
    return figures, {name: sorted(times) for name, times in starts.items()}


def _summaries(
    session: Session, instance: Path, since: datetime, until: datetime, key: str | None
) -> dict[str, list[RequestDay]]:
    """Of other machines, and of this one where its file is gone."""
    statement = select(RequestDay).where(RequestDay.day >= since.date(), RequestDay.day < until.date())
    if key is not None:
        statement = statement.where(RequestDay.rate_key == key)
    own, days = machine_of(instance), set(EvidenceLog(instance).days())
    found: dict[str, list[RequestDay]] = {}
    for row in session.scalars(statement.order_by(RequestDay.day)):
        if row.machine != own or row.day not in days:
            found.setdefault(row.rate_key, []).append(row)
    return found


def _events(session: Session, since: datetime, until: datetime, key: str | None) -> dict[str, list[KeyEvent]]:
    statement = select(KeyEvent).where(
        KeyEvent.kind.in_(("blocked", "cooldown_lifted")), KeyEvent.at >= since, KeyEvent.at < until
    )
    if key is not None:
        statement = statement.where(KeyEvent.rate_key == key)
    found: dict[str, list[KeyEvent]] = {}
    for event in session.scalars(statement.order_by(KeyEvent.id)):
        found.setdefault(event.rate_key, []).append(event)
    return found


def _reactions(events: Sequence[KeyEvent], starts: Sequence[datetime]) -> tuple[Reaction, ...]:
    return tuple(
        _reaction(event, events[number + 1 :], starts)
        for number, event in enumerate(events)
        if event.kind == "blocked"
    )


def _reaction(event: KeyEvent, later: Iterable[KeyEvent], starts: Sequence[datetime]) -> Reaction:
    until = datetime.fromisoformat(event.data["until"]) if "until" in event.data else event.at
    place = bisect.bisect_right(starts, event.at)
    following = starts[place] if place < len(starts) else None
    lifted = next(
        (
            one.by
            for one in later
            if one.kind == "cooldown_lifted" and (following is None or one.at <= following) and one.at < until
        ),
        None,
    )
    return Reaction(
        at=event.at,
        cause=str(event.data.get("cause", event.message)),
        seconds=int(event.data.get("seconds", 0)),
        until=until,
        next_request_at=following,
        lifted_by=lifted,
        obeyed=following is None or following >= until or lifted is not None,
    )


def _report(
    key: str,
    figures: KeyFigures | None,
    summaries: Sequence[RequestDay],
    blocks: tuple[Reaction, ...],
    own: str,
) -> KeyReport:
    one = figures or KeyFigures()
    statuses = one.statuses.copy()
    for row in summaries:
        statuses.update({str(status): int(count) for status, count in row.statuses.items()})
    gaps = [one.smallest_gap_sec, *(row.smallest_gap_sec for row in summaries)]
    firsts = [one.first_at, *(row.first_at for row in summaries)]
    lasts = [one.last_at, *(row.last_at for row in summaries)]
    machines = {row.machine for row in summaries} | ({own} if one.requests else set())
    return KeyReport(
        key=key,
        requests=one.requests + sum(row.requests for row in summaries),
        bytes=one.bytes + sum(row.bytes for row in summaries),
        jobs=len(one.jobs) + sum(row.jobs for row in summaries),
        statuses=dict(sorted(statuses.items())),
        smallest_gap_sec=min((gap for gap in gaps if gap is not None), default=None),
        most_parallel=max([one.most_parallel, *(row.most_parallel for row in summaries)]),
        first_at=min((at for at in firsts if at is not None), default=None),
        last_at=max((at for at in lasts if at is not None), default=None),
        machines=tuple(sorted(machines)),
        blocks=blocks,
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
