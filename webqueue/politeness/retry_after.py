"""The Retry-After header: for how long a server asks to be left alone (RFC 9110 §10.2.3)."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

MAX_RETRY_AFTER_SEC = 86_400
"""A day. Servers send absurd values by mistake; a key that is shut for a year is one that nobody looks at."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"

# The three forms of RFC 9110 §5.6.7, the two obsolete ones included: a recipient must take them all. The name
# of the day says nothing that the date does not say, so it is not compared.
_HTTP_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"[a-z]{{3}}, (?P<day>[0-9]{{2}}) (?P<month>[a-z]{{3}}) (?P<year>[0-9]{{4}}) {_CLOCK} GMT",
        rf"[a-z]{{6,9}}, (?P<day>[0-9]{{2}})-(?P<month>[a-z]{{3}})-(?P<year>[0-9]{{2}}) {_CLOCK} GMT",
        rf"[a-z]{{3}} (?P<month>[a-z]{{3}}) (?P<day>[ 0-9][0-9]) {_CLOCK} (?P<year>[0-9]{{4}})",
    )
)


def parse_retry_after(value: str | None, now: datetime) -> int | None:
    """The wait in whole seconds, 1 to 86400, that a Retry-After header asks for at `now` (aware).

    None where there is no header, or it is not one of the standard's forms, or it names no time to come: then
    the default cooldown holds. A date is rounded up, so that nothing starts early.
    """
    if value is None:
        return None
    text = value.strip(" \t")
    if re.fullmatch(r"[0-9]+", text):
        return _within_a_day(text)
    until = _http_date(text, now)
    if until is None or until <= now:
        return None
    return min(math.ceil((until - now).total_seconds()), MAX_RETRY_AFTER_SEC)


def _within_a_day(digits: str) -> int | None:
    significant = digits.lstrip("0")
    if len(significant) > len(
        str(MAX_RETRY_AFTER_SEC)
    ):  # judged by length: int() refuses thousands of digits
        return MAX_RETRY_AFTER_SEC
    return min(int(significant), MAX_RETRY_AFTER_SEC) if significant else None


def _http_date(text: str, now: datetime) -> datetime | None:
    match = next((found for pattern in _HTTP_DATES if (found := pattern.fullmatch(text))), None)
    if match is None or match["month"].lower() not in _MONTHS:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year = _full_year(year, now)
    month = _MONTHS.index(match["month"].lower()) + 1
    second = (
        min(int(match["second"]), 59) if match["second"] == "60" else int(match["second"])
    )  # a leap second
    try:
        return datetime(
            year, month, int(match["day"]), int(match["hour"]), int(match["minute"]), second, tzinfo=UTC
        )
    except ValueError:
        return None


def _full_year(two_digits: int, now: datetime) -> int:
    """RFC 9110 §5.6.7: what looks more than 50 years away lies in the past."""
    year = now.year - now.year % 100 + two_digits
    return year - 100 if year > now.year + 50 else year
