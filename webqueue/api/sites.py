"""Sites and targets: read, put, deleted."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from webqueue import clock, config, queries
from webqueue.access import Action
from webqueue.api import answers, asked, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import field_problem, json_response
from webqueue.api.routes import CURSOR, Asked, Parameter, Route, limit
from webqueue.config.values import is_code
from webqueue.errors import NotFoundError
from webqueue.models import Site
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.rate_key import key_of_site
from webqueue.queries.site_states import site_states

_LIMIT = 50


def list_sites(ask: Asked) -> Response:
    query = Query("cursor", "limit")
    cursor, limit = _code_cursor(query), query.whole("limit", _LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    with ask.database.reading() as session:
        page = queries.list_sites(session, cursor=cursor, limit=limit)
        states = site_states(session, {row.code: row.rate_key for row in page.items})
    return json_response(
        shapes.listing([shapes.site(row, states[row.code]) for row in page.items], page.next_cursor)
    )


def get_site(ask: Asked, code: str) -> Response:
    Query().done()
    with ask.database.reading() as session:
        return json_response(_site(session, code))


def put_site(ask: Asked, code: str) -> Response:
    Query().done()
    data = _without(asked.body(), shapes.SITE_EXTRAS)

    def work(session: Session) -> tuple[config.Change, Any]:
        said = _without_worked_out_key(session, code, data)
        change = config.put_site(session, code, said, by=ask.caller.name, now=clock.now(session))
        return change, _site(session, code)

    change, site = ask.database.run(work)
    return json_response(site, 201 if change.what is config.What.CREATED else 200)


def delete_site(ask: Asked, code: str) -> Response:
    Query().done()
    ask.database.run(
        lambda session: config.delete_site(session, code, by=ask.caller.name, now=clock.now(session))
    )
    return Response(status=204)


def list_targets(ask: Asked) -> Response:
    query = Query("site", "state", "q", "cursor", "limit")
    site, state, words = query.text("site"), query.text("state"), query.text("q")
    cursor, limit = _code_cursor(query), query.whole("limit", _LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    filters = queries.TargetFilter(site=site, state=state, q=words)
    with ask.database.reading() as session:
        page = queries.list_targets(session, filters, cursor=cursor, limit=limit)
    return json_response(shapes.listing(map(shapes.target, page.items), page.next_cursor))


def get_target(ask: Asked, code: str) -> Response:
    Query().done()
    with ask.database.reading() as session:
        return json_response(_target(session, code))


def put_target(ask: Asked, code: str) -> Response:
    Query().done()
    data = _without(asked.body(), shapes.TARGET_EXTRAS)

    def work(session: Session) -> tuple[config.Change, Any]:
        change = config.put_target(session, code, data, by=ask.caller.name, now=clock.now(session))
        return change, _target(session, code)

    change, target = ask.database.run(work)
    return json_response(target, 201 if change.what is config.What.CREATED else 200)


def delete_target(ask: Asked, code: str) -> Response:
    Query().done()
    ask.database.run(
        lambda session: config.delete_target(session, code, by=ask.caller.name, now=clock.now(session))
    )
    return Response(status=204)


_PAGE = (CURSOR, limit(_LIMIT, queries.MAX_LIMIT))
_TARGET_FILTERS = (
    Parameter("site", "Code of the site."),
    Parameter("state", "State, as the pages have it."),
    Parameter("q", "Words in code, note, owner or tags."),
)
ROUTES = (
    Route("GET", "/sites", Action.READ, list_sites, "List sites, by code.", {200: answers.Sites}, _PAGE),
    Route("GET", "/sites/<code>", Action.READ, get_site, "A site.", {200: answers.Site}),
    Route(
        "PUT", "/sites/<code>", Action.CONFIGURE, put_site, "Make or replace a site.",
        {200: answers.Site, 201: answers.Site}, body=answers.SiteBody,
    ),
    Route("DELETE", "/sites/<code>", Action.CONFIGURE, delete_site, "Delete a site without jobs and documents, and its targets.", {204: None}),
    Route(
        "GET", "/targets", Action.READ, list_targets, "List targets, by code.", {200: answers.Targets},
        (*_TARGET_FILTERS, *_PAGE),
    ),
    Route("GET", "/targets/<code>", Action.READ, get_target, "A target.", {200: answers.Target}),
    Route(
        "PUT", "/targets/<code>", Action.CONFIGURE, put_target, "Make or replace a target.",
        {200: answers.Target, 201: answers.Target}, body=answers.TargetBody,
    ),
    Route(
        "DELETE", "/targets/<code>", Action.CONFIGURE, delete_target,
        "Delete a target without jobs and documents.", {204: None},
    ),
)  # fmt: skip


def _site(session: Session, code: str) -> dict[str, Any]:
    if not is_code(code):
        raise NotFoundError("site", code)
    row = queries.get_site(session, code)
    return shapes.site(row, site_states(session, {code: row.rate_key})[code])


def _target(session: Session, code: str) -> dict[str, Any]:
    if not is_code(code):
        raise NotFoundError("target", code)
    return shapes.target(queries.get_target(session, code))


def _without(data: dict[str, Any], extras: tuple[str, ...]) -> dict[str, Any]:
    """What GET shows besides the fields of the file may come back in a PUT: it is no field, and changes nothing."""
    return {name: value for name, value in data.items() if name not in extras}


def _without_worked_out_key(session: Session, code: str, data: dict[str, Any]) -> dict[str, Any]:
    """GET shows the rate key in force. One that is sent back, and was or would be worked out, is not the site's own.

    That it was matters when the host changes with it: kept as the site's own, the old host's key would let the new host
    be visited in two keys at a time.
    """
    base_url, adapter = data.get("base_url"), data.get("adapter", "list")
    if not isinstance(base_url, str) or not isinstance(adapter, str) or "rate_key" not in data:
        return data
    groups = rate_groups(session)
    worked_out = {key_of_site(own_key=None, base_url=base_url, adapter=adapter, code=code, groups=groups)}
    stored = session.get(Site, code) if is_code(code) else None
    if stored is not None and stored.rate_key is None:
        worked_out.add(site_key(stored, groups))
    asked = data["rate_key"]
    return {**data, "rate_key": None} if isinstance(asked, str) and asked in worked_out else data


def _code_cursor(query: Query) -> str | None:
    cursor = query.cursor()
    if cursor is not None and not is_code(cursor):
        raise field_problem("cursor", "is no cursor; send the next_cursor of the last answer")
    return cursor
