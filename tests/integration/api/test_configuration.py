"""Sites and targets by the API."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from tests.helpers.api import SITE, TARGET, ApiClient, end, problem, run
from webqueue.config import MASK
from webqueue.database import Database
from webqueue.models import AuditEntry, Site


def test_a_site_has_the_fields_of_the_file_and_its_state(client: ApiClient) -> None:
    site = client.get("sites/example", role="viewer")
    assert site == {
        "code": "example", "name": "Example", "base_url": "http://www.example.org/", "adapter": "list",
        "timezone": "Asia/Shanghai", "rate_key": "www.example.org", "min_gap_sec": 0, "cooldown_sec": None,
        "allowed_hours": None, "obey_robots": True,
        "http": {"user_agent": None, "headers": {}, "proxy": None, "verify_tls": True, "legacy_tls": False, "timeout_sec": 30},
        "paused": False, "next_tick": site["next_tick"], "last_job": None, "learned_interval_sec": None,
    }  # fmt: skip
    assert site["next_tick"].endswith("T19:00:00Z")
    assert client.get("sites") == {"items": [site], "next_cursor": None}


def test_a_target_has_the_fields_of_the_file_and_its_state(client: ApiClient, database: Database) -> None:
    job = run(client)
    end(database, job["id"])
    target = client.get("targets/news", role="viewer")
    assert target["last_job"]["id"] == job["id"]
    assert client.get("sites/example")["last_job"]["id"] == job["id"]
    assert {key: value for key, value in target.items() if key not in {"last_job", "next_tick"}} == {
        "code": "news", "site": "example", "handler": "crawl", "schedule": "0 3 * * *", "timezone": None,
        "interval_sec": 10, "overlap": "queue_one", "catch_up": "one", "catch_up_limit": 24, "jitter_sec": 0,
        "start_at": None, "end_at": None, "track_checkpoint": True, "max_runtime_sec": 14400,
        "retry": {"times": 2, "wait_sec": 300}, "enabled": True, "tags": [], "note": "", "owner": "",
        "params": TARGET["params"], "rate_key": "www.example.org", "paused": False, "learned_interval_sec": None,
    }  # fmt: skip
    assert [item["code"] for item in client.get("targets?site=example&q=NEW")["items"]] == ["news"]
    assert client.get("targets?site=other")["items"] == []


def test_put_creates_then_replaces_and_what_was_read_can_be_put_back(
    client: ApiClient, database: Database
) -> None:
    for path in ("sites/example", "targets/news"):
        before = client.get(path)
        answer = client.call("PUT", path, before)
        assert (answer.status_code, answer.json) == (200, before)
    with database.reading() as session:
        assert session.get_one(Site, "example").rate_key is None  # it was worked out, and still is
        assert session.scalars(select(AuditEntry).where(AuditEntry.action == "changed")).all() == []
    moved = {**client.get("sites/example"), "base_url": "http://moved.example/"}
    answer = client.call("PUT", "sites/example", moved)
    assert answer.json["rate_key"] == "moved.example"  # type: ignore[index]  # of the new host, not kept as its own
    answer = client.call("PUT", "targets/news", {key: TARGET[key] for key in ("site", "handler", "params")})
    assert answer.json["schedule"] is None  # type: ignore[index]
    assert answer.json["next_tick"] is None  # type: ignore[index]


def test_secrets_are_masked_and_kept(client: ApiClient, database: Database) -> None:
    http = {"headers": {"Authorization": "Bearer s3cret"}, "proxy": "http://me:s3cret@proxy:1"}
    answer = client.call("PUT", "sites/example", {**SITE, "http": http})
    assert "s3cret" not in answer.text
    assert answer.json["http"]["headers"] == {"Authorization": MASK}  # type: ignore[index]
    client.call("PUT", "sites/example", {**client.get("sites/example"), "name": "Other"})
    with database.reading() as session:
        site = session.get_one(Site, "example")
    assert (site.name, site.http["headers"], site.http["proxy"]) == ("Other", http["headers"], http["proxy"])
    shown = {**client.get("sites/example"), "base_url": "http://evil.example/"}
    refused = client.call("PUT", "sites/example", shown)
    assert refused.status_code == 422
    errors: list[Any] = refused.json["errors"]  # type: ignore[index]
    assert [error["field"] for error in errors] == ["http.headers.Authorization"]
    assert "another server" in errors[0]["message"]


WRONG_FIELDS: list[Any] = [
        ("sites/x", {"base_url": "www.example.org"}, "base_url", "has no scheme; write http:// or https://"),
        ("sites/x", {**SITE, "colour": 1}, "colour", "is no field here"),
        ("sites/x", {**SITE, "code": "y"}, "code", "is not 'x'"),
        ("sites/X", SITE, "code", "is no code"),
        ("sites/x", {**SITE, "obey_robots": "yes"}, "obey_robots", "must be true or false"),
        ("sites/x", {**SITE, "http": {"headers": {"a": 1}}}, "http.headers.a", "must be text"),
        ("targets/x", {**TARGET, "site": "nosite"}, "site", "there is no site 'nosite'"),
        ("targets/x", {**TARGET, "schedule": "0 0 30 2 *"}, "schedule", "never fires"),
        ("targets/x", {**TARGET, "params": {"list_url": "{page}"}}, "params.item_selector", "required"),
        ("targets/x", {**TARGET, "handler": "command"}, "handler", "WEBQUEUE_ALLOW_COMMANDS"),
        ("targets/x", {**TARGET, "enabled": 1}, "enabled", "must be true or false"),
    ]  # fmt: skip


def test_a_wrong_field_is_named(client: ApiClient, subtests: pytest.Subtests) -> None:
    for path, body, field, words in WRONG_FIELDS:
        with subtests.test(f"{str(path)[:60]} {str(body)[:60]}"):
            errors = problem(client.call("PUT", path, body), 422)["errors"]
            assert [(error["field"], error["line"]) for error in errors] == [(field, None)]
            assert words in errors[0]["message"]


def test_every_wrong_field_is_told_together(client: ApiClient) -> None:
    body = {**TARGET, "schedule": "x", "interval_sec": -1, "colour": 1, "params": {}}
    fields = {error["field"] for error in problem(client.call("PUT", "targets/x", body), 422)["errors"]}
    assert fields == {"schedule", "interval_sec", "colour", "params.list_url", "params.item_selector"}


def test_delete(client: ApiClient) -> None:
    job = run(client)
    assert "1 jobs" in problem(client.call("DELETE", "targets/news"), 409)["detail"]
    assert "1 jobs" in problem(client.call("DELETE", "sites/example"), 409)["detail"]
    client.call("POST", f"jobs/{job['id']}/cancel")
    problem(client.call("DELETE", "targets/news"), 409)
    assert client.call("PUT", "targets/other", TARGET).status_code == 201
    answer = client.call("DELETE", "targets/other")
    assert (answer.status_code, answer.data) == (204, b"")
    problem(client.call("DELETE", "targets/other"), 404)
    problem(client.call("GET", "targets/other"), 404)


def test_listings_go_on_by_cursor(client: ApiClient) -> None:
    for number in range(5):
        client.call("PUT", f"targets/t{number}", {**TARGET, "schedule": None})
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"targets?limit=2&cursor={cursor}")
        seen += [item["code"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ["news", "t0", "t1", "t2", "t3", "t4"]
