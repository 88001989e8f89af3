"""Rate keys by the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from tests.helpers.api import SITE, ApiClient, problem, run
from webqueue.database import Database
from webqueue.models import RateKey


def test_a_key_is_paused_resumed_and_lifted(client: ApiClient, database: Database) -> None:
    run(client)
    path = "rate-keys/www.example.org"
    key = client.get(path, role="viewer")
    assert key.keys() >= {
        "key", "state", "sites", "running_job", "queued", "next_start_at", "not_before", "paused_by", "consecutive_blocks",
    }  # fmt: skip
    assert (key["state"], key["sites"], key["queued"]) == ("idle", ["example"], 1)
    paused = client.call("POST", f"{path}/pause", {"note": "asked by their admin"}, role="operator").json
    assert paused is not None
    assert (paused["state"], paused["paused_by"], paused["paused_note"]) == (
        "paused",
        "token:operator",
        "asked by their admin",
    )
    assert client.get("sites/example")["paused"] is True
    assert client.get("rate-keys?state=paused")["items"][0]["key"] == "www.example.org"
    client.call("PUT", "sites/second", {"base_url": "http://a.example.org/"})
    first = client.get("rate-keys?limit=1")
    rest = client.get(f"rate-keys?limit=1&cursor={first['next_cursor']}")
    assert [row["key"] for row in (*first["items"], *rest["items"])] == ["a.example.org", "www.example.org"]
    assert rest["next_cursor"] is None
    assert client.call("POST", f"{path}/resume", role="operator").json["state"] == "idle"  # type: ignore[index]
    until = datetime.now(UTC) + timedelta(hours=1)
    database.run(lambda s: s.execute(update(RateKey).values(cooldown_until=until, cooldown_cause="HTTP 429")))
    cooling = client.get(path)
    assert (cooling["state"], cooling["not_before"]["kind"], cooling["not_before"]["cause"]) == (
        "cooling_down",
        "cooldown",
        "HTTP 429",
    )
    assert client.call("POST", f"{path}/lift-cooldown", role="operator").json["not_before"] is None  # type: ignore[index]


def test_a_key_can_be_paused_before_its_first_job(client: ApiClient) -> None:
    assert client.call("POST", "rate-keys/www.example.org/pause").json["state"] == "paused"  # type: ignore[index]


KEY_VERBS: list[Any] = ["pause", "resume", "lift-cooldown"]  # fmt: skip


def test_a_key_that_is_none_is_not_found(client: ApiClient, subtests: pytest.Subtests) -> None:
    for verb in KEY_VERBS:
        with subtests.test(str(verb)[:60]):
            problem(client.call("POST", f"rate-keys/nothing.example/{verb}"), 404)
            problem(client.call("POST", f"rate-keys/%00/{verb}"), 404)
            problem(client.call("POST", f"rate-keys/www.example.org/{verb}", {"notes": "x"}), 422)


def test_which_key_has_this_url(client: ApiClient) -> None:
    client.call("PUT", "sites/other", {**SITE, "base_url": "http://own.example/", "rate_key": "firewall"})
    assert client.get("rate-keys/resolve?url=HTTP://WWW.example.org.:80/x") == {
        "rate_key": "www.example.org",
        "sites": ["example"],
    }
    assert client.get("rate-keys/resolve?url=http://own.example/y")["rate_key"] == "firewall"
    assert client.get("rate-keys/resolve?url=http://new.example/")["rate_key"] == "new.example"
    shared = client.get("rate-keys/resolve?url=http://x.gd.gov.cn:8080/&adapter=gkmlpt")
    assert shared["rate_key"] == "gd_gkmlpt_shared"  # of the group that is shipped
    for url in ("", "www.gd.gov.cn/x", "http://[::1", "http://example.com:99999/"):
        assert problem(client.call("GET", f"rate-keys/resolve?url={url}"), 422)["errors"][0]["field"] == "url"
