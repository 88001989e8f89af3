"""What a schedule means: words, the next times, and what daylight saving does to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webqueue import cron
from webqueue.errors import InvalidInputError

SHOWN = 5
PRESETS = (
    ("0 3 * * *", "Every day at 03:00"),
    ("0 */6 * * *", "Every 6 hours"),
    ("30 * * * *", "Every hour, at half past"),
    ("*/15 * * * *", "Every 15 minutes"),
    ("0 7 * * 1-5", "On working days at 07:00"),
    ("0 4 * * 1", "On Mondays at 04:00"),
    ("0 4 1 * *", "On the 1st of the month at 04:00"),
)


@dataclass(frozen=True)
class Preview:
    """A schedule explained, or what is wrong with it, by field."""

    words: str = ""
    timezone: str = ""
    times: tuple[datetime, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def preview(expression: str | None, timezone: str, now: datetime) -> Preview | None:
    """The meaning of a schedule; None for one that is only run by hand."""
    if not expression or not expression.strip():
        return None
    try:
        schedule = cron.parse(expression, timezone)
        return Preview(
            words=schedule.words(),
            timezone=timezone,
            times=tuple(schedule.next_times(now, SHOWN)),
            notes=tuple(schedule.dst_notes(now)),
        )
    except InvalidInputError as error:
        return Preview(errors=tuple(f"{problem.field}: {problem.message}" for problem in error.problems))
