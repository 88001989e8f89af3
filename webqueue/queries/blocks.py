"""The blocks of a rate key: how many there were, and the evidence of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue.models import KeyEvent
from webqueue.sentences import StoredText

BLOCKED: Final = "blocked"
PERIOD: Final = timedelta(days=30)


@dataclass(frozen=True)
class Blocks:
    """The blocks of a key.

    Attributes:
        recent: how many in the last 30 days.
        last_at: when the last one was, however long ago; None without any.
        job_id: the job that met it.
        cause: as the server answered.
        seconds: of the cooldown that it caused.
        retry_after: seconds that the server asked for.
        responses: the last ones of that run, oldest first: `at`, `method`, `url`, `status`, `error`, `bytes`, `ms`.
    """

    recent: int
    last_at: datetime | None = None
    job_id: str | None = None
    cause: str = ""
    seconds: int | None = None
    retry_after: int | None = None
    responses: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)


def blocks_of_key(session: Session, key: str, now: datetime) -> Blocks:
    """The blocks of a rate key, read from its events."""
    of_key = (KeyEvent.rate_key == key, KeyEvent.kind == BLOCKED)
    recent = session.scalar(select(func.count()).where(*of_key, KeyEvent.at > now - PERIOD)) or 0
    last = session.scalar(select(KeyEvent).where(*of_key).order_by(KeyEvent.id.desc()).limit(1))
    if last is None:
        return Blocks(recent)
    responses = last.data.get("responses") or ()
    return Blocks(
        recent=recent,
        last_at=last.at,
        job_id=last.job_id,
        cause=StoredText(str(last.data.get("cause") or last.message)),
        seconds=last.data.get("seconds"),
        retry_after=last.data.get("retry_after"),
        responses=tuple(one for one in responses if isinstance(one, dict)),
    )
