"""Users, tokens, rate groups, the audit log and one's own password, by plain forms."""

from __future__ import annotations

import functools
import re
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.helpers.admin import HOSTILE, PASSWORD, add_site, add_target
from tests.helpers.browsing import Browser
from webqueue import access, clock, jobs
from webqueue.access.login import TRIES_PER_NAME
from webqueue.database import Database
from webqueue.models import AuditEntry, Job, RateGroupRow, Token, User

OTHER = "another battery staple"


def user(database: Database, name: str) -> User:
    with database.reading() as session:
        return session.scalars(select(User).where(User.name == name)).one()


def log_in(app: Flask, database: Database, name: str, password: str) -> int:
    nobody = Browser(app, database, None)
    nobody.get("/login")
    return nobody.post("/login", name=name, password=password).status_code


def test_a_user_is_added_given_a_role_and_shut_out(app: Flask, browser: Browser, database: Database) -> None:
    wrong = browser.post("/settings/users", name="bob", password="short", role="viewer")
    assert wrong.status_code == 422
    assert "needed are 8" in wrong.text
    assert 'value="short"' not in wrong.text, "a password is not sent back"
    assert browser.post("/settings/users", name="bob", password=OTHER, role="viewer").status_code == 303
    again = browser.post("/settings/users", name="Bob", password=OTHER, role="viewer")
    assert again.status_code == 422
    assert "There is a user" in again.text
    assert browser.post("/settings/users/bob/role", role="operator").status_code == 303
    assert user(database, "bob").role == "operator"
    assert log_in(app, database, "bob", OTHER) == 303
    assert browser.post("/settings/users/bob/disable").status_code == 200
    assert user(database, "bob").disabled_at is None, "it asks first"
    assert browser.post("/settings/users/bob/disable", confirmed="yes").status_code == 303
    assert log_in(app, database, "bob", OTHER) == 422
    assert browser.post("/settings/users/bob/enable").status_code == 303
    assert log_in(app, database, "bob", OTHER) == 303
    assert "bob" in browser.get("/settings/users").text


def test_a_password_that_is_not_taken_is_told_at_its_user(browser: Browser, database: Database) -> None:
    browser.post("/settings/users", name="bob", password=OTHER, role="viewer")
    refused = browser.post("/settings/users/bob/password", password="short")
    assert refused.status_code == 422
    field = refused.text.partition('aria-label="New password of bob"')[2].partition("</td>")[0]
    assert 'aria-describedby="password-wrong"' in field
    assert "needed are 8" in field
    assert 'value="short"' not in refused.text, "a password is not sent back"
    assert browser.post("/settings/users/bob/password", password=f"{OTHER}!").status_code == 303


def test_nobody_gives_themselves_a_password_without_the_old_one(
    app: Flask, browser: Browser, database: Database
) -> None:
    page = browser.get("/settings/users").text
    assert 'href="/settings#own-password"' in page
    assert 'action="/settings/users/admin/password"' not in page
    for name in ("admin", "Admin", " admin "):
        refused = browser.post(f"/settings/users/{name}/password", password=OTHER)
        assert refused.status_code == 422, name
        assert "under You and health, with the old one" in refused.text
    assert log_in(app, database, "admin", PASSWORD) == 303


@pytest.mark.parametrize("ended", [True, False])
def test_who_shuts_a_user_out_is_told_of_their_tokens_and_may_end_them(
    app: Flask, browser: Browser, database: Database, ended: bool
) -> None:
    database.run(
        lambda s: _nothing(
            access.create_user(s, access.new_user("bob", OTHER, "admin"), by="test", now=clock.now(s))
        )
    )
    tokens = {
        name: database.run(functools.partial(_token, name=name, by=by))
        for name, by in (("ci", "bob"), ("cron", "bob"), ("other", "admin"))
    }
    assert "made 2 tokens that work" in browser.get("/settings/users").text
    assert browser.get("/settings/tokens").text.count('<span class="sub">by bob</span>') == 2
    asked = browser.post("/settings/users/bob/disable").text
    assert "2 tokens of the API that bob made work on, for whoever has them: ci, cron." in asked
    assert '<input type="checkbox" name="tokens" value="1" id="choice"> Revoke these 2 tokens too' in asked
    browser.post("/settings/users/bob/disable", confirmed="yes", **({"tokens": "1"} if ended else {}))
    told = browser.get("/settings/users").text
    if ended:
        assert "bob is shut out. 2 tokens are revoked: ci, cron." in told
    else:
        assert "bob is shut out. 2 tokens that bob made still work: ci, cron." in told
    api = app.test_client()
    answers = {
        name: api.get("/api/v1/jobs", headers={"Authorization": f"Bearer {token}"}).status_code
        for name, token in tokens.items()
    }
    works = 401 if ended else 200
    assert answers == {"ci": works, "cron": works, "other": 200}


def _nothing(_made: object) -> None:
    """A row must not leave its transaction."""


def _token(session: Session, name: str, by: str) -> str:
    return access.add_token(session, name, "viewer", by=by, now=clock.now(session))


def test_a_user_without_tokens_is_shut_out_without_a_word_of_them(
    browser: Browser, database: Database
) -> None:
    database.run(
        lambda s: _nothing(
            access.create_user(s, access.new_user("bob", OTHER, "admin"), by="test", now=clock.now(s))
        )
    )
    asked = browser.post("/settings/users/bob/disable").text
    assert "bob is logged out at once" in asked
    assert "token" not in asked.partition("<main")[2].partition("</main")[0].replace("csrf_token", "")


def test_the_last_administrator_stays_one(browser: Browser, database: Database) -> None:
    for path, more in (("role", {"role": "viewer"}), ("disable", {"confirmed": "yes"})):
        refused = browser.post(f"/settings/users/admin/{path}", **more)
        assert refused.status_code == 409
        assert "the last administrator" in refused.text
    assert browser.post("/settings/users/nobody/enable").status_code == 404
    assert user(database, "admin").role == "admin"


def test_ones_own_password_takes_the_old_one_and_ends_the_other_sessions(
    app: Flask, browser: Browser, database: Database
) -> None:
    elsewhere = Browser(app, database, None)
    elsewhere.get("/login")
    assert elsewhere.post("/login", name="admin", password=PASSWORD).status_code == 303
    wrong = browser.post("/settings/password", old="not it", password=OTHER)
    assert wrong.status_code == 422
    assert "The old password is wrong." in wrong.text
    assert browser.post("/settings/password", old=PASSWORD, password="short").status_code == 422
    assert browser.post("/settings/password", old=PASSWORD, password=OTHER).status_code == 303
    assert browser.get("/settings").status_code == 200
    assert elsewhere.get("/settings").status_code == 303
    assert log_in(app, database, "admin", OTHER) == 303


def test_tries_of_ones_own_password_are_limited_as_those_of_the_login(
    app: Flask, browser: Browser, database: Database
) -> None:
    for _ in range(TRIES_PER_NAME):
        assert browser.post("/settings/password", old="not it", password=OTHER).status_code == 422
    refused = browser.post("/settings/password", old=PASSWORD, password=OTHER)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert "Too many logins failed" in refused.text
    assert log_in(app, database, "admin", PASSWORD) == 429, "they count together"


def test_times_are_shown_by_the_clock_of_the_users_zone(
    app: Flask, browser: Browser, database: Database
) -> None:
    with database.reading() as session:
        at = session.scalars(select(User.created_at)).one()
        login = session.scalars(select(User.last_login_at)).one()
    assert login is not None
    assert f"{login:%H:%M} UTC" in browser.get("/settings/users").text
    refused = browser.post("/settings/zone", zone="Mars/Olympus")
    assert refused.status_code == 422
    assert "There is no zone" in refused.text
    assert browser.post("/settings/zone", zone="../../etc/passwd").status_code == 422
    assert browser.post("/settings/zone", zone="Asia/Kolkata").status_code == 303
    shown = browser.get("/settings/users").text
    assert f"{login.astimezone(ZoneInfo('Asia/Kolkata')):%H:%M} +05:30" in shown
    assert f"{at:%Y-%m-%dT}" in shown, "machines still read UTC"
    other = Browser(app, database, "viewer")
    assert 'value="UTC"' in other.get("/settings").text


def test_a_token_is_shown_once_and_works_until_it_is_revoked(
    app: Flask, browser: Browser, database: Database
) -> None:
    assert browser.post("/settings/tokens", name="ci", role="viewer", days="soon").status_code == 422
    made = browser.post("/settings/tokens", name="ci", role="viewer", days="30")
    shown = re.search(r"<pre>(wq_[\w-]+)</pre>", made.text)
    assert shown is not None
    assert made.headers["Cache-Control"] == "no-store"
    assert shown.group(1) not in browser.get("/settings/tokens").text
    header = {"Authorization": f"Bearer {shown.group(1)}"}
    assert app.test_client().get("/api/v1/status", headers=header).status_code == 200
    with database.reading() as session:
        token = session.scalars(select(Token)).one()
        assert token.last_used_at is not None
        assert token.expires_at is not None
    assert browser.post("/settings/tokens", name="ci", role="viewer").status_code == 422
    assert browser.post("/settings/tokens/ci/revoke").status_code == 200
    assert browser.post("/settings/tokens/ci/revoke", confirmed="yes").status_code == 303
    assert app.test_client().get("/api/v1/status", headers=header).status_code == 401


def test_the_settings_of_administrators_are_theirs_alone(
    app: Flask, browser: Browser, database: Database
) -> None:
    operator = Browser(app, database, "operator")
    for path in ("/settings/users", "/settings/tokens", "/settings/audit"):
        assert operator.get(path).status_code == 403
        assert browser.get(path).status_code == 200
        assert path not in operator.get("/settings").text
    groups = operator.get("/settings/rate-groups")
    assert groups.status_code == 200
    assert "add-group" not in groups.text


def test_the_audit_log_tells_who_changed_what_into_what(browser: Browser, database: Database) -> None:
    def change(session: Session) -> None:
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "news", "example", note=HOSTILE)

    database.run(change)
    browser.post("/bulk/targets/schedule", all="1", schedule="0 4 * * *", confirmed="yes")
    page = browser.get("/settings/audit").text
    entries = re.findall(r'<tr id="entry-\d+">(.*?)</tr>', page, re.DOTALL)
    assert "<b>schedule</b>: – → 0 4 * * *" in entries[0]
    assert ">admin<" in entries[0]
    assert HOSTILE not in page
    assert "&lt;img src=x" in page
    only = browser.get("/settings/audit?kind=target&name=news").text
    assert len(re.findall(r'<tr id="entry-', only)) == 2
    assert "Nothing fits" in browser.get("/settings/audit?kind=token").text


def test_the_audit_log_is_paged(browser: Browser, database: Database) -> None:
    def many(session: Session) -> None:
        for number in range(120):
            access.audit(session, by="test", action="changed", kind="setting", name=f"s{number}")

    database.run(many)
    seen: list[str] = []
    path = "/settings/audit?kind=setting"
    while True:
        page = browser.get(path).text
        seen += re.findall(r"setting (s\d+)", page)
        older = re.search(r'id="older" href="([^"]+)"', page)
        if older is None:
            break
        path = older.group(1).replace("&amp;", "&")
    assert seen == [f"s{number}" for number in reversed(range(120))]


def test_a_rate_group_tells_what_it_does_and_takes_queued_jobs_along(
    browser: Browser, database: Database
) -> None:
    def start(session: Session) -> None:
        for code in ("one", "two"):
            add_site(session, code, f"http://{code}.example.org/", adapter="list")
            add_target(session, f"{code}_news", code)
            jobs.submit(session, f"{code}_news", by="ann")

    database.run(start)
    group = {"key": "shared", "adapter": "list", "host_suffix": "example.org", "cooldown_factor": "1"}
    wrong = browser.post("/settings/rate-groups", **{**group, "cooldown_factor": "many"})
    assert wrong.status_code == 422
    assert "is not a number" in wrong.text
    asked = browser.post("/settings/rate-groups", **group)
    assert "2 sites get another rate key: one from one.example.org to shared" in asked.text
    assert "Queued jobs that move along: 2." in asked.text
    assert keys_of_jobs(database) == {"one.example.org", "two.example.org"}
    assert browser.post("/settings/rate-groups", **group, confirmed="yes").status_code == 303
    assert keys_of_jobs(database) == {"shared"}
    with database.reading() as session:
        row = session.scalars(select(RateGroupRow).where(RateGroupRow.key == "shared")).one()
        assert (row.grow_interval, row.cooldown_factor) == (False, 1.0)
    path = f"/settings/rate-groups/{row.id}/delete"
    assert "one from shared to one.example.org" in browser.post(path).text
    assert browser.post(path, confirmed="yes").status_code == 303
    assert keys_of_jobs(database) == {"one.example.org", "two.example.org"}
    assert browser.post(path, confirmed="yes").status_code == 404
    with database.reading() as session:
        told = session.scalars(select(AuditEntry.action).where(AuditEntry.object_kind == "rate_group"))
        assert list(told)[-2:] == ["created", "deleted"]


def keys_of_jobs(database: Database) -> set[str]:
    with database.reading() as session:
        return set(session.scalars(select(Job.rate_key)))


def test_the_rate_groups_tell_what_a_block_costs(browser: Browser, database: Database) -> None:
    shown = browser.get("/settings/rate-groups").text
    assert "After a block a key cools down for 10 min" in shown
    assert "up to 12 times" in shown


@pytest.mark.parametrize(
    "form", [("zone", {"zone": "Mars/Olympus"}), ("password", {"old": "x", "password": OTHER})]
)
def test_a_refused_form_does_not_poll_an_address_that_only_takes_forms(
    browser: Browser, form: tuple[str, dict[str, str]]
) -> None:
    what, fields = form
    refused = browser.post(f"/settings/{what}", **fields)
    assert refused.status_code == 422
    polls = [url.partition("?")[0] for url in re.findall(r'id="poll" hidden hx-get="([^"]+)"', refused.text)]
    assert [browser.get(path).status_code for path in polls] == [200] * len(polls)
