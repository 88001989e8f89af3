"""Cron schedules: five fields in a timezone, and what they mean on the wall clock (DESIGN §7).

`cronsim` reads the fields and finds the matching wall-clock times, by the rules of Debian's cron. Which
moments those wall-clock times are is worked out here, because cronsim loses ticks around clock changes that
are not whole hours (docs/decisions/0001-cronsim-and-half-hour-repeats.md). Two rules, both from cron(8) of
Debian:

- A schedule whose minute or hour field starts with `*` follows the wall clock: what the clock skips does not
  run, what it shows twice runs twice.
- Any other schedule runs each of its times once: one that the clock skips runs right after the gap, one that
  the clock shows twice runs the first time.
"""

from __future__ import annotations

from webqueue.cron.reading import MAX_EXPRESSION_LENGTH, parse
from webqueue.cron.schedule import MAX_NEXT_TIMES, Schedule
from webqueue.cron.timezones import MAX_TIMEZONE_LENGTH

__all__ = ["MAX_EXPRESSION_LENGTH", "MAX_NEXT_TIMES", "MAX_TIMEZONE_LENGTH", "Schedule", "parse"]
