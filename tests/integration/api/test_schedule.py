"""Schedules, the status, and the health of the installation by the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from tests.helpers.api import TARGET, ApiClient, problem, run
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.models import Process, RateKey, Target

PREVIEW = "schedule/preview?cron=0 3 * * 0&tz=UTC&after=2025-01-01T00:00:00Z&count=2"


def test_a_schedule_is_previewed(client: ApiClient) -> None:
    found = client.get(PREVIEW, role="viewer")
    assert found["next"] == ["2025-01-05T03:00:00Z", "2025-01-12T03:00:00Z"]
    assert "03:00" in found["words"]
    assert len(client.get("schedule/preview?cron=@daily")["next"]) == 5


WRONG_PREVIEWS: list[Any] = [
        ("cron=x&tz=UTC", ["cron"]), ("tz=UTC", ["cron"]), ("cron=0 3 * * *&tz=Mars", ["tz"]), ("cron=x&tz=Mars", ["cron", "tz"]),
        ("cron=@daily&after=soon", ["after"]), ("cron=@daily&count=0", ["count"]), ("cron=@daily&count=101", ["count"]),
    ]  # fmt: skip


def test_a_wrong_preview_names_the_parameter(client: ApiClient, subtests: pytest.Subtests) -> None:
    for query, fields in WRONG_PREVIEWS:
        with subtests.test(f"{str(query)[:60]} {str(fields)[:60]}"):
            errors = problem(client.call("GET", f"schedule/preview?{query}"), 422)["errors"]
            assert [error["field"] for error in errors] == fields


def test_coming_ticks_are_listed_in_order(client: ApiClient) -> None:
    client.call("PUT", "targets/often", {**TARGET, "schedule": "0 */6 * * *", "timezone": "UTC"})
    client.call("PUT", "targets/off", {**TARGET, "enabled": False})
    client.call(
        "PUT",
        "targets/late",
        {**TARGET, "schedule": "0 0 * * *", "timezone": "UTC", "start_at": "2026-03-02T00:00:00Z"},
    )
    span = "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:01Z"
    found = client.get(f"schedule?{span}")
    assert [(item["at"][8:13], item["target"]) for item in found["items"]] == [
        ("01T00", "often"), ("01T06", "often"), ("01T12", "often"), ("01T18", "often"), ("01T19", "news"),
        ("02T00", "late"), ("02T00", "often"),
    ]  # fmt: skip
    assert found["items"][4] == {
        "at": "2026-03-01T19:00:00Z",
        "target": "news",
        "site": "example",
        "rate_key": "www.example.org",
    }
    seen: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"schedule?{span}&limit=2&cursor={cursor}")
        seen += page["items"]
        cursor = page["next_cursor"]
    assert seen == found["items"]
    client.get("schedule")
    for query in ("from=2026-03-02&to=2026-03-01", "from=2026-01-01&to=2027-01-01"):
        assert problem(client.call("GET", f"schedule?{query}"), 422)["errors"][0]["field"] == "to"


def test_a_schedule_that_cannot_be_read_has_no_ticks_and_hides_no_others(
    client: ApiClient, database: Database
) -> None:
    client.call("PUT", "targets/odd", {**TARGET, "schedule": "0 5 * * *"})
    with database.transaction() as session:
        session.execute(update(Target).where(Target.code == "odd").values(timezone="Mars/Olympus"))
    found = client.get("schedule?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z")
    assert {item["target"] for item in found["items"]} == {"news"}


def test_status_and_health(client: ApiClient, database: Database) -> None:
    status = client.get("status", role="viewer")
    assert (status["workers"], status["schedulers"], status["queued"], status["paused_all"]) == (
        0,
        0,
        0,
        False,
    )
    assert client.http.get("/healthz").json == {"status": "ok"}
    ready = client.http.get("/readyz")
    assert (ready.status_code, ready.json["checks"]["scheduler"]) == (503, "no heartbeat")  # type: ignore[index]
    with database.reading() as session:
        now = clock.now(session)
    database.run(
        lambda s: s.add(
            Process(id="a", role="scheduler", hostname="h", pid=1, started_at=now, heartbeat_at=now)
        )
    )
    ready = client.http.get("/readyz")
    assert (ready.status_code, ready.json["status"]) == (200, "ready")  # type: ignore[index]
    run(client)
    database.run(lambda s: s.execute(update(RateKey).values(retry_at=now - timedelta(minutes=2))))
    ready = client.http.get("/readyz")
    assert (ready.status_code, ready.json["checks"]["overdue_work"]) == (503, "1 rate keys wait for a worker")  # type: ignore[index]
    database.run(lambda s: jobs.pause_all(s, by="ann"))
    assert client.http.get("/readyz").status_code == 200


def test_a_database_that_is_away_is_told(
    client: ApiClient, database: Database, request: pytest.FixtureRequest
) -> None:
    if database.is_sqlite:
        with database.reading() as session:
            path = str(session.get_bind().engine.url.database)
        database.close()
        with open(path, "r+b") as file:  # noqa: PTH123
            file.write(b"no database at all, whatever it was")
    else:
        database.close()
        server = request.getfixturevalue("postgres_server")
        server.drop_database(database.url.render_as_string(hide_password=False))
    assert client.http.get("/readyz").status_code == 503
    answer = client.call("GET", "jobs")
    assert answer.status_code in {500, 503}
    problem(answer, answer.status_code)
