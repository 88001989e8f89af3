"""`GET /metrics` in the text format of Prometheus; for the holder of a token, or for whoever is logged in.

The number of series is bounded: states and roles are few, and of rate keys the busiest are named, the rest summed up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from webqueue import access
from webqueue.access import Action
from webqueue.database import Database
from webqueue.metrics.collecting import StateCollector
from webqueue.metrics.requests import RequestsOfToday

__all__ = ["blueprint"]


def blueprint(database: Database, *, logged_in_role: Callable[[], str | None]) -> Blueprint:
    """The address as a blueprint, which checks for itself who asks.

    Args:
        logged_in_role: the role of whoever is logged in to the pages; None without a login.
    """
    made = Blueprint("metrics", __name__)
    registry = CollectorRegistry()
    registry.register(_Unasked(StateCollector(database, RequestsOfToday(database.instance_path))))

    @made.get("/metrics")
    def metrics() -> Response:
        header = request.headers.get("Authorization")
        role = logged_in_role() if header is None else _role_of(database, header)
        if role is None:
            headers = {"WWW-Authenticate": 'Bearer realm="webqueue"'}
            return Response("Send a token: Authorization: Bearer wq_…\n", 401, headers, mimetype="text/plain")
        if not access.allows(role, Action.READ):
            return Response("This role may not read.\n", 403, mimetype="text/plain")
        return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)

    return made


class _Unasked:
    """A collector that is not asked when it is registered, when there is no request to answer yet."""

    def __init__(self, collector: StateCollector) -> None:
        self._collector = collector

    def describe(self) -> list[Any]:
        """Nothing is known before the first request."""
        return []

    def collect(self) -> Any:
        """What the state is now."""
        return self._collector.collect()


def _role_of(database: Database, header: str) -> str | None:
    bearer = access.bearer_in(database, header)
    return None if bearer is None else str(bearer.role)
