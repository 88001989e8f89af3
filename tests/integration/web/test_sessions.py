"""Where one is logged in: listed, ended one by one, all others, or by an administrator."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import event, select, update

from tests.helpers.admin import HOSTILE, PASSWORD
from tests.helpers.browsing import Browser
from webqueue import clock
from webqueue.database import Database
from webqueue.models import AuditEntry, UserSession
from webqueue.web.browsers import browser_words

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 "
    "Mobile/15E148 Safari/604.1"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
    "Safari/537.36 Edg/140.0.0.0"
)


def elsewhere(app: Flask, database: Database, agent: str, address: str) -> Browser:
    """The administrator in another browser."""
    other = Browser(app, database, None)
    other.client.environ_base.update({"HTTP_USER_AGENT": agent, "REMOTE_ADDR": address})
    other.get("/login")
    assert other.post("/login", name="admin", password=PASSWORD).status_code == 303
    return other


def test_only_what_changes_a_session_sends_its_cookie(browser: Browser, example: None) -> None:
    """An answer that was on its way while a button was pressed would bring the cookie of before back with it."""
    poll = re.search(r'hx-get="([^"]+)"', browser.get("/").text)
    assert poll is not None
    for path in ("/", "/jobs", html.unescape(poll[1]), "/static/ui.css", "/static/nowhere.css", "/nowhere"):
        assert "Set-Cookie" not in browser.get(path).headers, path
    pressed = browser.post("/targets/news/run", headers={"Referer": "http://localhost/targets"})
    assert "Set-Cookie" in pressed.headers, "the sentence for the next page"
    browser.get("/static/nowhere.css")
    assert "Queued as #" in browser.get("/targets").text
    assert "Queued as #" not in browser.get("/targets").text, "said once"


def test_a_web_machine_whose_clock_is_wrong_writes_no_more_and_throws_nobody_out(
    browser: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored times are the database's: an hour ahead, each poll of each page would note that it was used."""
    browser.get("/")
    for wrong in (timedelta(hours=1), timedelta(days=31)):
        monkeypatch.setattr(clock, "local_now", lambda wrong=wrong: datetime.now(UTC) + wrong)
        statements: list[str] = []

        def note(_c: object, _cursor: object, statement: str, *_: object, to: list[str] = statements) -> None:
            to.append(statement)

        event.listen(database.engine, "before_cursor_execute", note)
        assert browser.get("/jobs").status_code == 200
        event.remove(database.engine, "before_cursor_execute", note)
        assert [statement for statement in statements if statement.startswith("UPDATE")] == []


def test_the_cookie_outlives_the_session_that_it_opens(browser: Browser) -> None:
    """It is not sent anew with each use; the database knows when that was, and ends the session."""
    cookie = browser.client.get_cookie("webqueue")
    assert cookie is not None
    assert cookie.expires is not None
    assert cookie.expires - datetime.now(UTC) > timedelta(days=399)


def row_of(page: str, text: str) -> str:
    row: str
    (row,) = [row for row in re.findall(r'<tr id="session-\d+">.*?</tr>', page, re.DOTALL) if text in row]
    return row


def test_one_is_ended_and_then_all_others(app: Flask, browser: Browser, database: Database) -> None:
    assert "Log out everywhere else" not in browser.get("/settings").text, "there is no other"
    phone = elsewhere(app, database, IPHONE, "192.0.2.7")
    desk = elsewhere(app, database, FIREFOX, "192.0.2.8")
    page = browser.get("/settings").text
    assert "this browser" in row_of(page, "127.0.0.1")
    assert "<form" not in row_of(page, "127.0.0.1")
    assert "Safari on iPhone" in row_of(page, "192.0.2.7")
    assert "Firefox on Linux" in row_of(page, "192.0.2.8")
    path = re.search(r'action="(/settings/sessions/\d+/end)"', row_of(page, "192.0.2.7"))
    assert path is not None
    assert browser.post(path[1]).status_code == 303
    assert phone.get("/jobs").status_code == 303
    assert desk.get("/jobs").status_code == 200
    assert browser.post(path[1]).status_code == 404, "it has ended already"
    assert browser.post("/settings/sessions/end-others").status_code == 303
    assert "1 session is ended." in browser.get("/settings").text
    assert desk.get("/jobs").status_code == 303
    assert browser.get("/jobs").status_code == 200


def test_nobody_ends_the_session_of_somebody_else(app: Flask, browser: Browser, database: Database) -> None:
    viewer = Browser(app, database, "viewer")
    with database.reading() as session:
        numbers = list(session.scalars(select(UserSession.id)))
    for number in numbers:
        viewer.post(f"/settings/sessions/{number}/end")
    assert browser.get("/jobs").status_code == 200
    assert viewer.get("/jobs").status_code == 303, "its own may be ended, as any"
    assert browser.post(f"/settings/sessions/{10**30}/end").status_code == 404


def test_an_administrator_signs_a_user_out_everywhere(
    app: Flask, browser: Browser, database: Database
) -> None:
    operator = Browser(app, database, "operator")
    assert "logged in with 1 browser" in browser.get("/settings/users").text
    asked = browser.post("/settings/users/operator/sessions/end")
    assert "operator is logged out of 1 browser at once" in asked.text
    assert operator.get("/jobs").status_code == 200
    assert browser.post("/settings/users/operator/sessions/end", confirmed="yes").status_code == 303
    assert operator.get("/jobs").status_code == 303
    with database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "sessions ended")).one()
        assert (entry.by, entry.object_name, entry.before) == ("admin", "operator", {"sessions": 1})
    assert "sessions ended" in browser.get("/settings/audit").text
    assert browser.post("/settings/users/nobody/sessions/end").status_code == 404
    own = browser.post("/settings/users/admin/sessions/end", confirmed="yes")
    assert own.status_code == 303
    assert browser.get("/settings/users").headers["Location"].startswith("/login")


def test_a_page_that_is_looked_at_writes_its_use_at_most_once_a_minute(
    browser: Browser, database: Database
) -> None:
    def seen() -> datetime:
        with database.reading() as session:
            return session.scalars(select(UserSession.last_seen_at)).one()

    first = seen()
    browser.get("/jobs")
    assert seen() == first
    later = datetime.now(UTC) + timedelta(minutes=2)
    with clock.replaced(lambda: later):
        browser.get("/jobs")
    assert seen() == later


def test_a_session_that_was_not_used_for_long_is_over(browser: Browser, database: Database) -> None:
    old = datetime.now(UTC) - timedelta(days=30)
    database.run(lambda s: (s.execute(update(UserSession).values(last_seen_at=old)), None)[1])
    assert browser.get("/jobs").status_code == 303


def test_what_a_browser_says_of_itself_runs_nothing(app: Flask, browser: Browser, database: Database) -> None:
    elsewhere(app, database, HOSTILE, "192.0.2.9")
    page = browser.get("/settings").text
    assert HOSTILE not in page
    assert "&lt;img src=x" in page


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (IPHONE, "Safari on iPhone"),
        (EDGE, "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 14) Chrome/120.0 MicroMessenger/8.0", "WeChat on Android"),
        ("curl/8.5.0", "curl"),
        ("", "a program that does not say what it is"),
        ("x" * 100, "x" * 40 + "…"),
    ],
)
def test_browsers_are_told_in_short_words(agent: str, words: str) -> None:
    assert browser_words(agent) == words
