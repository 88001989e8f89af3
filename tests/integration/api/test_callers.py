"""Who may do what by the API, and what is noted of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.api import NOW, ApiClient, problem, run
from webqueue import access, clock
from webqueue.api.blueprint import ROUTES
from webqueue.api.callers import Caller
from webqueue.database import Database
from webqueue.models import AuditEntry, Token


def test_every_route_asks_for_a_token_and_for_its_role(client: ApiClient, subtests: pytest.Subtests) -> None:
    for route in ROUTES:
        with subtests.test(f"{route.method} {route.rule}"):
            path = (
                route.rule.removeprefix("/")
                .replace("<code>", "x")
                .replace("<name>", "x")
                .replace("<key>", "x")
                .replace("<number>", "1")
            )
            problem(client.call(route.method, path, role=None), 401)
            for role in access.Role:
                answer = client.call(route.method, path, role=role)
                if access.allows(role, route.action):
                    assert answer.status_code != 403
                else:
                    told = problem(answer, 403)["detail"]
                    assert role in told
                    assert all(one in told for one in access.Role if access.allows(one, route.action))


NO_TOKENS: list[Any] = ["", "Bearer", "Bearer ", "Bearer wq_nonsense", "Basic YTpi", "Bearer " + "x" * 5000, "bearer ümlaut"]  # fmt: skip


def test_what_is_no_token_is_refused(client: ApiClient, subtests: pytest.Subtests) -> None:
    for header in NO_TOKENS:
        with subtests.test(header[:60]):
            answer = client.call("GET", "jobs", role=None, headers={"Authorization": header})
            assert "token" in problem(answer, 401)["detail"]
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="webqueue", error="invalid_token"'


def test_a_revoked_token_ends_at_once(client: ApiClient, database: Database) -> None:
    client.get("jobs", role="viewer")
    database.run(lambda s: access.revoke_token(s, "viewer", by="ann", now=NOW))
    problem(client.call("GET", "jobs", role="viewer"), 401)


def test_use_of_a_token_is_noted(client: ApiClient, database: Database) -> None:
    with database.reading() as session:
        before = clock.now(session)
    client.get("jobs", role="viewer")
    with database.reading() as session:
        used = session.scalars(select(Token).where(Token.name == "viewer")).one().last_used_at
    assert used is not None
    assert used >= before - timedelta(seconds=1)


def test_whoever_is_logged_in_to_the_pages_may_only_read(database: Database) -> None:
    client = ApiClient(database, logged_in=lambda: Caller("ann", "admin"))
    client.example()
    assert client.get("sites/example", role=None)["code"] == "example"
    # Another site's page could make a browser send this.
    problem(client.call("POST", "targets/news/run", role=None), 401)
    problem(client.call("DELETE", "targets/news", role=None), 401)


def test_changes_tell_who_made_them(client: ApiClient, database: Database) -> None:
    job = run(client)
    assert job["created_by"] == "token:admin"
    with database.reading() as session:
        assert set(session.scalars(select(AuditEntry.by).where(AuditEntry.object_kind == "site"))) == {
            "token:admin"
        }
