"""What the API answers to what is no request of its own; and over real HTTP."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest
from waitress.server import create_server

from tests.helpers.api import ApiClient, problem, run
from webqueue import access
from webqueue.database import Database

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
        # Threads that answer may still write to what wakes the loop, and the loop may wait for what is closed: they
        # end first, then it closes by itself, between two waits.
        server.task_dispatcher.shutdown()
        server.trigger.pull_trigger(server.close)
        thread.join(10)
    assert not thread.is_alive()
