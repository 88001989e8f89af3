"""The overview: which key runs what, who waits, what failed, what comes next."""

from __future__ import annotations

from flask import Blueprint, Response

from webqueue import config, queries
from webqueue.db import reading
from webqueue.queries.bookings import overbooked_keys
from webqueue.queries.rate_keys import busiest_rate_keys
from webqueue.web import live
from webqueue.web.demo import removal_question

pages = Blueprint("overview", __name__)

KEYS_SHOWN = 40


@pages.get("/")
def index() -> Response:
    """The first page."""
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    counts = queries.counts(session)
    busiest = busiest_rate_keys(session, limit=KEYS_SHOWN + 1)
    keys = busiest[:KEYS_SHOWN]
    return live.page(
        "overview.html",
        version=version,
        blocks=("counts", "keys", "attention", "failures", "next_runs"),
        busy=counts.running > 0,
        section="overview",
        counts=counts,
        keys=keys,
        more_keys=len(busiest) > len(keys),
        cooling=[key for key in keys if key.state == "cooling_down"],
        stuck=[key for key in keys if key.state == "stuck"],
        overbooked=overbooked_keys(session),
        attention=queries.attention_jobs(session),
        failures=queries.failures(session),
        next_runs=queries.next_runs(session),
        has_sites=bool(queries.list_sites(session, limit=1).items),
        demo_question=removal_question(config.find_demo(session)),
    )
