"""A client of the API with a token of each role."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from webqueue import access
from webqueue.api.blueprint import blueprint
from webqueue.api.callers import LoggedIn
from webqueue.api.status import health_blueprint
from webqueue.database import Database
from webqueue.models import Job, JobStatus

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SITE: dict[str, Any] = {"name": "Example", "base_url": "http://www.example.org/", "timezone": "Asia/Shanghai"}
TARGET: dict[str, Any] = {
    "site": "example",
    "handler": "crawl",
    "schedule": "0 3 * * *",
    "params": {"list_url": "news/{page}.html", "item_selector": "ul a"},
}


class ApiClient:
    """Calls the API of one database."""

    def __init__(self, database: Database, *, logged_in: LoggedIn | None = None) -> None:
        self.app = Flask("api")
        self.app.register_blueprint(blueprint(database, logged_in=logged_in))
        self.app.register_blueprint(health_blueprint(database))
        self.http: FlaskClient = self.app.test_client()
        self.tokens = {
            role: database.run(lambda s, role=role: access.add_token(s, role, role, by="tests", now=NOW))  # type: ignore[misc]
            for role in access.Role
        }

    def call(
        self, method: str, path: str, json: Any = None, *, role: str | None = "admin", **more: Any
    ) -> TestResponse:
        """One call below `/api/v1`; `role` None sends no token."""
        headers = dict(more.pop("headers", {}))
        if role is not None:
            headers.setdefault("Authorization", f"Bearer {self.tokens[access.Role(role)]}")
        if json is not None:
            more["json"] = json
        return self.http.open(f"/api/v1/{path}", method=method, headers=headers, **more)

    def get(self, path: str, **more: Any) -> Any:
        """The JSON of a GET that works."""
        answer = self.call("GET", path, **more)
        assert answer.status_code == 200, answer.text
        assert answer.content_type == "application/json"
        return answer.json

    def example(self) -> None:
        """Describe the site `example` and its target `news`."""
        assert self.call("PUT", "sites/example", SITE).status_code == 201
        assert self.call("PUT", "targets/news", TARGET).status_code == 201


def problem(answer: TestResponse, status: int) -> dict[str, Any]:
    """The problem detail of an answer, checked for its form (RFC 9457)."""
    assert answer.status_code == status, answer.text
    assert answer.content_type == "application/problem+json"
    body: dict[str, Any] = answer.json  # type: ignore[assignment]
    assert body.keys() == {"type", "title", "status", "detail", "instance", "request_id", "errors"}
    assert body["status"] == status
    assert body["detail"]
    assert answer.headers["X-Request-Id"] == body["request_id"]
    for error in body["errors"]:
        assert error.keys() == {"field", "line", "message"}
    return body


def run(client: ApiClient, target: str = "news", **body: Any) -> dict[str, Any]:
    answer = client.call("POST", f"targets/{target}/run", body)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json["job"]  # type: ignore[index]
    return job


def end(database: Database, job_id: str, status: str = JobStatus.FAILED) -> None:
    """Give a queued job a final status, as if it had run, without a worker."""
    database.run(
        lambda s: s.execute(
            update(Job)
            .where(Job.id == job_id)
            .values(status=status, finished_at=NOW, retry_at=None, last_completed_page=3)
        )
    )
