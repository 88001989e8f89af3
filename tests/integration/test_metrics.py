"""`GET /metrics`: who may read it, what it tells, and that its size is bounded."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from flask import Flask
from prometheus_client.parser import text_string_to_metric_families

from tests.helpers.admin import fill
from tests.helpers.browsing import Browser
from webqueue import access, clock
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.metrics.collecting import KEYS_NAMED, busiest
from webqueue.metrics.requests import RequestsOfToday
from webqueue.politeness.evidence import EvidenceLog, RequestLine
from webqueue.settings import Settings

# Statements after which the use of a token cannot be noted, as where the disk is full (SQLSTATE 53100).
REFUSING = {
    "sqlite": (
        "CREATE TRIGGER full BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
    ),
    "postgresql": (
        """
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$
        """,
        "CREATE TRIGGER full_disk BEFORE UPDATE ON tokens EXECUTE FUNCTION full_disk()",
    ),
}


@pytest.fixture
def app(settings: Settings, database: Database) -> Flask:
    made = create_app(settings, database)
    made.testing = True
    return made


def header(database: Database) -> dict[str, str]:
    token = database.run(
        lambda s: access.add_token(s, "prometheus", "viewer", None, by="test", now=clock.now(s))
    )
    return {"Authorization": f"Bearer {token}"}


def samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def line(key: str) -> RequestLine:
    now = datetime.now(UTC)
    return RequestLine(now, key, key, "GET", f"http://{key}/", 200, None, 10, 5.0, "0" * 12, "allowed")


def test_it_needs_a_token_or_a_login(app: Flask, database: Database) -> None:
    client = app.test_client()
    refused = client.get("/metrics")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert client.get("/metrics", headers={"Authorization": "Bearer wq_x"}).status_code == 401
    assert client.get("/metrics", headers=header(database)).status_code == 200
    assert Browser(app, database, "viewer").get("/metrics").status_code == 200
    database.run(lambda s: access.revoke_token(s, "prometheus", by="test", now=clock.now(s)))
    assert client.get("/metrics").status_code == 401


def test_it_is_read_while_nothing_can_be_written(app: Flask, database: Database) -> None:
    """A disk that is full: nobody may be kept from looking at why."""
    authorized = header(database)
    with database.engine.begin() as connection:
        for statement in REFUSING[connection.dialect.name]:
            connection.exec_driver_sql(statement)
    client = app.test_client()
    for path in ("/metrics", "/api/v1/status"):
        answer = client.get(path, headers=authorized)
        assert answer.status_code == 200, path
        assert answer.mimetype != "text/html"


def test_it_tells_what_pages_tell(app: Flask, database: Database, settings: Settings) -> None:
    fill(database)
    evidence = EvidenceLog(settings.instance_path)
    for key in ("www.example.org", "www.example.org", "shop.example.com"):
        evidence.append(line(key))
    authorized = header(database)
    found = samples(app.test_client().get("/metrics", headers=authorized).text)
    assert found["webqueue_jobs", "running"] == 1
    assert found["webqueue_jobs", "failed"] > 1
    assert found["webqueue_jobs", "skipped"] == 0
    assert found["webqueue_rate_keys", "running"] == 1
    assert found["webqueue_rate_keys", "cooling_down"] == 1
    assert found["webqueue_rate_keys", "paused"] == 1
    assert found["webqueue_processes", "worker"] == 1
    assert found["webqueue_heartbeat_age_seconds", "scheduler"] >= 0
    assert found["webqueue_requests_today", "www.example.org"] == 2
    assert found["webqueue_overdue_rate_keys", ""] == 0
    evidence.append(line("shop.example.com"))
    again = samples(app.test_client().get("/metrics", headers=authorized).text)
    assert again["webqueue_requests_today", "shop.example.com"] == 2
    assert again["webqueue_requests_today", "www.example.org"] == 2


def test_a_line_that_is_being_written_is_counted_once_it_is_whole(settings: Settings) -> None:
    evidence = EvidenceLog(settings.instance_path)
    evidence.append(line("a.example"))
    today = datetime.now(UTC).date()
    (file,) = (settings.instance_path / "requests").glob("*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])
    counting = RequestsOfToday(settings.instance_path)
    assert counting.by_key(today) == {"a.example": 1}
    file.write_bytes(whole * 2)
    assert counting.by_key(today) == {"a.example": 2}


def test_only_the_busiest_keys_have_a_series() -> None:
    counts = {f"host{number}.example": number for number in range(1, 2001)}
    shown = busiest(counts)
    assert len(shown) == KEYS_NAMED + 1
    assert shown["host2000.example"] == 2000
    assert sum(shown.values()) == sum(counts.values())
