"""What changes of the clock do to a schedule, told to people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from webqueue.cron.wall_clock import DAY
from webqueue.sentences import say, say_some


def note_of_change(
    old: datetime, new: datetime, touched: Sequence[datetime], *, timezone: str, follows_the_clock: bool
) -> str:
    """One sentence on a change of the clock.

    Args:
        old, new: what the clock shows before and after it.
        touched: the times of the schedule that it skips or repeats, at least one.
        timezone: whose clock it is.
        follows_the_clock: whether the schedule does what the clock shows; else each of its times runs once.
    """
    times = _listed(touched, dated=abs(new - old) >= DAY)
    clock = say(
        "%(day)s: the clock of %(zone)s goes from %(old)s to %(new)s",
        day=f"{old:%Y-%m-%d}",
        zone=timezone,
        old=f"{old:%H:%M}",
        new=_until(old, new),
    )
    count = len(touched)
    if new > old and follows_the_clock:
        return say_some(
            "%(clock)s; %(times)s does not exist and is left out.",
            "%(clock)s; %(times)s do not exist and are left out.",
            count,
            clock=clock,
            times=times,
        )
    if new > old:
        return say_some(
            "%(clock)s; %(times)s does not exist and runs at %(instead)s instead.",
            "%(clock)s; %(times)s do not exist and run at %(instead)s instead.",
            count,
            clock=clock,
            times=times,
            instead=f"{new:%H:%M}",
        )
    if follows_the_clock:
        return say_some(
            "%(clock)s; %(times)s comes twice and runs both times.",
            "%(clock)s; %(times)s come twice and run both times.",
            count,
            clock=clock,
            times=times,
        )
    return say_some(
        "%(clock)s; %(times)s comes twice and runs once, the first time.",
        "%(clock)s; %(times)s come twice and run once, the first time.",
        count,
        clock=clock,
        times=times,
    )


def _until(old: datetime, new: datetime) -> str:
    if new.date() == old.date():
        return f"{new:%H:%M}"
    return say("%(time)s of %(day)s", time=f"{new:%H:%M}", day=f"{new:%Y-%m-%d}")


def _listed(times: Sequence[datetime], *, dated: bool) -> str:
    shown = [f"{time:%Y-%m-%d %H:%M}" if dated else f"{time:%H:%M}" for time in times]
    if len(shown) <= 4:
        return ", ".join(shown)
    return say(
        "%(first)s … %(last)s (%(count)s times)", first=", ".join(shown[:3]), last=shown[-1], count=len(shown)
    )
