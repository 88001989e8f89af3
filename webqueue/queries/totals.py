"""How many there are of each kind, for the metrics."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from webqueue.models import Job, JobStatus, RateKey, RateKeyStatus


def jobs_by_status(session: Session) -> dict[str, int]:
    """Jobs of each stored status, read from the index of the statuses; absent ones count 0."""
    counted = session.execute(select(Job.status, func.count()).group_by(Job.status))
    found = {status: number for status, number in counted}  # noqa: C416 - rows are no plain tuples
    return {status.value: found.get(status.value, 0) for status in JobStatus}


def keys_by_state(session: Session, now: datetime) -> dict[str, int]:
    """Rate keys that are running, paused, cooling down or idle; each counts once, as pages show it."""
    state = case(
        (RateKey.status == RateKeyStatus.LEASED, "running"),
        (RateKey.paused_at.is_not(None), "paused"),
        (RateKey.cooldown_until > now, "cooling_down"),
        else_="idle",
    )
    counted = session.execute(select(state, func.count()).group_by(state))
    found = {name: number for name, number in counted}  # noqa: C416 - rows are no plain tuples
    return {name: found.get(name, 0) for name in ("running", "paused", "cooling_down", "idle")}
