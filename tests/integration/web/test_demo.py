"""The buttons of the demo on the overview: who has them, what they ask, and what they answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from flask import Flask
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tests.helpers.admin import PASSWORD
from tests.helpers.browsing import Browser
from webqueue import access, clock, config, jobs
from webqueue.database import Database
from webqueue.models import Job, KeyEvent, RateKey, Site, Target


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
    assert (
        "1 job of the demo is stopping, and its schedules are paused. Remove the demo again in a moment."
        in answer.text
    )
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


def second(app: Flask, database: Database) -> Browser:
    """The administrator's other browser; `browser` has made the account."""
    other = Browser(app, database, None)
    other.get("/login")
    assert other.post("/login", name="admin", password=PASSWORD).status_code == 303
    other.get("/settings")
    return other


def at_once(*presses: Callable[[], int]) -> list[int]:
    """What is answered to each when all are pressed in one moment."""
    start = threading.Barrier(len(presses))
    answers = [0] * len(presses)

    def press(place: int) -> None:
        start.wait()
        answers[place] = presses[place]()

    threads = [threading.Thread(target=press, args=(place,)) for place in range(len(presses))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("engine_name", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_two_press_at_once(app: Flask, browser: Browser, database: Database) -> None:
    other = second(app, database)

    def load(one: Browser) -> Callable[[], int]:
        return lambda: one.post("/demo/load").status_code

    def remove(one: Browser) -> Callable[[], int]:
        return lambda: one.post("/demo/remove", confirmed="yes").status_code

    for _ in range(3):
        assert sorted(at_once(load(browser), load(other))) == [303, 409]
        assert statuses(database) == ["queued"] * 7
        assert 303 in at_once(remove(browser), remove(other))
        assert set(at_once(load(browser), remove(other), remove(browser))) <= {303, 409}
        remove(browser)()
        with database.reading() as session:
            for model in (Target, Site, Job, KeyEvent, RateKey):
                assert session.scalar(select(func.count()).select_from(model)) == 0, model


def test_jobs_that_came_and_went_since_it_was_looked(
    browser: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry of a walk that was just blocked, and a job that somebody else has deleted."""
    browser.get("/")
    browser.post("/demo/load")
    pause = config.pause_demo

    def a_moment_ago(session: Session, *, by: str, now: datetime) -> config.Demo:
        demo = pause(session, by=by, now=now)
        return replace(demo, open_jobs=("000000000000", *demo.open_jobs[:1]))

    monkeypatch.setattr(config, "pause_demo", a_moment_ago)
    assert browser.post("/demo/remove", confirmed="yes").status_code == 303
    assert statuses(database) == []


def test_the_demo_of_nobody(app: Flask, browser: Browser, database: Database) -> None:
    viewer = Browser(app, database, "viewer")
    nobody = Browser(app, database, None)
    secret = database.run(lambda s: access.add_token(s, "robot", "admin", by="admin", now=clock.now(s)))
    bearer = {"Authorization": f"Bearer {secret}"}
    for path in ("/demo/load", "/demo/remove"):
        assert browser.get(path).status_code == 405
        assert browser.post(path, csrf_token="", confirmed="yes").status_code == 400
        assert viewer.post(path, confirmed="yes").status_code == 403
        assert nobody.post(path, confirmed="yes").status_code in {302, 303, 400, 401}
        assert nobody.post(path, headers=bearer, confirmed="yes").status_code in {302, 303, 400, 401}
    with database.reading() as session:
        assert session.scalars(select(Target)).all() == []
