"""What a schedule means: words, the next times, and what daylight saving does to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webqueue import cron
from webqueue.errors import InvalidInputError
from webqueue.sentences import say
from webqueue.web.languages import language, told

SHOWN = 5
PRESETS = (
    ("0 3 * * *", say("Every day at 03:00")),
    ("0 */6 * * *", say("Every 6 hours")),
    ("30 * * * *", say("Every hour, at half past")),
    ("*/15 * * * *", say("Every 15 minutes")),
    ("0 7 * * 1-5", say("On working days at 07:00")),
    ("0 4 * * 1", say("On Mondays at 04:00")),
    ("0 4 1 * *", say("On the 1st of the month at 04:00")),
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
            words=schedule.words(language()),
            timezone=timezone,
            times=tuple(schedule.next_times(now, SHOWN)),
            notes=tuple(schedule.dst_notes(now)),
        )
    except InvalidInputError as error:
        return Preview(errors=tuple(told(problem.message) for problem in error.problems))
