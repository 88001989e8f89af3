"""The buttons of the demo on the overview: who has them, what they ask, and what they answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.helpers.browsing import Browser
from webqueue import config, jobs
from webqueue.database import Database
from webqueue.models import Job, Target


def statuses(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(Job.status)))


def test_loaded_run_and_removed(browser: Browser, database: Database) -> None:
    assert "Load the demo" in browser.get("/").text
    answer = browser.post("/demo/load")
    assert (answer.status_code, answer.location) == (303, "/")
    page = browser.get("/").text
    assert "The demo is loaded: 7 targets, each with a job in the queue." in page
    assert "Load the demo" not in page
    assert "Three steps" not in page
    assert statuses(database) == ["queued"] * 7

    twice = browser.post("/demo/load")
    assert twice.status_code == 409
    assert "There are targets already" in twice.text
    assert len(statuses(database)) == 7

    question = browser.post("/demo/remove")
    assert "7 targets are deleted with their sites, and their 7 jobs with the logs" in question.text
    assert browser.post("/demo/remove", confirmed="yes").status_code == 303
    page = browser.get("/").text
    assert "The demo is removed." in page
    assert "Load the demo" in page
    assert statuses(database) == []


def test_a_job_that_runs_is_waited_for(browser: Browser, database: Database) -> None:
    browser.get("/")
    browser.post("/demo/load")
    claimed = database.run(lambda s: jobs.claim(s, "w", limit=1, life=lambda _: jobs.Life.UNKNOWN))
    assert len(claimed) == 1
    answer = browser.post("/demo/remove", confirmed="yes")
    assert answer.status_code == 409
    assert "1 job of the demo is stopping. Remove the demo again in a moment." in answer.text
    assert sorted(statuses(database)) == ["cancelled"] * 6 + ["running"]
    with database.transaction() as session:
        assert not session.scalars(select(Target).where(Target.paused_at.is_(None))).all()


def test_only_who_configures_has_the_buttons(app: Flask, browser: Browser, database: Database) -> None:
    operator = Browser(app, database, "operator")
    assert "Load the demo" not in operator.get("/").text
    assert operator.post("/demo/load").status_code == 403
    browser.get("/")
    browser.post("/demo/load")
    page = operator.get("/").text
    assert "The demo is loaded." in page
    assert "Remove the demo" not in page
    assert operator.post("/demo/remove", confirmed="yes").status_code == 403


def test_there_is_nothing_to_remove(browser: Browser) -> None:
    browser.get("/")
    answer = browser.post("/demo/remove", confirmed="yes")
    assert answer.status_code == 409
    assert "The demo is not loaded." in answer.text


def test_somebody_else_takes_it_out_at_the_same_time(
    browser: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.get("/")
    browser.post("/demo/load")
    pause = config.pause_demo

    def overtaken(session: Session, *, by: str, now: datetime) -> config.Demo:
        found = pause(session, by=by, now=now)
        return replace(found, open_jobs=(*found.open_jobs, "0" * 12))

    monkeypatch.setattr(config, "pause_demo", overtaken)
    assert browser.post("/demo/remove", confirmed="yes").status_code == 303
    assert "The demo is removed." in browser.get("/").text
