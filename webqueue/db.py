"""Flask-SQLAlchemy, glued to the engine that the rest of webqueue uses. Only this file imports it.

Pages and API read through `db.session`, one session a request; they write through `Database.run`, so that a writing
transaction is as short as everywhere else.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from webqueue.database import Database

_EXTENSION = "webqueue_database"


class _Glue(SQLAlchemy):
    """Flask-SQLAlchemy with our engine: it ignores a session's `bind`, so the engine is given where it is made."""

    def _make_engine(self, _bind_key: str | None, _options: dict[str, Any], app: Flask) -> Engine:
        database: Database = app.extensions[_EXTENSION]
        return database.read_engine


db = _Glue(session_options={"expire_on_commit": False, "autoflush": False}, add_models_to_shell=False)


def init_app(app: Flask, database: Database) -> None:
    """Give `app` its database."""
    app.extensions[_EXTENSION] = database
    app.config["SQLALCHEMY_DATABASE_URI"] = (
        database.url
    )  # never used to connect, but Flask-SQLAlchemy wants one
    db.init_app(app)


def database() -> Database:
    """The database of the current app, for writing: `database().run(lambda session: ...)`."""
    found: Database = current_app.extensions[_EXTENSION]
    return found


def reading() -> Session:
    """The reading session of the current request; it ends with the request."""
    session: Session = db.session()
    return session


def read_anew() -> None:
    """Let the next read of this request see what was just committed."""
    db.session.rollback()
