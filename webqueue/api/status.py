"""How the installation is: for people with a token, and for whoever starts and watches the process."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response
from sqlalchemy.exc import SQLAlchemyError

from webqueue import __version__, logs, queries
from webqueue.access import Action
from webqueue.api import answers, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import json_response
from webqueue.api.routes import Asked, Route
from webqueue.database import Database

log = logs.get(__name__)


def get_status(ask: Asked) -> Response:
    Query().done()
    with ask.database.reading() as session:
        return json_response(shapes.status(queries.get_status(session), __version__))


ROUTES = (
    Route(
        "GET",
        "/status",
        Action.READ,
        get_status,
        "What runs, waits, and is overdue.",
        {200: answers.Installation},
    ),
)


HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})


def health_blueprint(database: Database) -> Blueprint:
    """`/healthz` and `/readyz`, open to everybody: they tell numbers, and no names."""
    blueprint = Blueprint("health", __name__)

    @blueprint.get("/healthz")
    def healthz() -> Response:
        """The process answers."""
        return json_response({"status": "ok"})

    @blueprint.get("/readyz")
    def readyz() -> Response:
        """Database, disk, scheduler heartbeat, overdue work; 503 when one of them is not as it should be."""
        checks = _checks(database)
        ready = all(check == "ok" for check in checks.values())
        answer = {"status": "ready" if ready else "not ready", "checks": checks}
        return json_response(answer, 200 if ready else 503)

    return blueprint


def _checks(database: Database) -> dict[str, str]:
    try:
        with database.reading() as session:
            status = queries.get_status(session)
    except SQLAlchemyError as error:
        log.warning("database does not answer", error=str(error))
        return {"database": "does not answer"}
    overdue = status.overdue_keys
    return {
        "database": "ok",
        "disk": "low" if status.low_disks else "ok",
        "scheduler": "ok" if status.schedulers else "no heartbeat",
        # Nothing is overdue that a person holds back.
        "overdue_work": "ok"
        if status.paused_all or not overdue
        else f"{overdue} rate keys wait for a worker",
    }
