"""Jobs and documents by the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from tests.helpers.api import NOW, ApiClient, end, problem, run
from webqueue import clock
from webqueue.database import Database
from webqueue.models import Document, Job, JobLog, JobStatus, RateKey

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
