"""Buttons: what they do, what they refuse, and what they answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select

from tests.helpers.admin import (
    running_job,
)
from tests.helpers.browsing import Browser
from webqueue import jobs
from webqueue.database import Database
from webqueue.models import Job

HTMX = {"HX-Request": "true", "HX-Current-URL": "http://localhost/targets?q=x"}


def test_run_now_says_what_came_of_it(browser: Browser, example: None, database: Database) -> None:
    first = browser.post("/targets/news/run", headers=HTMX)
    assert first.status_code == 200
    assert "Queued as #1." in first.text
    assert first.headers["HX-Trigger"] == "webqueue:changed"
    assert "Already queued as #1." in browser.post("/targets/news/run", headers=HTMX).text
    second = browser.post("/targets/news/run", headers=HTMX, from_page="3")
    assert "Queued as #2, 2nd, behind #1 news." in second.text
    with database.reading() as session:
        assert [job.from_page for job in session.scalars(select(Job).order_by(Job.seq))] == [0, 3]


def test_a_start_page_that_is_none_is_told_in_its_form(
    browser: Browser, example: None, database: Database
) -> None:
    refused = browser.post("/targets/news/run", from_page="3x", force="on")
    assert refused.status_code == 422
    form = refused.text.partition('<details id="run-with" open>')[2].partition("</details>")[0]
    assert 'value="3x"' in form
    assert 'aria-invalid="true"' in form
    assert "is no page number." in form
    assert 'id="force" checked' in form
    answer = browser.post("/targets/news/run", headers=HTMX, from_page="3x")
    assert answer.status_code == 400
    assert "is no page number." in answer.text
    with database.reading() as session:
        assert session.scalars(select(Job)).all() == []


def test_run_now_without_a_script_leads_back_and_says_the_same(browser: Browser, example: None) -> None:
    answer = browser.post("/targets/news/run", headers={"Referer": "http://localhost/targets?q=ne"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/targets?q=ne")
    assert "Queued as #1." in browser.get("/targets?q=ne").text
    elsewhere = browser.post("/targets/news/run", headers={"Referer": "http://evil.example/x"})
    assert elsewhere.headers["Location"] == "/targets/news"


def test_what_the_state_does_not_allow_is_a_conflict(
    browser: Browser, example: None, database: Database
) -> None:
    job = database.run(lambda s: jobs.submit(s, "news", by="ann"))
    assert browser.post(f"/jobs/{job.id}/cancel").status_code == 303
    plain = browser.post(f"/jobs/{job.id}/front")
    assert plain.status_code == 409
    live = browser.post(f"/jobs/{job.id}/front", headers=HTMX)
    assert live.status_code == 409
    assert 'class="toast bad"' in live.text
    assert live.headers["HX-Trigger"] == "webqueue:changed"
    assert browser.post(f"/jobs/{job.id}/cancel", headers=HTMX).status_code == 200, "repeats its answer"


def test_a_running_job_is_asked_about_once(browser: Browser, example: None, database: Database) -> None:
    job = database.run(lambda s: running_job(s, "news"))
    asked = browser.post(
        f"/jobs/{job.id}/cancel", headers={"Referer": "http://localhost/jobs?status=running"}
    )
    assert asked.status_code == 200
    assert 'name="next" value="/jobs?status=running"' in asked.text
    with database.reading() as session:
        assert not session.get_one(Job, job.seq).stop_requested
    confirmed = browser.post(f"/jobs/{job.id}/cancel", confirmed="yes", next="/jobs?status=running")
    assert confirmed.headers["Location"] == "/jobs?status=running"
    with database.reading() as session:
        assert session.get_one(Job, job.seq).stop_requested


def test_a_job_of_a_dead_worker_is_cancelled_at_once(
    browser: Browser, example: None, database: Database, instance: Path
) -> None:
    job = database.run(lambda s: running_job(s, "news"))
    (instance / "workers").mkdir()
    (instance / "workers" / "worker-1.lock").touch()  # nobody holds its lock
    answer = browser.post(f"/jobs/{job.id}/cancel", headers=HTMX, confirmed="yes")
    assert "#1 is cancelled." in answer.text


@pytest.mark.parametrize(
    "path",
    ["/jobs/nowhere/cancel", "/jobs/nowhere/retry", "/targets/nowhere/run", "/targets/nowhere/try",
     "/rate-keys/nowhere/pause", "/targets/nowhere/pause", "/sites/nowhere/delete"],
)  # fmt: skip
def test_an_action_on_nothing_is_not_found(browser: Browser, path: str) -> None:
    assert browser.post(path).status_code == 404
    assert browser.post(path, headers=HTMX).status_code == 404


def test_an_ended_session_leads_htmx_to_the_login(app: Flask) -> None:
    answer = app.test_client().post("/targets/news/run", headers=HTMX)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/login?next=/targets?q%3Dx"


def test_an_ended_session_leads_a_plain_form_to_the_login_and_back(app: Flask) -> None:
    answer = app.test_client().post("/targets/news/run", headers={"Referer": "http://localhost/targets"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login?next=/targets")


@pytest.mark.parametrize("header", ["Referer", "HX-Current-URL"])
def test_a_header_that_is_no_address_leads_nowhere_else(app: Flask, header: str) -> None:
    headers = {"HX-Request": "true" if header == "HX-Current-URL" else "", header: "http://[/targets"}
    answer = app.test_client().post("/targets/news/run", headers=headers)
    assert answer.headers.get("HX-Redirect") or answer.headers["Location"] == "/login"
    assert answer.status_code in {303, 401}


@pytest.mark.parametrize("refused", ["/targets/news/run", "/settings/zone"])
def test_a_button_of_a_form_that_was_refused_leads_to_a_page(
    browser: Browser, example: None, refused: str
) -> None:
    """Its address takes forms alone, so the browser cannot be sent back there."""
    assert browser.post(refused, from_page="x", zone="x").status_code == 422
    left = browser.post("/pause-all", headers={"Referer": f"http://localhost{refused}"}, confirmed="yes")
    assert left.status_code == 303
    assert browser.get(left.headers["Location"]).status_code == 200
