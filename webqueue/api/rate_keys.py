"""Rate keys: listed, read, paused, resumed, their cooldown lifted; and which one a URL has."""

from __future__ import annotations

from collections.abc import Callable

from flask import Response
from sqlalchemy.orm import Session

from webqueue import jobs, queries
from webqueue.access import Action
from webqueue.api import answers, asked, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import field_problem, json_response
from webqueue.api.routes import CURSOR, Asked, Parameter, Route, limit
from webqueue.errors import NotFoundError

_LONGEST_NOTE = 2000


def list_rate_keys(ask: Asked) -> Response:
    query = Query("state", "cursor", "limit")
    state, cursor = query.text("state"), query.cursor()
    limit = query.whole("limit", queries.MAX_LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    with ask.database.reading() as session:
        page = queries.list_rate_keys(session, state=state, cursor=cursor, limit=limit)
    return json_response(shapes.listing(map(shapes.rate_key, page.items), page.next_cursor))


def get_rate_key(ask: Asked, key: str) -> Response:
    Query().done()
    with ask.database.reading() as session:
        return json_response(shapes.rate_key(queries.get_rate_key(session, _sound(key))))


def pause(ask: Asked, key: str) -> Response:
    Query().done()
    data = asked.body()
    asked.refuse_unknown(data, ("note",))
    note = asked.text(data, "note", longest=_LONGEST_NOTE)
    return _changed(ask, key, lambda session: jobs.pause_key(session, key, by=ask.caller.name, note=note))


def resume(ask: Asked, key: str) -> Response:
    _no_more_said()
    return _changed(ask, key, lambda session: jobs.resume_key(session, key, by=ask.caller.name))


def lift_cooldown(ask: Asked, key: str) -> Response:
    _no_more_said()
    return _changed(ask, key, lambda session: jobs.lift_cooldown(session, key, by=ask.caller.name))


def resolve(ask: Asked) -> Response:
    query = Query("url", "adapter")
    url, adapter = query.text("url"), query.text("adapter")
    query.done()
    if url is None:
        raise field_problem("url", "is missing")
    with ask.database.reading() as session:
        key = queries.resolve_url(session, url, adapter)
        sharing = queries.sites_by_key(session).get(key, ())
    return json_response({"rate_key": key, "sites": list(sharing)})


ROUTES = (
    Route(
        "GET", "/rate-keys", Action.READ, list_rate_keys, "List rate keys, by name.", {200: answers.RateKeys},
        (
            Parameter("state", "idle, running, cooling_down, paused or stuck."),
            CURSOR,
            limit(queries.MAX_LIMIT, queries.MAX_LIMIT),
        ),
    ),
    Route(
        "GET", "/rate-keys/resolve", Action.READ, resolve, "The rate key that a URL would have.",
        {200: answers.Resolved},
        (Parameter("url", "The URL.", required=True), Parameter("adapter", "The adapter of its site.")),
    ),
    Route("GET", "/rate-keys/<key>", Action.READ, get_rate_key, "A rate key.", {200: answers.RateKey}),
    Route(
        "POST", "/rate-keys/<key>/pause", Action.PAUSE, pause, "Let a key start nothing; what runs goes on.",
        {200: answers.RateKey}, body=answers.PauseBody,
    ),
    Route(
        "POST", "/rate-keys/<key>/resume", Action.PAUSE, resume, "End the pause of a key.",
        {200: answers.RateKey}, body=answers.NoBody,
    ),
    Route(
        "POST", "/rate-keys/<key>/lift-cooldown", Action.LIFT, lift_cooldown,
        "End the cooldown of a key before its time.", {200: answers.RateKey}, body=answers.NoBody,
    ),
)  # fmt: skip


def _sound(key: str) -> str:
    """`key`, unless it is something that no database can be asked for."""
    if not key.isprintable():
        raise NotFoundError("rate key", key)
    return key


def _no_more_said() -> None:
    Query().done()
    asked.refuse_unknown(asked.body(), ())


def _changed(ask: Asked, key: str, change: Callable[[Session], None]) -> Response:
    _sound(key)

    def work(session: Session) -> queries.RateKeyRow:
        change(session)
        session.flush()
        session.expire_all()
        return queries.get_rate_key(session, key)

    return json_response(shapes.rate_key(ask.database.run(work)))
