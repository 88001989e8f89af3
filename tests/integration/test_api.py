"""The JSON API on both databases: what it answers, and what it refuses."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update
from waitress.server import create_server

from tests.helpers.api import NOW, SITE, TARGET, ApiClient, problem
from webqueue import access, clock, jobs
from webqueue.api.blueprint import ROUTES
from webqueue.api.callers import Caller
from webqueue.config import MASK
from webqueue.database import Database
from webqueue.models import AuditEntry, Document, Job, JobLog, JobStatus, Process, RateKey, Site, Token

PREVIEW = "schedule/preview?cron=0 3 * * 0&tz=UTC&after=2025-01-01T00:00:00Z&count=2"


@pytest.fixture
def client(database: Database) -> ApiClient:
    made = ApiClient(database)
    made.example()
    return made


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


# --- who may do what


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
                    assert role in problem(answer, 403)["detail"]


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


# --- sites and targets


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


# --- jobs

JOB_FIELDS = {
    "id", "seq", "site", "target", "rate_key", "source", "status", "attention", "force", "due_at", "enqueued_at",
    "started_at", "finished_at", "queued_for_sec", "running_for_sec", "current_page", "last_completed_page",
    "progress", "attempt_count", "cooldown_retry_count", "retry_of", "tick", "error_msg", "result", "waiting",
}  # fmt: skip


def test_run_answers_the_job_and_names_the_equal_one(client: ApiClient) -> None:
    first = client.call("POST", "targets/news/run", role="operator")
    assert first.status_code == 202
    job: dict[str, Any] = first.json["job"]  # type: ignore[index]
    assert job.keys() >= JOB_FIELDS
    assert len(job["id"]) == 12
    assert (job["source"], job["status"], job["force"], job["target"]) == ("api", "queued", False, "news")
    assert job["progress"] == {"current": None, "total": None, "message": ""}
    assert job["waiting"]["reason"] == "no_worker"
    again = client.call("POST", "targets/news/run", {"force": False, "from_page": 0})
    assert (again.status_code, again.json["deduplicated"], again.json["job"]["id"]) == (200, True, job["id"])  # type: ignore[index]
    assert run(client, force=True)["force"] is True
    assert run(client, from_page=7)["id"] != job["id"]
    assert client.get(f"jobs/{job['id']}")["id"] == client.get(f"jobs/{job['seq']}")["id"]
    problem(client.call("POST", "targets/nothing/run"), 404)


WRONG_RUNS: list[Any] = [({"force": "yes"}, "force"), ({"force": 1}, "force"), ({"from_page": -1}, "from_page"), ({"from_page": True}, "from_page"),
     ({"from_page": 10**7}, "from_page"), ({"from_page": 1.0}, "from_page"), ({"page": 1}, "page")]  # fmt: skip


def test_a_wrong_run_names_the_field(client: ApiClient, subtests: pytest.Subtests) -> None:
    for body, field in WRONG_RUNS:
        with subtests.test(f"{str(body)[:60]} {str(field)[:60]}"):
            errors = problem(client.call("POST", "targets/news/run", body), 422)["errors"]
            assert [error["field"] for error in errors] == [field]


def test_cancel_retry_and_front(client: ApiClient, database: Database) -> None:
    first, second = run(client), run(client, force=True)
    front = client.call("POST", f"jobs/{second['id']}/front", role="operator")
    assert front.json["job"]["waiting"]["position"] == 1  # type: ignore[index]
    answer = client.call("POST", f"jobs/{first['id']}/cancel", role="operator")
    assert (answer.status_code, answer.json["job"]["status"]) == (200, "cancelled")  # type: ignore[index]
    assert client.call("POST", f"jobs/{first['id']}/cancel").json["job"]["status"] == "cancelled"  # type: ignore[index]
    retried = client.call("POST", f"jobs/{first['id']}/retry", role="operator")
    assert retried.status_code == 202
    job: dict[str, Any] = retried.json["job"]  # type: ignore[index]
    assert (job["source"], job["retry_of"], job["status"]) == ("manual", first["id"], "queued")
    again = client.call("POST", f"jobs/{first['id']}/retry")
    assert (again.status_code, again.json["job"]["id"]) == (200, job["id"])  # type: ignore[index]
    end(database, second["id"])
    assert client.call("POST", f"jobs/{second['id']}/retry").json["job"]["from_page"] == 4  # type: ignore[index]
    end(database, job["id"], JobStatus.DONE)
    for verb in ("cancel", "retry", "front"):
        problem(client.call("POST", f"jobs/{job['id']}/{verb}"), 409)
        problem(client.call("POST", f"jobs/{'0' * 12}/{verb}"), 404)
        problem(client.call("POST", f"jobs/nothing/{verb}"), 404)
        assert (
            problem(client.call("POST", f"jobs/{job['id']}/{verb}", {"x": 1}), 422)["errors"][0]["field"]
            == "x"
        )


def test_a_running_job_is_cancelling_until_its_handler_has_stopped(
    client: ApiClient, database: Database
) -> None:
    job = run(client)
    with database.reading() as session:
        now = clock.now(session)
    running = {"status": JobStatus.RUNNING, "started_at": now, "retry_at": now + timedelta(minutes=1)}
    database.run(lambda s: s.execute(update(Job).where(Job.id == job["id"]).values(running)))
    leased = {"status": "leased", "retry_at": now + timedelta(minutes=1)}
    database.run(lambda s: s.execute(update(RateKey).where(RateKey.key == job["rate_key"]).values(leased)))
    for _ in range(2):
        answer = client.call("POST", f"jobs/{job['id']}/cancel")
        assert (answer.status_code, answer.json["job"]["status"]) == (200, "cancelling")  # type: ignore[index]
    assert [item["id"] for item in client.get("jobs?status=cancelling")["items"]] == [job["id"]]
    assert client.get("rate-keys/www.example.org")["running_job"]["id"] == job["id"]


def test_jobs_are_filtered_and_paged(client: ApiClient, database: Database) -> None:
    made = [run(client, from_page=number)["id"] for number in range(5)]
    end(database, made[0])
    assert [item["id"] for item in client.get("jobs")["items"]] == made[::-1]
    assert [item["id"] for item in client.get("jobs?status=failed")["items"]] == made[:1]
    for name, value in {
        "site": "example",
        "target": "news",
        "rate_key": "www.example.org",
        "source": "api",
    }.items():
        assert len(client.get(f"jobs?{name}={value}")["items"]) == 5
        assert len(client.get(f"jobs?{name}={'manual' if name == 'source' else 'none'}")["items"]) == 0
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert client.get(f"jobs?since={tomorrow}")["items"] == []
    assert len(client.get(f"jobs?until={tomorrow}&since=2020-01-01")["items"]) == 5
    first = client.get("jobs?limit=3")
    assert [item["id"] for item in first["items"]] == made[:1:-1]
    second = client.get(f"jobs?limit=3&cursor={first['next_cursor']}")
    assert [item["id"] for item in second["items"]] == made[1::-1]
    assert second["next_cursor"] is None or client.get(f"jobs?cursor={second['next_cursor']}")["items"] == []


WRONG_QUERIES: list[Any] = [
        ("status=lost", "status"), ("source=magic", "source"), ("limit=0", "limit"), ("limit=201", "limit"),
        ("limit=1e3", "limit"), ("limit=²", "limit"), ("cursor=%25", "cursor"), ("cursor=eA", "cursor"), ("since=yesterday", "since"),
        ("until=2026-01-01T00:00", "until"), ("since=0001-01-01T00:00:00Z", "since"), ("state=done", "state"),
        ("limit=5&limit=6", "limit"), ("target=%00", "target"), ("target=" + "x" * 3000, "target"),
    ]  # fmt: skip


def test_a_wrong_query_names_the_parameter(client: ApiClient, subtests: pytest.Subtests) -> None:
    for query, field in WRONG_QUERIES:
        with subtests.test(f"{str(query)[:60]} {str(field)[:60]}"):
            errors = problem(client.call("GET", f"jobs?{query}"), 422)["errors"]
            assert [error["field"] for error in errors] == [field]


def test_the_log_is_followed_by_offset(client: ApiClient, database: Database) -> None:
    job = run(client)
    lines = [
        JobLog(job_seq=job["seq"], at=NOW, level="info", message=f"line {number}") for number in range(5)
    ]
    database.run(lambda s: s.add_all(lines))
    first = client.get(f"jobs/{job['id']}/log?limit=3")
    assert [line["message"] for line in first["items"]] == ["line 0", "line 1", "line 2"]
    assert first["items"][0].keys() == {"id", "at", "level", "message"}
    by_cursor = client.get(f"jobs/{job['id']}/log?cursor={first['next_cursor']}")
    rest = client.get(f"jobs/{job['id']}/log?after={first['next_after']}")
    assert by_cursor == rest
    assert ([line["message"] for line in rest["items"]], rest["next_cursor"]) == (["line 3", "line 4"], None)
    assert client.get(f"jobs/{job['id']}/log?after={rest['next_after']}")["next_after"] == rest["next_after"]
    problem(client.call("GET", f"jobs/{job['id']}/log?after=-1"), 422)
    problem(client.call("GET", "jobs/nothing/log"), 404)


# --- documents


def test_documents_are_filtered_and_read(client: ApiClient, database: Database) -> None:
    def document(number: int, **more: Any) -> Document:
        values = {
            "target_code": "news", "url": f"http://www.example.org/{number}", "url_hash": str(number), "title": f"100% 新闻 {number}",
            "text": f"text {number}", "first_seen_at": NOW, "last_seen_at": NOW, "changed_at": NOW, "content_hash": "x",
            "first_job_id": "1", "last_job_id": "job1", "last_root_id": "1",
        }  # fmt: skip
        return Document(**(values | more))

    database.run(
        lambda s: s.add_all(
            [
                document(1),
                document(2, state="gone", last_job_id="job2"),
                document(3, title="ABC", changed_at=NOW + timedelta(days=1)),
            ]
        )
    )
    items = client.get("documents", role="viewer")["items"]
    assert [item["title"] for item in items] == ["ABC", "100% 新闻 2", "100% 新闻 1"]
    assert items[0].keys() >= {
        "id", "url", "target", "title", "text", "published_at", "first_seen_at", "last_seen_at", "changed_at", "state", "version", "content_hash",
    }  # fmt: skip
    assert items[0]["text"] == "text 3"

    def titles(query: str) -> list[str]:
        return [item["title"] for item in client.get(f"documents?{query}")["items"]]

    assert titles("q=abc") == ["ABC"]
    assert titles("q=新闻 2") == ["100% 新闻 2"]
    assert titles("q=0%25 新") == ["100% 新闻 2", "100% 新闻 1"]
    assert titles("q=%25ABC") == titles("q=_BC") == []
    assert titles("state=gone") == titles("job=job2") == ["100% 新闻 2"]
    assert titles("since=2026-03-02T00:00:00Z") == ["ABC"]
    assert titles("target=other") == []
    one = client.get(f"documents/{items[0]['id']}")
    assert (one["text"], one["versions"]) == ("text 3", [])
    for name in ("999", "x", "-1", "9" * 30, "1.5"):
        problem(client.call("GET", f"documents/{name}"), 404)


# --- rate keys


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


# --- schedule, status, health


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


# --- errors of HTTP itself


NOT_THERE: list[Any] = [
        ("GET", "nothing", 404), ("GET", "", 404), ("GET", "jobs/a/b/c", 404), ("GET", "jobs/", 404), ("POST", "nothing", 404),
        ("GET", "jobs/%00", 404), ("GET", "sites/%00", 404), ("GET", "targets/%ff", 404), ("GET", "rate-keys/%00", 404),
        ("POST", "jobs", 405), ("DELETE", "jobs/abc", 405), ("PATCH", "sites/example", 405), ("GET", "targets/news/run", 405),
        ("OPTIONS", "jobs", 405), ("PUT", "status", 405),
    ]  # fmt: skip


def test_what_is_not_there_is_a_problem_detail(client: ApiClient, subtests: pytest.Subtests) -> None:
    for method, path, status in NOT_THERE:
        with subtests.test(f"{str(method)[:60]} {str(path)[:60]}"):
            answer = client.call(method, path)
            problem(answer, status)
            assert ("Allow" in answer.headers) == (status == 405)


UNREADABLE_BODIES: list[Any] = [
        (b"{", "application/json", 400), (b"[]", "application/json", 400), (b"5", "application/json", 400),
        (b'{"a": NaN}', "application/json", 400), (b'{"a": 1e999}', "application/json", 400), (b'{"a": 1, "a": 2}', "application/json", 400),
        (b'{"a": "\\ud800"}', "application/json", 400), (b'{"note": "\\u0000"}', "application/json", 400),
        (b'{"a": ' + b"9" * 5000 + b"}", "application/json", 400), (b"\xff", "application/json", 400),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "application/json", 400),
        (b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}", "application/json", 400),
        (b"force=true", "application/x-www-form-urlencoded", 415), (b"{}", "text/plain", 415), (b"{}", None, 415),
        (b'{"a": "' + b"x" * 1_000_001 + b'"}', "application/json", 413),
    ]  # fmt: skip


def test_a_body_that_cannot_be_read(client: ApiClient, subtests: pytest.Subtests) -> None:
    for data, content_type, status in UNREADABLE_BODIES:
        with subtests.test(f"{str(data)[:60]} {str(content_type)[:60]}"):
            problem(client.call("POST", "targets/news/run", data=data, content_type=content_type), status)
            problem(client.call("PUT", "sites/new", data=data, content_type=content_type), status)


def test_a_surprise_is_a_500_with_the_id_that_the_log_has(
    client: ApiClient,
    database: Database,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = run(client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webqueue.queries.get_job", lambda *_: 1 / 0)
        body = problem(client.call("GET", f"jobs/{job['id']}"), 500)
    assert "ZeroDivisionError" not in body["detail"]
    assert body["request_id"] in capsys.readouterr().out + caplog.text


# --- over real HTTP


def test_over_real_http(client: ApiClient) -> None:
    server = create_server(client.app, host="127.0.0.1", port=0, threads=2)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        headers = {"Authorization": f"Bearer {client.tokens[access.Role.ADMIN]}"}
        base = f"http://127.0.0.1:{server.effective_port}"
        with httpx2.Client(base_url=base, headers=headers, trust_env=False) as http:
            assert http.get("/healthz").json() == {"status": "ok"}
            answer = http.post("/api/v1/targets/news/run", json={"force": True})
            assert answer.status_code == 202
            job = answer.json()["job"]
            assert http.get(f"/api/v1/jobs/{job['id']}").json()["force"] is True
            assert http.post(f"/api/v1/jobs/{job['id']}/cancel").json()["job"]["status"] == "cancelled"
            assert http.head("/api/v1/jobs").status_code == 200
            assert http.delete("/api/v1/targets/news").status_code == 409
            assert (
                http.put(
                    "/api/v1/sites/x", content=b"{", headers={"Content-Type": "application/json"}
                ).status_code
                == 400
            )
            assert http.get("/api/v1/nothing").headers["content-type"] == "application/problem+json"
            assert http.get("/api/v1").headers["content-type"] == "application/problem+json"
    finally:
        server.close()
        thread.join(10)
