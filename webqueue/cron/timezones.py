"""The names of timezones that a schedule may have."""

from __future__ import annotations

import difflib
import functools
import zoneinfo

from webqueue.sentences import say

MAX_TIMEZONE_LENGTH = 100

# These keys of the system's zone directory are no places: one is whatever this machine is set to, one a
# placeholder.
_NO_TIMEZONES = frozenset({"localtime", "Factory"})


def timezone_problem(timezone: str) -> str | None:
    """What is wrong with the name of a zone; None where it is one."""
    if len(timezone) > MAX_TIMEZONE_LENGTH:
        return say(
            "The timezone has %(count)s characters; no zone has more than %(most)s.",
            count=len(timezone),
            most=MAX_TIMEZONE_LENGTH,
        )
    if timezone in _timezones():
        return None
    # Membership, and not ZoneInfo's word: it also takes "right/…" (which counts leap seconds) and, on some
    # file systems, names in the wrong case, which another machine would then refuse.
    lowered = {name.lower(): name for name in _timezones()}
    # Its letters are nearest to Asia/Harbin; many write it, because their clocks and systems call it so.
    meant = ["asia/shanghai"] if timezone.lower().endswith("beijing") else None
    near = meant or difflib.get_close_matches(timezone.lower(), lowered, n=1)
    if near:
        return say(
            "There is no timezone %(zone)s. Did you mean %(near)s?",
            zone=ascii(timezone),
            near=lowered[near[0]],
        )
    return say(
        "There is no timezone %(zone)s. Write a name such as Asia/Shanghai or UTC.", zone=ascii(timezone)
    )


@functools.cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _NO_TIMEZONES)
