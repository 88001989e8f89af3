"""The schedule: which ticks come next, and what became of the past ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from flask import Blueprint, Response, request, url_for

from webqueue import clock, queries
from webqueue.db import reading
from webqueue.errors import InvalidInputError
from webqueue.models import JobSource, JobStatus
from webqueue.queries import JobFilter
from webqueue.queries.coming import coming_ticks
from webqueue.sentences import say
from webqueue.web import live

pages = Blueprint("schedule", __name__)

SPANS: Final = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
SPAN_WORDS: Final = {"24h": say("24 hours"), "7d": say("7 days"), "30d": say("30 days")}
FILTERS: Final = ("rate_key", "span", "past")
TICKS_SHOWN: Final = 100


@pages.get("/schedule")
def index() -> Response:
    """The next ticks, and the past ones with those that were skipped, and why; of one rate key or of all."""
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    chosen = {name: value for name in FILTERS if (value := request.args.get(name, "").strip()[:300])}
    span = chosen.get("span", "24h")
    if span not in SPANS:
        raise InvalidInputError.of(
            "span", say("%(value)s is none of %(known)s.", value=repr(span), known=", ".join(SPANS))
        )
    if chosen.get("past", "skipped") != "skipped":
        raise InvalidInputError.of(
            "past", say("%(value)s is none of %(known)s.", value=repr(chosen["past"]), known="skipped")
        )
    now = clock.now(session)
    key = chosen.get("rate_key")
    past = JobFilter(
        source=JobSource.SCHEDULE.value,
        rate_key=key,
        status=JobStatus.SKIPPED.value if "past" in chosen else None,
    )

    def url(**more: Any) -> str:
        return url_for("schedule.index", **{**chosen, **more})

    return live.page(
        "schedule.html",
        version=version,
        blocks=("coming", "past"),
        section="schedule",
        ticks=coming_ticks(session, now, now + SPANS[span], rate_key=key, limit=TICKS_SHOWN),
        most=TICKS_SHOWN,
        page=queries.list_jobs(session, past, cursor=request.args.get("cursor")),
        chosen=chosen,
        span=span,
        spans=SPAN_WORDS,
        url=url,
    )
