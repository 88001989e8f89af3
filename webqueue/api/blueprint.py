"""All routes of the API, as one blueprint."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from webqueue.access import Action
from webqueue.api import documents, jobs, openapi, problems, rate_keys, schedule, sites, status
from webqueue.api.asked import Query
from webqueue.api.callers import LoggedIn, find_caller, require
from webqueue.api.problems import json_response
from webqueue.api.routes import Asked, Route
from webqueue.database import Database

PREFIX: Final = "/api/v1"


def get_description(_ask: Asked) -> Response:
    Query().done()
    return json_response(openapi.describe(ROUTES, PREFIX))


ROUTES: Final = (
    *sites.ROUTES,
    *jobs.ROUTES,
    *documents.ROUTES,
    *rate_keys.ROUTES,
    *schedule.ROUTES,
    *status.ROUTES,
    Route("GET", "/openapi.json", Action.READ, get_description, "This description of the API.", {200: None}),
)
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def blueprint(database: Database, *, logged_in: LoggedIn | None = None) -> Blueprint:
    """The API as a blueprint. Its views need no form token: they take none but bearer tokens for changes.

    Args:
        logged_in: who is logged in to the pages; such a caller may read here.
    """
    api = Blueprint("api", __name__, url_prefix=PREFIX)
    problems.register(api)
    for number, route in enumerate(ROUTES):
        name = f"{route.method.lower()}_{number}_{route.view.__name__}"
        api.add_url_rule(
            route.rule,
            name,
            _view(database, logged_in, route),
            methods=[route.method],
            provide_automatic_options=False,
        )
    api.add_url_rule("", "unknown_prefix", _unknown(database, logged_in), methods=_METHODS)
    api.add_url_rule("/", "unknown_root", _unknown(database, logged_in), methods=_METHODS)
    api.add_url_rule("/<path:rest>", "unknown", _unknown(database, logged_in), methods=_METHODS)
    api.after_request(_name_request)
    return api


def _view(database: Database, logged_in: LoggedIn | None, route: Route) -> Any:
    def view(**caught: str) -> Response:
        caller = find_caller(database, logged_in)
        require(caller, route.action)
        return route.view(Asked(database, caller), **caught)

    return view


def _unknown(database: Database, logged_in: LoggedIn | None) -> Any:
    """Every address below the prefix that is none, so that these errors are the API's own too."""

    def view(rest: str = "") -> Response:  # noqa: ARG001 - Flask passes what the rule caught
        find_caller(database, logged_in)
        if allowed := _allowed_methods():
            raise MethodNotAllowed(valid_methods=allowed)
        raise NotFound(f"There is nothing at {request.path}.")

    return view


def _allowed_methods() -> list[str]:
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None, "there is a request"
    allowed = []
    for method in _METHODS:
        try:
            endpoint, _ = adapter.match(method=method)
        except HTTPException:
            continue
        if not endpoint.startswith("api.unknown"):
            allowed.append(method)
    return allowed


def _name_request(response: Response) -> Response:
    response.headers.setdefault("X-Request-Id", problems.request_id())
    response.headers.setdefault("Cache-Control", "no-store")
    return response
