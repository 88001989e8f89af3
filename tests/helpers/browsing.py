"""A plain HTTP client that behaves as a browser does: a session, and the token of the page that it is on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.helpers.admin import PASSWORD
from webqueue import access, clock
from webqueue.database import Database


def add_user(database: Database, name: str, role: str) -> None:
    """Make a user, with the password of the tests."""
    database.run(
        lambda s: access.create_user(s, access.new_user(name, PASSWORD, role), by="test", now=clock.now(s))
    )


class Browser:
    """Logged in as a new user who has the name of the role; with None, as nobody."""

    def __init__(self, app: Flask, database: Database, role: str | None = "admin") -> None:
        self.client: FlaskClient = app.test_client()
        self.token = ""
        if role is not None:
            add_user(database, role, role)
            self.get("/login")
            assert self.post("/login", name=role, password=PASSWORD).status_code == 303
            self.get("/settings")

    def get(self, path: str, **more: Any) -> TestResponse:
        """Open a page."""
        answer = self.client.get(path, **more)
        if found := re.search(r'name="csrf_token" value="([^"]+)"', answer.text):
            self.token = found.group(1)
        answer.close()  # a static file would stay open
        return answer

    def post(self, path: str, headers: Any = None, **fields: str | Sequence[str]) -> TestResponse:
        """Send a form."""
        return self.client.post(path, data={"csrf_token": self.token, **fields}, headers=headers)
