"""The description of the API: everything is in it, and what it says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.helpers.admin import add_document, fill, finished_job
from tests.helpers.api import SITE, TARGET, ApiClient
from tests.helpers.installation import Installation
from webqueue.api.blueprint import PREFIX, ROUTES
from webqueue.api.routes import Route
from webqueue.database import Database


@pytest.fixture
def engine_name() -> str:
    """The answers are the same on both databases, as other tests show."""
    return "sqlite"


@pytest.fixture
def client(database: Database) -> ApiClient:
    return ApiClient(database)


@pytest.fixture
def description(client: ApiClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("openapi.json", role="viewer")
    return found


def operations(description: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def test_every_address_of_the_application_is_described(
    client: ApiClient, description: dict[str, Any]
) -> None:
    served = {
        (method, re.sub(r"<(?:[a-z]+:)?([a-z]+)>", r"{\1}", rule.rule.removeprefix(PREFIX)))
        for rule in client.app.url_map.iter_rules()
        if rule.rule.startswith(PREFIX) and not rule.endpoint.startswith("api.unknown")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert operations(description).keys() == served
    assert len(served) == len(ROUTES) >= 30
    names = [operation["operationId"] for operation in operations(description).values()]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] for operation in operations(description).values())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.rule}")
def test_the_parameters_are_those_that_the_view_takes(client: ApiClient, route: Route) -> None:
    path = re.sub(r"<[a-z]+>", "1", route.rule).lstrip("/")
    answer = client.call(route.method, path, query_string={"nonsense": "1"})
    assert answer.status_code == 422, answer.text
    (told,) = (
        error["message"]
        for error in answer.json["errors"]  # type: ignore[index]
        if error["field"] == "nonsense"
    )
    taken = told.removeprefix("is no parameter here; there are ").split(", ")
    assert sorted(taken) == (sorted(one.name for one in route.takes) or ["none"])


class Tour:
    """Calls that compare each answer with what is described for it."""

    def __init__(self, client: ApiClient, description: dict[str, Any]) -> None:
        self.client = client
        self.described = operations(description)
        self.seen: set[str] = set()

    def __call__(self, method: str, path: str, json: Any = None, **more: Any) -> Any:
        answer = self.client.call(method, path, json, **more)
        adapter = self.client.app.url_map.bind("localhost")
        endpoint, _ = adapter.match(f"{PREFIX}/{urlsplit(path).path}", method)
        route = ROUTES[int(endpoint.split("_")[1])]
        operation = self.described[method, re.sub(r"<([a-z]+)>", r"{\1}", route.rule)]
        said = operation["responses"][str(answer.status_code)]
        if answer.status_code >= 400:
            assert answer.mimetype in said["content"]
            return answer.json
        self.seen.add(route.view.__name__)
        model = route.answers[answer.status_code]
        if model is not None:
            model.model_validate_json(answer.data)  # no field is missing, and none too many
            return answer.json
        assert answer.status_code in {204, 304} or answer.mimetype == route.media
        return answer.text


def test_real_answers_are_as_described(
    client: ApiClient, description: dict[str, Any], database: Database
) -> None:
    tour = Tour(client, description)
    secret = {**SITE, "http": {"headers": {"X-Key": "secret"}, "proxy": "http://a:b@proxy.example.org:3128"}}
    for _ in range(2):
        tour("PUT", "sites/example", secret)
        tour("PUT", "targets/news", {**TARGET, "tags": ["a"], "start_at": "2026-01-01T00:00:00Z"})
    with database.transaction() as session:
        done = finished_job(session, "news", ago=timedelta(hours=1), seconds=5)
        document = add_document(session, done, "http://www.example.org/1", "One", "Text").id
        failed = finished_job(session, "news", ago=timedelta(minutes=1), seconds=5, status="failed").id
    job = tour("POST", "targets/news/run", {"force": True})["job"]["id"]
    tour("POST", "targets/news/run", {"force": True})
    for path in (
        "sites", "sites/example", "targets", "targets?state=failed", "targets/news", "jobs", f"jobs/{job}", f"jobs/{job}/log",
        "documents", f"documents/{document}", "documents.jsonl", "documents.csv", "documents.atom", "rate-keys",
        "rate-keys/www.example.org", "rate-keys/resolve?url=http://www.example.org/", "schedule",
        "schedule/preview?cron=0+3+*+*+*", "status", "openapi.json", "jobs/none", "jobs?limit=none",
    ):  # fmt: skip
        tour("GET", path)
    tour("POST", f"jobs/{job}/front")
    tour("POST", f"jobs/{job}/force-stop")
    tour("POST", f"jobs/{job}/cancel")
    tour("POST", f"jobs/{failed}/retry")
    for verb in ("pause", "resume", "lift-cooldown"):
        tour("POST", f"rate-keys/www.example.org/{verb}", {"note": "why"} if verb == "pause" else None)
    tour("GET", "rate-keys/www.example.org")
    tour("DELETE", "targets/news")  # it has jobs
    tour("PUT", "targets/empty", TARGET)
    tour("DELETE", "targets/empty")
    tour("PUT", "sites/other", {**SITE, "base_url": "http://other.example.org/"})
    tour("DELETE", "sites/other")
    tour("PUT", "sites/wrong", {"name": 7})
    assert {route.view.__name__ for route in ROUTES} - tour.seen == {"force_stop"}, (
        "which needs a job that does not stop"
    )


@pytest.mark.slow
def test_a_running_server_answers_only_what_is_described(installation: Installation) -> None:
    """Schemathesis makes requests of the description: no 500, no status, type, header or body that it does not name.

    The server has jobs, keys and documents in every state, else most that could be wrong of them is never answered.
    """
    fill(installation.database)
    served = installation.serve(role="web")
    served.token = installation.token()
    tried = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"), "run", f"{served.url}{PREFIX}/openapi.json",
            "--header", f"Authorization: Bearer {served.token}",
            "--phases", "coverage,fuzzing,stateful", "--max-examples", "5", "--continue-on-failure",
            # What is taken and what is not is the matter of the API's own tests; a description tells not all of it.
            "--exclude-checks", "positive_data_acceptance,negative_data_rejection",
            "--seed", "1", "--no-color",
        ],
        capture_output=True, text=True, timeout=280, check=False, cwd=installation.instance,
    )  # fmt: skip
    assert tried.returncode == 0, tried.stdout[-8000:] + tried.stderr[-2000:]
    # All but the description itself.
    assert re.search(rf"Tested: {len(ROUTES) - 1}\b", tried.stdout), tried.stdout
