"""Wires the web side together. Starts no thread, and opens no port."""

from __future__ import annotations

import secrets
from typing import Final

from flask import Flask
from sqlalchemy.orm import Session

from webqueue import clock, db, metrics, web
from webqueue.api.blueprint import blueprint as api_blueprint
from webqueue.api.callers import Caller
from webqueue.api.status import HEALTH_PATHS, health_blueprint
from webqueue.database import Database, take_turn
from webqueue.models import StoredSetting
from webqueue.settings import Settings
from webqueue.web import hosts

# Forms are short, and so are the API's: sites and targets, nothing to upload.
MAX_REQUEST_BYTES: Final = 4_000_000
SESSION_KEY_NAME: Final = "session_secret"


def create_app(settings: Settings, database: Database | None = None) -> Flask:
    """The web application.

    Args:
        settings: of the installation.
        database: the opened, migrated database; None opens the one of the settings.
    """
    if database is None:
        database = Database(
            settings.url, instance_path=settings.instance_path, synchronous=settings.sqlite_synchronous
        )
    app = Flask("webqueue", static_folder="static", template_folder="templates")
    app.config.update(
        SECRET_KEY=database.run(_session_secret),
        MAX_CONTENT_LENGTH=MAX_REQUEST_BYTES,
    )
    trusted = [name.strip() for name in settings.trusted_hosts.split(",") if name.strip()]
    hosts.init_app(app, trusted, open_to_any=HEALTH_PATHS)
    app.extensions["webqueue_settings"] = settings
    app.jinja_env.globals["names_contact"] = settings.names_contact
    db.init_app(app, database)
    health = health_blueprint(database)
    json_api = api_blueprint(database, logged_in=_logged_in)
    figures = metrics.blueprint(database, logged_in_role=_role_of_login)
    # They guard themselves: API and metrics by tokens, and health tells nothing that needs a guard.
    guarded = (health, json_api, figures)
    web.register(app, guarded_elsewhere=guarded)
    for blueprint in guarded:
        app.register_blueprint(blueprint)
    return app


def _logged_in() -> Caller | None:
    """Whoever is logged in to the pages may read the API with the same browser."""
    user = web.auth.signed_in()
    return None if user is None else Caller(user.name, user.role)


def _role_of_login() -> str | None:
    user = web.auth.signed_in()
    return None if user is None else user.role


def _session_secret(session: Session) -> str:
    """The key that signs sessions; in the database, so that every web process takes every session."""
    take_turn(session, SESSION_KEY_NAME)
    stored = session.get(StoredSetting, SESSION_KEY_NAME)
    if stored is None:
        stored = StoredSetting(
            name=SESSION_KEY_NAME, value=secrets.token_hex(32), changed_at=clock.now(session)
        )
        session.add(stored)
    value: str = stored.value
    return value
