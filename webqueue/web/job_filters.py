"""The filters of the list of jobs: from the address to a JobFilter, and to chips that take one away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from flask import url_for

from webqueue.errors import InvalidInputError
from webqueue.queries import JobFilter
from webqueue.sentences import say
from webqueue.web.languages import gettext, told
from webqueue.web.words import SOURCES, STATUSES

PERIODS: Final = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
PERIOD_WORDS: Final = {
    "1h": say("1 hour"),
    "24h": say("24 hours"),
    "7d": say("7 days"),
    "30d": say("30 days"),
}
FILTERS: Final = ("status", "attention", "site", "target", "rate_key", "source", "queued", "finished")
_WORDS: Final = {
    "status": "%(value)s",
    "attention": say("to look at"),
    "site": say("site %(value)s"),
    "target": say("target %(value)s"),
    "rate_key": say("key %(value)s"),
    "source": say("trigger %(value)s"),
    "queued": say("queued in %(value)s"),
    "finished": say("finished in %(value)s"),
}


def chosen_in(values: Mapping[str, str]) -> dict[str, str]:
    """The filters among the parts of an address or the fields of a form; empty ones are none."""
    return {name: value for name in FILTERS if (value := values.get(name, "").strip())}


def filter_of(chosen: Mapping[str, str], now: datetime) -> JobFilter:
    """What is asked for.

    Raises:
        InvalidInputError: a filter has a value that makes no sense.
    """
    return JobFilter(
        status=chosen.get("status"),
        attention="attention" in chosen,
        site=chosen.get("site"),
        target=chosen.get("target"),
        rate_key=chosen.get("rate_key"),
        source=chosen.get("source"),
        since=_since(chosen, "queued", now),
        finished_since=_since(chosen, "finished", now),
    )


def list_url(chosen: Mapping[str, Any]) -> str:
    """The address of the list with these filters."""
    return url_for("jobs.index", **chosen)


def chips(chosen: Mapping[str, str]) -> list[tuple[str, str]]:
    """What each filter says, and the address of the list without it."""
    return [
        (
            gettext(_WORDS[name], value=_told_value(name, value)),
            list_url({other: text for other, text in chosen.items() if other != name}),
        )
        for name, value in chosen.items()
    ]


def _told_value(name: str, value: str) -> str:
    if name in {"queued", "finished"}:
        return told(PERIOD_WORDS.get(value, value))
    if name == "status":
        return told(STATUSES.get(value, value))
    return told(SOURCES.get(value, value)) if name == "source" else value


def _since(chosen: Mapping[str, str], name: str, now: datetime) -> datetime | None:
    period = chosen.get(name)
    if period is None:
        return None
    if period not in PERIODS:
        raise InvalidInputError.of(
            name, say("%(value)s is none of %(known)s.", value=repr(period), known=", ".join(PERIODS))
        )
    return now - PERIODS[period]
