"""Whatever an open page shows and polls for: when it changes, the next poll tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Column, inspect
from sqlalchemy.orm import Session

from tests.helpers.admin import fill
from tests.helpers.browsing import Browser
from webqueue import clock, queries
from webqueue.database import Database
from webqueue.models import (
    AuditEntry,
    Base,
    IntervalChange,
    Job,
    KeyEvent,
    Process,
    RateGroupRow,
    RateKey,
    RateKeyNote,
    Site,
    StoredSetting,
    Target,
    Token,
    User,
)
from webqueue.processes import LOW_DISK

# What people change is written by verbs that each write an entry of the audit log in the same transaction.
BY_PEOPLE: tuple[type[Base], ...] = (Site, Target, RateGroupRow, RateKeyNote, User, Token)
# What the engine changes moves a time, or is counted. Of jobs the tests of their verbs tell: each settles its key.
BY_THE_ENGINE: tuple[type[Base], ...] = (RateKey, Process, StoredSetting)
# A column of which only some values are sound.
VALUES: dict[str, Any] = {
    "adapter": "feed",
    "allowed_hours": "20:00-06:00",
    "attention": "zz attention",
    "catch_up": "all",
    "handler": "http",
    "http": {},
    "interval_cause": "learned",
    "overlap": "allow",
    "params": {"list_url": "zz/{page}", "item_selector": "zz"},
    "role": "viewer",
    "source": "api",
    "schedule": "7 7 * * *",
    "start_at": datetime.fromisoformat("2031-03-03T03:03:03+00:00"),
    "theme": "dark",
    "timezone": "Asia/Tokyo",
}
# Identities, what a process writes once at its start (its row is counted), what a login depends on, and statuses, which change together with a lot else; the tests of the verbs do that.
LEFT_OUT = {
    "base_url", "code", "content_hash", "counters", "host", "id", "key", "key_hash", "language", "lease_token",
    "password_hash", "retry_at", "root_id", "seq", "site_code", "status", "target_code", "token_hash", "heartbeat_at",
    "disabled_at", "rate_key", "role", "hostname", "pid", "threads", "started_at", "retry_of", "result", "checkpoint", "modified_at",
}  # fmt: skip


def other(column: Column[Any], now: datetime) -> Any:
    """Another value of a column."""
    if column.name in VALUES:
        return VALUES[column.name]
    kind = {"UTCDateTime": datetime, "JSONData": dict}.get(type(column.type).__name__)
    kind = kind or column.type.python_type
    if kind is bool:
        return None
    if kind is dict:
        return ["zz"] if column.name == "tags" else {"zz": 1}
    if kind in {int, float}:
        return 7919
    if kind is datetime:
        return now + timedelta(days=3)
    return f"zz {column.name}"[: getattr(column.type, "length", None) or 40]


def pages_of(session: Session) -> list[str]:
    keys = [key.key for key in session.query(RateKey)]
    return [
        *("/", "/targets", "/jobs", "/rate-keys", "/schedule", "/settings"),
        *(f"/rate-keys/{key}" for key in keys if key.startswith("shop")),
        "/targets/example_news",
    ]


def poll_of(page: str) -> str:
    return page.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")


def shown(browser: Browser, poll: str) -> tuple[str, str]:
    """What the page shows now in the blocks that it polls for, without what passes with time; and its next poll."""
    answer = browser.get(re.sub(r"([?&]live=)[^.&]*", r"\1none", poll)).text
    text = re.sub(r'<span id="poll".*?</span>', "", answer)
    text = re.sub(r"<time [^>]*>[^<]*</time>(<span class=\"(sub|muted)\">[^<]*</span>)?", "", text)
    return re.sub(r"\b\d+ (s|min|h)\b|\d+:\d+(:\d+)?|\b\d+\.\d+ s\b", "", text), poll_of(answer)


def columns() -> Iterator[tuple[type[Base], str]]:
    for model in (*BY_PEOPLE, *BY_THE_ENGINE):
        for name in inspect(model).columns.keys():  # noqa: SIM118 - a collection of columns, not a dict
            if name not in LEFT_OUT:
                yield model, name


def versions(session: Session, pages: list[str]) -> dict[str, str]:
    """The versions with which pages poll, as their views ask for them."""
    state, health = queries.state_version(session), queries.health_version(session)
    return {path: health if path == "/settings" else state for path in pages}


def change(session: Session, model: type[Base], name: str) -> dict[Any, Any]:
    """Change one column of every row of a table, as the verb does that changes it; the values before."""
    now, before = clock.now(session), {}
    for place, row in enumerate(session.query(model)):
        before[inspect(row).identity] = getattr(row, name)
        value = other(inspect(model).columns[name], now)
        value = not getattr(row, name) if value is None else value
        setattr(row, name, f"{value}{place}" if inspect(model).columns[name].unique else value)
        if isinstance(row, RateKey):
            row.modified_at = now
        if isinstance(row, StoredSetting):
            row.changed_at = now
    if model in BY_PEOPLE:
        AuditEntry.record(session, at=now, by="test", action="changed", kind="site", name="zz")
    session.flush()
    return before


def test_what_a_page_shows_does_not_change_behind_its_version(browser: Browser, database: Database) -> None:
    fill(database)

    def describe(session: Session) -> None:
        keys = [key.key for key in session.query(RateKey)]
        session.add_all(RateKeyNote(key=key, owner="Ann", note="ask first") for key in keys)

    database.run(describe)
    with database.reading() as session:
        pages = pages_of(session)
    was = {path: shown(browser, poll_of(browser.get(path).text))[0] for path in pages}
    moved, missed = 0, []
    for model, name in columns():

        def unseen(session: Session, model: type[Base] = model, name: str = name) -> tuple[list[str], Any]:
            before = versions(session, pages)
            values = change(session, model, name)
            after = versions(session, pages)
            still = [path for path in pages if before[path] == after[path]]
            if not still:
                session.rollback()
            return still, values

        still, values = database.run(unseen)
        moved += len(pages) - len(still)
        missed += [
            f"{path}: {model.__tablename__}.{name}"
            for path in still
            if shown(browser, poll_of(browser.get(path).text))[0] != was[path]
        ]
        if still:

            def back(
                session: Session, model: type[Base] = model, name: str = name, values: Any = values
            ) -> None:
                for identity, value in values.items():
                    setattr(session.get_one(model, identity), name, value)

            database.run(back)
    assert moved > 100, "the test sees what it changes"
    assert missed == [], "\n".join(missed)


def test_the_page_of_a_job_tells_what_its_banner_says(browser: Browser, database: Database) -> None:
    fill(database)
    with database.reading() as session:
        job = session.query(Job.id).filter_by(status="done").first()
        worker = session.query(Process.id).filter_by(role="worker").scalar()
    assert job is not None
    poll = poll_of(browser.get(f"/jobs/{job.id}").text)
    assert browser.get(poll).status_code == 204

    def fill_up(session: Session) -> None:
        said = "/srv has 3 MB free of 9,000 MB; crawls need 500 MB"
        StoredSetting.put(session, f"{LOW_DISK}{worker}", said, at=clock.now(session))

    database.run(fill_up)
    answer = browser.get(poll)
    assert answer.status_code == 200
    assert "3 MB free" in answer.text


def test_a_note_of_a_key_is_told_by_the_next_poll_of_every_open_page(
    app: Flask, browser: Browser, database: Database
) -> None:
    fill(database)
    key = "/rate-keys/shop.example.com"
    other_one = Browser(app, database, "operator")
    polls = {path: poll_of(other_one.get(path).text) for path in (key, "/rate-keys")}
    assert all(other_one.get(poll).status_code == 204 for poll in polls.values())
    saved = browser.post(f"{key}/describe", owner="Ann", note="Ask before you run it by hand.")
    assert saved.status_code == 303
    told = {path: other_one.get(poll) for path, poll in polls.items()}
    assert {answer.status_code for answer in told.values()} == {200}
    assert "Ask before you run it by hand." in told[key].text


@pytest.mark.parametrize("model", [KeyEvent, IntervalChange])
def test_the_next_poll_tells_what_is_added_to_a_history(
    browser: Browser, database: Database, model: type[Base]
) -> None:
    fill(database)
    path = "/rate-keys/shop.example.com" if model is KeyEvent else "/targets/shop_prices"
    poll = poll_of(browser.get(path).text)
    assert browser.get(poll).status_code == 204

    def add(session: Session) -> None:
        now = clock.now(session)
        if model is KeyEvent:
            session.add(KeyEvent(rate_key="shop.example.com", at=now, kind="stuck", message="zz happened"))
        else:
            session.add(
                IntervalChange(
                    target_code="shop_prices", at=now, old_sec=1.0, new_sec=2.0, cause="zz happened"
                )
            )

    database.run(add)
    answer = browser.get(poll)
    assert answer.status_code == 200
    assert "zz happened" in answer.text


@pytest.mark.parametrize(
    ("path", "fields"),
    [("language", {"language": "zh"}), ("zone", {"zone": "Asia/Tokyo"}), ("theme", {"theme": "dark"})],
)
def test_a_page_whose_reader_chose_another_look_elsewhere_is_told_to_load_anew(
    browser: Browser, example: None, path: str, fields: dict[str, str]
) -> None:
    poll = poll_of(browser.get("/jobs").text)
    assert browser.get(poll).status_code == 204
    assert browser.post(f"/settings/{path}", **fields).status_code == 303
    browser.get("/settings")
    answer = browser.get(poll)
    assert answer.status_code == 200
    assert answer.headers["Webqueue-Outdated"]
    assert 'href="/jobs"' in answer.text
    again = browser.get(poll_of(browser.get("/jobs").text))
    assert again.status_code == 204, "the page that was loaded anew is at peace"
