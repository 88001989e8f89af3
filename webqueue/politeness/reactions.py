"""What a key and a target learn from a run: cooldown, growth and shrinking of the interval (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue.models import IntervalChange, KeyEvent, RateKey, Target
from webqueue.politeness import causes, interval
from webqueue.politeness.cooldown import extended


def note_event(
    session: Session,
    key: RateKey,
    kind: str,
    *,
    at: datetime,
    by: str = "",
    message: str = "",
    job_id: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Write what happened to a key into its history."""
    session.add(
        KeyEvent(
            rate_key=key.key, at=at, kind=kind, by=by, message=message, job_id=job_id, data=dict(data or {})
        )
    )


def cool_down(
    session: Session,
    key: RateKey,
    *,
    now: datetime,
    seconds: int,
    cause: str,
    job_id: str,
    retry_after: int | None = None,
    responses: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Let `key` start nothing for `seconds`; a running cooldown is never shortened.

    Args:
        retry_after: seconds that the server asked for.
        responses: the run's last ones, oldest first; the key's page shows them as the evidence.
    """
    until = extended(key.cooldown_until, now + timedelta(seconds=seconds))
    if key.cooldown_until is None or until > key.cooldown_until:
        key.cooldown_cause = cause
    key.cooldown_until = until
    data = {
        "cause": cause,
        "seconds": seconds,
        "until": until.isoformat(),
        "retry_after": retry_after,
        "consecutive_blocks": key.consecutive_blocks,
        "responses": [dict(one) for one in responses],
    }
    message = causes.COOLING_DOWN % {"cause": cause, "seconds": seconds}
    note_event(session, key, "blocked", at=now, message=message, job_id=job_id, data=data)


def keep_gap(key: RateKey, until: datetime, cause: str) -> None:
    """Let `key` start nothing before `until`, unless it waits longer already."""
    if key.gap_until is None or until > key.gap_until:
        key.gap_until = until
        key.gap_cause = cause


_INTERVALS: Final = {
    interval.OWN: causes.OWN_INTERVAL,
    interval.LEARNED: causes.LEARNED_INTERVAL,
    interval.CRAWL_DELAY: causes.CRAWL_DELAY,
}


def told_interval(key: RateKey) -> str:
    """The key's interval in force with its cause, such as `Crawl-delay of robots.txt (20 s)`."""
    return _INTERVALS.get(key.interval_cause or "", causes.INTERVAL) % {"seconds": f"{key.interval_sec:g}"}


def not_before(key: RateKey) -> datetime | None:
    """The later of cooldown and gap; None when there is neither."""
    times = [time for time in (key.cooldown_until, key.gap_until) if time is not None]
    return max(times, default=None)


def grow_interval(
    session: Session, target: Target, *, now: datetime, cause: str, job_id: str
) -> dict[str, Any]:
    """Let the target's interval grow after a block; returns the `cooldown_interval_adjustment` of the result."""
    old = current_interval(target)
    growth = interval.grow(old)
    target.clean_runs = 0
    if growth.status == "updated":
        _learn(session, target, growth.seconds, now=now, cause=cause, job_id=job_id)
    return {
        "target_code": target.code,
        "old_interval_sec": _plain(old),
        "new_interval_sec": growth.seconds,
        "status": growth.status,
    }


def note_clean_run(session: Session, key: RateKey, target: Target, *, now: datetime, job_id: str) -> None:
    """A clean run forgives the key's blocks; after three, each further one shrinks the target's learned interval."""
    key.consecutive_blocks = 0
    if target.learned_interval_sec is None:
        return
    target.clean_runs += 1
    if target.clean_runs <= interval.CLEAN_RUNS_BEFORE_SHRINKING:
        return
    smaller = interval.shrink(target.learned_interval_sec, target.interval_sec)
    _learn(
        session,
        target,
        smaller.seconds,
        now=now,
        cause=causes.CLEAN_RUN % {"count": target.clean_runs},
        job_id=job_id,
    )


def current_interval(target: Target) -> float:
    """The target's interval in seconds: its learned one where that is larger than the file's."""
    return interval_of(target).seconds


def interval_of(target: Target) -> interval.InForce:
    """The same, and which of the two it is."""
    return interval.winning_interval(target.interval_sec, target.learned_interval_sec, None)


def _learn(
    session: Session, target: Target, seconds: float, *, now: datetime, cause: str, job_id: str
) -> None:
    old = current_interval(target)
    target.learned_interval_sec = None if seconds <= target.interval_sec else seconds
    if old != seconds:
        session.add(
            IntervalChange(
                target_code=target.code, at=now, old_sec=old, new_sec=seconds, cause=cause, job_id=job_id
            )
        )


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value
