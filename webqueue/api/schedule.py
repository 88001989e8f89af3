"""When targets tick: of a schedule that is being written, and of all that are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from flask import Response

from webqueue import clock, cron
from webqueue.access import Action
from webqueue.api import answers, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import field_problem, json_response
from webqueue.api.routes import CURSOR, Asked, Parameter, Route, limit
from webqueue.config.values import is_code
from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.coming import coming_ticks

_LONGEST_SPAN = timedelta(days=62)
_DEFAULT_SPAN = timedelta(days=1)
_LIMIT = 200
_MAX_LIMIT = 1000
_NAMES = {"schedule": "cron", "timezone": "tz"}


def preview(ask: Asked) -> Response:
    query = Query("cron", "tz", "after", "count")
    expression, zone = query.text("cron"), query.text("tz") or "UTC"
    after, count = query.moment("after"), query.whole("count", 5, 1, 100)
    query.done()
    if expression is None:
        raise field_problem("cron", "is missing")
    if after is None:
        with ask.database.reading() as session:
            after = clock.now(session)
    try:
        schedule = cron.parse(expression, zone)
    except InvalidInputError as error:
        raise InvalidInputError(
            [Problem(_NAMES.get(one.field, one.field), one.message) for one in error.problems]
        ) from None
    return json_response(
        {
            "words": schedule.words(),
            "next": [shapes.moment(tick) for tick in schedule.next_times(after, count)],
            "notes": schedule.dst_notes(after),
        }
    )


def list_ticks(ask: Asked) -> Response:
    query = Query("from", "to", "cursor", "limit")
    start, end, cursor = query.moment("from"), query.moment("to"), query.cursor()
    limit = query.whole("limit", _LIMIT, 1, _MAX_LIMIT)
    query.done()
    with ask.database.reading() as session:
        start = start or clock.now(session)
        end = end or start + _DEFAULT_SPAN
        if not start < end <= start + _LONGEST_SPAN:
            raise field_problem("to", f"must be later than from, by at most {_LONGEST_SPAN.days} days")
        found = coming_ticks(session, start, end, after=_seen(cursor), limit=limit + 1)
    more = len(found) > limit
    items = [
        {"at": shapes.moment(tick.at), "target": tick.target, "site": tick.site, "rate_key": tick.rate_key}
        for tick in found[:limit]
    ]
    last = found[limit - 1] if more else None
    return json_response(
        shapes.listing(items, None if last is None else f"{int(last.at.timestamp())} {last.target}")
    )


ROUTES = (
    Route(
        "GET", "/schedule", Action.READ, list_ticks, "The ticks of all targets, soonest first.",
        {200: answers.Ticks},
        (
            Parameter("from", "The first time; now when left out.", "moment"),
            Parameter("to", "Before this time; a day later when left out.", "moment"),
            CURSOR,
            limit(_LIMIT, _MAX_LIMIT),
        ),
    ),
    Route(
        "GET", "/schedule/preview", Action.READ, preview, "What a schedule means.", {200: answers.Preview},
        (
            Parameter("cron", "The schedule.", required=True),
            Parameter("tz", "Its time zone; UTC when left out."),
            Parameter("after", "Times after this one; now when left out.", "moment"),
            Parameter("count", "How many times.", "whole", 1, 100, 5),
        ),
    ),
)  # fmt: skip


def _seen(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    seconds, _, code = cursor.partition(" ")
    if re.fullmatch(r"[0-9]{1,11}", seconds, re.ASCII) is None or not is_code(code):
        raise field_problem("cursor", "is no cursor; send the next_cursor of the last answer")
    return datetime.fromtimestamp(int(seconds), UTC), code
