"""Who gets in, and what keeps a mistake of the pages from becoming a hole."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select, text
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

import webqueue
from tests.helpers.admin import (
    HOSTILE,
    PASSWORD,
    add_document,
    add_site,
    fill,
    finished_job,
)
from tests.helpers.browsing import Browser, add_user
from webqueue import access, clock
from webqueue import settings as webqueue_settings
from webqueue.access import login, users
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.deliveries import channels
from webqueue.documents import OriginalStore
from webqueue.models import Job, Site, StoredSetting
from webqueue.settings import Settings
from webqueue.web import security

PACKAGE = Path(webqueue.__file__).parent
OPEN = {"/login", "/login/<token>", "/setup/<token>", "/static/<path:filename>", "/healthz", "/readyz"}
OWN_SETTINGS = (
    "/settings/theme",
    "/settings/language",
    "/settings/zone",
    "/settings/password",
    "/settings/sessions/end-others",
)


BOTH = pytest.mark.parametrize(
    "engine_name", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]
)


def wrong_fields(answer: TestResponse) -> dict[str, str]:
    """What a form says is wrong, by field."""
    return dict(re.findall(r'<p class="wrong" id="(?:f-)?([\w-]+)-wrong">([^<]+)</p>', answer.text))


def paths(app: Flask, method: str) -> list[str]:
    return sorted(
        str(rule)
        for rule in app.url_map.iter_rules()
        if method in (rule.methods or ()) and not str(rule).startswith("/api/")
    )


def filled(path: str) -> str:
    """A path with something for its variables."""
    path = re.sub(r"<int:\w+>", "1", path)
    return re.sub(r"<(path:)?\w+>", "x", path)


def test_nothing_is_open_but_what_is_named_here(app: Flask) -> None:
    client = app.test_client()
    for method in ("GET", "POST"):
        for path in paths(app, method):
            answer = client.open(filled(path), method=method)
            if path == "/metrics" and method == "GET":
                assert answer.status_code == 401, "programs read it, which follow no login"
            elif path in OPEN:
                assert not answer.headers.get("Location", "").startswith("/login"), path
            else:
                assert answer.status_code == 303, (method, path)
                assert answer.headers["Location"].startswith("/login"), path
    assert client.get("/nowhere").headers["Location"].startswith("/login")


@BOTH
@pytest.mark.parametrize("number", [10**30, 2**63, 2**63 - 1, 2**31])
def test_a_number_that_no_row_has_is_not_found(browser: Browser, app: Flask, number: int) -> None:
    numbered = [(m, path) for m in ("GET", "POST") for path in paths(app, m) if "<int:" in path]
    assert len(numbered) >= 5
    for method, path in numbered:
        fields = {"csrf_token": browser.token, "confirmed": "yes"}
        answer = browser.client.open(
            re.sub(r"<int:\w+>", str(number), path), method=method, data=fields if method == "POST" else None
        )
        assert answer.status_code in {404, 405}, (method, path)


@BOTH
def test_an_address_with_a_nul_is_none(browser: Browser, app: Flask) -> None:
    for method in ("GET", "POST"):
        for path in paths(app, method):
            named = re.sub(r"<(path:)?\w+>", "a%00b", re.sub(r"<int:\w+>", "1", path))
            fields = {"csrf_token": browser.token, "confirmed": "yes", "job": "a\0b", "target": "a\0b"}
            if named != path and "%00" in named:
                answer = browser.client.open(named, method=method, data=fields if method == "POST" else None)
                assert answer.status_code in {404, 405, 410}, (method, path)
            elif method == "POST" and path.startswith("/bulk/"):
                assert browser.client.post(path, data=fields).status_code in {400, 409}, path
    for page in (
        "/targets/new?site",
        "/jobs?target",
        "/rate-keys?cursor",
        "/settings/audit?kind=target&name",
        "/documents?q",
        "/documents.csv?q",
    ):
        assert browser.get(f"{page}=a%00b").status_code == 400


@BOTH
def test_a_form_with_a_nul_is_refused_at_its_field(browser: Browser, app: Flask, example: None) -> None:
    forms = [path for path in paths(app, "POST") if not path.startswith(("/api/", "/login", "/setup"))]
    assert len(forms) > 50
    for path in forms:
        named = re.sub(r"<(path:)?\w+>", "news", re.sub(r"<int:\w+>", "1", path))
        answer = browser.post(named, confirmed="yes", note="a\0b")
        assert answer.status_code == 400, path
        assert "note: must not contain the character NUL" in answer.text


@BOTH
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/settings/retention", {"target": "a\0b", "keep": "5"}),
        ("/settings/export", {"target": "a\0b", "switch": "on"}),
        ("/targets/new", {"code": "a\0b", "site": "example", "handler": "python"}),
        ("/targets/new", {"code": "x", "site": "a\0b", "handler": "python"}),
        ("/sites/new", {"code": "a\0b", "base_url": "http://www.example.org/"}),
        ("/bulk/targets/run", {"all": "1", "q": "a\0b"}),
        ("/bulk/jobs/cancel", {"all": "1", "site": "a\0b"}),
        ("/login", {"name": "a\0b", "password": "x"}),
    ],
)
def test_a_nul_is_no_surprise_to_a_form(browser: Browser, path: str, fields: dict[str, str]) -> None:
    assert browser.post(path, **fields).status_code == 400


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/targets/news/run", {"from_page": "9" * 5000}, 422),
        ("/settings/tokens", {"name": "ci", "role": "viewer", "days": "9" * 5000}, 422),
        ("/settings/retention", {"target": "news", "jobs": "9" * 5000}, 422),
        ("/settings/notifications", {"blocked_min": "9" * 5000}, 422),
        ("/bulk/jobs/cancel", {"all": "1", "up_to": "9" * 5000}, 400),
    ],
)
def test_a_number_may_be_as_long_as_a_form(
    browser: Browser, example: None, path: str, fields: dict[str, str], status: int
) -> None:
    assert browser.post(path, **fields).status_code == status


def test_a_button_works_before_the_rest_of_its_page_is_there(browser: Browser, example: None) -> None:
    """On a slow line a page arrives in pieces, and a button whose form is still missing does nothing."""
    for path in ("/", "/targets", "/targets/news", "/jobs", "/rate-keys", "/rate-keys/www.example.org"):
        html = browser.get(path).text
        assert html.count('<form id="act"') == 1
        assert 0 < html.index('<form id="act"') < html.index('form="act"'), path


def test_every_form_needs_its_token(browser: Browser, app: Flask) -> None:
    for path in paths(app, "POST"):
        answer = browser.client.post(filled(path))
        assert answer.status_code == 400, path
        assert "from another session" in answer.text


def test_every_action_asks_for_the_role_that_it_needs(app: Flask, database: Database, example: None) -> None:
    viewer = Browser(app, database, "viewer")
    free = {"/login", "/logout", "/setup/<token>", *OWN_SETTINGS}
    own = {"/settings/sessions/<int:number>/end"}  # who it belongs to is asked, not the role
    for path in set(paths(app, "POST")) - own:
        if path not in free:
            assert viewer.post(filled(path)).status_code == 403, path
    for path in ("/", "/targets", "/targets/news", "/jobs", "/rate-keys/www.example.org", "/sites/example"):
        page = viewer.get(path)
        assert page.status_code == 200
        assert not re.findall(r'formaction="', page.text), path
    for path, takes in (
        ("/targets/new", "the role admin"),
        ("/targets/news/run", "the role operator or admin"),
    ):
        refused = viewer.post(path)
        assert refused.status_code == 403
        assert f"It takes {takes}; yours is viewer." in refused.text, path
    assert viewer.get("/targets/new").status_code == 403


def test_operators_run_and_do_not_configure(app: Flask, database: Database, example: None) -> None:
    operator = Browser(app, database, "operator")
    assert operator.post("/targets/news/run").status_code == 303
    assert operator.post("/rate-keys/www.example.org/pause").status_code == 303
    assert operator.post("/sites/new", code="x").status_code == 403
    assert operator.post("/targets/news/edit").status_code == 403


def test_both_mistakes_of_a_login_get_the_same_answer(app: Flask, database: Database) -> None:
    add_user(database, "ann", "admin")
    nobody = Browser(app, database, None)
    nobody.get("/login")
    wrong = [
        nobody.post("/login", name="ann", password="wrong wrong"),
        nobody.post("/login", name="bob", password=PASSWORD),
    ]
    assert {answer.status_code for answer in wrong} == {422}
    said = {re.findall(r'id="wrong">([^<]+)', answer.text)[0] for answer in wrong}
    assert said == {"The name or the password is wrong."}


def test_tries_are_limited(app: Flask, database: Database) -> None:
    add_user(database, "ann", "admin")
    nobody = Browser(app, database, None)
    nobody.get("/login")
    statuses = [nobody.post("/login", name="ann", password="wrong wrong").status_code for _ in range(11)]
    assert statuses == [422] * 10 + [429]
    refused = nobody.post("/login", name="ann", password=PASSWORD)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "evil.example",
        "/\t/evil",
    ],
)
def test_a_login_leads_to_no_other_host(app: Flask, database: Database, address: str) -> None:
    add_user(database, "ann", "admin")
    nobody = Browser(app, database, None)
    nobody.get("/login")
    answer = nobody.post("/login", name="ann", password=PASSWORD, next=address)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert nobody.client.get("/login", query_string={"next": address}).headers["Location"] == "/"


def test_a_login_leads_back(app: Flask, database: Database) -> None:
    add_user(database, "ann", "admin")
    nobody = Browser(app, database, None)
    login = nobody.get("/jobs?status=failed").headers["Location"]
    assert 'name="next" value="/jobs?status=failed"' in nobody.get(login).text


def test_the_setup_link_works_once(app: Flask, database: Database) -> None:
    token = database.run(lambda s: access.new_setup_link(s, clock.now(s)))
    first = Browser(app, database, None)
    for _ in range(2):  # looking does not use it up
        assert first.get(f"/setup/{token}").status_code == 200
    refused = first.post(f"/setup/{token}", name="ann", password="short", again="short")
    assert refused.status_code == 422
    assert "needed are 8" in wrong_fields(refused)["password"]
    differing = first.post(f"/setup/{token}", name="ann", password=PASSWORD, again="other password")
    assert wrong_fields(differing)["again"] == "The two passwords are not the same."
    assert first.post(f"/setup/{token}", name="ann", password=PASSWORD, again=PASSWORD).status_code == 303
    assert first.get("/").status_code == 200
    second = Browser(app, database, None)
    assert second.get(f"/setup/{token}").status_code == 410
    assert second.get("/setup/made-up").status_code == 410


def test_a_login_link_works_once(app: Flask, database: Database) -> None:
    add_user(database, "ann", "admin")

    def link(session: Session) -> str:
        user = access.find_user(session, "ann")
        assert user is not None
        return access.new_login_link(session, user, clock.now(session))

    token = database.run(link)
    first, second = Browser(app, database, None), Browser(app, database, None)
    assert first.get(f"/login/{token}").status_code == 303
    assert first.get("/").status_code == 200
    assert second.get(f"/login/{token}").status_code == 410
    assert second.get("/").status_code == 303


def test_a_session_ends_with_the_logout_the_password_and_the_user(app: Flask, database: Database) -> None:
    browsers = [Browser(app, database, role) for role in ("admin", "operator", "viewer")]
    assert all(browser.get("/").status_code == 200 for browser in browsers)
    assert browsers[0].post("/logout").status_code == 303
    database.run(
        lambda s: access.set_password(
            s, "operator", access.new_password("operator", "another password"), by="test", now=clock.now(s)
        )
    )
    database.run(lambda s: access.disable_user(s, "viewer", by="test", now=clock.now(s)))
    assert [browser.get("/").status_code for browser in browsers] == [303, 303, 303]


def test_a_cookie_is_worth_nothing_after_the_logout(app: Flask, database: Database, browser: Browser) -> None:
    cookie = browser.client.get_cookie("webqueue")
    assert cookie is not None
    thief = app.test_client()
    thief.set_cookie("webqueue", cookie.value)
    assert thief.get("/").status_code == 200
    assert browser.post("/logout").status_code == 303
    assert thief.get("/").status_code == 303
    assert thief.get("/?live=x").headers["Location"].startswith("/login")


def test_every_web_process_takes_every_session(
    settings: Settings, database: Database, browser: Browser
) -> None:
    other = create_app(settings, database).test_client()
    cookie = browser.client.get_cookie("webqueue")
    assert cookie is not None
    assert cookie.http_only
    assert cookie.same_site == "Lax"
    other.set_cookie("webqueue", cookie.value)
    assert other.get("/").status_code == 200
    with database.reading() as session:
        assert len(session.get_one(StoredSetting, "session_secret").value) == 64


def test_cookies_are_secure_where_the_page_came_over_tls(app: Flask, database: Database) -> None:
    add_user(database, "ann", "admin")
    answers = [
        app.test_client().get("/login", base_url=f"{scheme}://localhost") for scheme in ("http", "https")
    ]
    assert ["Secure" in answer.headers["Set-Cookie"] for answer in answers] == [False, True]


def test_every_answer_has_the_headers(browser: Browser, app: Flask, example: None) -> None:
    for path in ("/", "/jobs", "/nowhere", "/login", "/static/ui.css"):
        headers = browser.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
    assert browser.get("/").headers["Cache-Control"] == "no-store"
    kept = browser.get("/static/ui.css").headers
    assert kept["Cache-Control"].startswith("public")
    assert kept["Cache-Control"].endswith("immutable")
    assert "Vary" not in kept, "a browser keeps it whatever its cookies become"
    assert browser.get("/static/nowhere.css").headers["Cache-Control"] == "no-store"


def test_a_form_that_is_too_long_is_refused_before_it_is_read(app: Flask, browser: Browser) -> None:
    long = "&".join(f"a{number}=1" for number in range(100_000))
    for client in (app.test_client(), browser.client):
        answer = client.post("/login", data=long, content_type="application/x-www-form-urlencoded")
        assert answer.status_code == 413
        assert "That is too large" in answer.text
    assert browser.post("/settings/zone", zone="x" * 400_000).status_code == 422


def test_what_is_no_page_runs_nothing_wherever_it_is_opened(
    browser: Browser, database: Database, example: None
) -> None:
    def fill_in(session: Session) -> tuple[str, int]:
        job = finished_job(session, "news", ago=timedelta(hours=1), seconds=3)
        document = add_document(session, job, "http://www.example.org/x.html", HOSTILE, HOSTILE)
        return job.id, document.id

    job, document = database.run(fill_in)
    for path in (
        f"/documents/{document}/text.txt",
        f"/jobs/{job}/log.txt",
        "/documents.csv",
        "/documents.jsonl",
        "/jobs.csv",
        f"/api/v1/documents/{document}",
        "/api/v1/documents.atom",
        "/api/v1/documents.csv",
        "/api/v1/nowhere",
        "/healthz",
        "/metrics",
    ):
        answer = browser.get(path)
        assert answer.headers["Content-Security-Policy"] == security.SANDBOX, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        assert answer.mimetype != "text/html", path


def test_no_template_has_an_inline_script_or_style() -> None:
    for template in (PACKAGE / "templates").glob("*.html"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle\s*=", text), template.name
        assert not re.search(r"<style|<script(?![^>]*\ssrc=)", text), template.name
        assert not re.search(r"\son[a-z]+\s*=|hx-on|javascript:|js:", text), template.name
        assert not re.search(r"hx-trigger=\"[^\"]*\[", text), f"{template.name}: a filter needs eval"
        assert "|safe" not in text, template.name
        assert not re.search(r"https?://(?!www\.example\.org|host:port)", text), template.name


def test_the_script_is_small_and_everything_of_others_is_named() -> None:
    static = PACKAGE / "static"
    assert (static / "app.js").stat().st_size < 8000
    vendored = (static / "VENDOR.md").read_text(encoding="utf-8")
    own = {"app.js", "ui.css", "tokens.css", "icon.svg", "VENDOR.md"}
    for file in static.iterdir():
        assert file.name in own or f"`{file.name}`" in vendored


def test_only_the_hosts_of_the_settings_are_answered(settings: Settings, database: Database) -> None:
    trusting = webqueue_settings.load(
        instance_path=settings.instance_path,
        database_url=settings.database_url,
        trusted_hosts="crawl.example, other",
    )
    client = create_app(trusting, database).test_client()
    assert client.get("/login", headers={"Host": "crawl.example"}).status_code == 200
    for method in ("GET", "POST"):
        refused = client.open("/login", method=method, headers={"Host": "evil.example"})
        assert refused.status_code == 400
        assert "evil" not in refused.text
    for path in ("/metrics", "/api/v1/status", "/static/app.js", "/healthz/"):
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 400, path
    for path in ("/healthz", "/readyz"):
        answer = client.get(path, headers={"Host": "10.0.0.7:8000"})
        assert answer.is_json, "probes ask by the address of the machine"


@BOTH
def test_what_is_slow_is_done_before_the_transaction(
    app: Flask, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who writes on SQLite waits for a transaction: a hash is slow on purpose, apprise takes long to load."""
    seen: list[tuple[str, bool]] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            seen.append((name, getattr(database._writing, "now", False)))
            return real(*args, **more)

        return call

    for module in (users, login):
        hashing = watched("hash", module.generate_password_hash)
        monkeypatch.setattr(module, "generate_password_hash", hashing)
    monkeypatch.setattr(channels, "is_address", watched("apprise", channels.is_address))
    token = database.run(lambda s: access.new_setup_link(s, clock.now(s)))
    browser = Browser(app, database, None)
    browser.get(f"/setup/{token}")
    assert browser.post("/setup/wrong", name="admin", password=PASSWORD).status_code == 410
    assert seen == [], "nothing slow for whoever has no link"
    for path, fields in (
        (f"/setup/{token}", {"name": "admin", "password": PASSWORD}),
        ("/settings/users", {"name": "ann", "password": PASSWORD, "role": "viewer"}),
        ("/settings/users/ann/password", {"password": PASSWORD * 2}),
        ("/settings/notifications/receivers", {"name": "ops", "url": "json://127.0.0.1/x"}),
    ):
        assert browser.post(path, **fields).status_code == 303, path
        browser.get("/settings")
    assert seen == [("hash", False), ("hash", False), ("hash", False), ("apprise", False)]


def test_the_documented_hosts_let_the_documented_requests_in(settings: Settings, database: Database) -> None:
    docs = PACKAGE.parent / "docs"
    (hosts,) = re.findall(
        r"^Environment=WEBQUEUE_TRUSTED_HOSTS=(.+)$", (docs / "how-to/deploy.md").read_text(), re.MULTILINE
    )
    trusting = webqueue_settings.load(
        instance_path=settings.instance_path, database_url=settings.database_url, trusted_hosts=hosts
    )
    client = create_app(trusting, database).test_client()
    asked = set()
    for page in ("how-to/api.md", "reference/api.md", "reference/admin.md"):
        asked |= set(re.findall(r"[\w.]+:8000", (docs / page).read_text()))
    assert asked
    for host in asked | {"webqueue.example.org"}:
        for path, status in (("/metrics", 401), ("/api/v1/jobs", 401), ("/login", 200)):
            assert client.get(path, headers={"Host": host}).status_code == status, (host, path)


def test_crawled_texts_are_escaped(browser: Browser, database: Database) -> None:
    fill(database)
    with database.reading() as session:
        failed = session.scalars(select(Job).where(Job.target_code == "hostile_target")).one()
    for path in (
        "/",
        "/targets",
        "/jobs",
        f"/jobs/{failed.id}",
        "/documents",
        "/documents/1",
        "/targets/hostile_target",
    ):
        page = browser.get(path).text
        assert HOSTILE not in page, path
        assert "&lt;img src=x" in page, path
    log = browser.get(f"/jobs/{failed.id}/log.txt")
    assert log.mimetype == "text/plain"
    assert log.headers["Content-Disposition"].startswith("attachment")
    assert HOSTILE in log.text


def test_kept_pages_are_only_downloaded(browser: Browser, settings: Settings) -> None:
    store = OriginalStore(settings.store)
    page = store.put(b"<script>alert(document.cookie)</script>")
    file = store.put(b"%PDF\x00")
    answer = browser.get(f"/kept/{page}")
    assert answer.data == b"<script>alert(document.cookie)</script>"
    assert answer.mimetype == "application/octet-stream"
    assert answer.headers["Content-Security-Policy"] == security.SANDBOX
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="page-{page[:12]}.txt"'
    assert browser.get(f"/kept/{file}").headers["Content-Disposition"].endswith('.bin"')
    for key in ("0" * 64, "..%2f..%2fwebqueue.sqlite3", "webqueue.sqlite3", page.upper()):
        assert browser.get(f"/kept/{key}").status_code == 404, key


def test_secrets_are_masked_and_survive_a_save(browser: Browser, database: Database) -> None:
    secret = "Bearer s3cret"
    database.run(
        lambda s: add_site(
            s, "example", "http://www.example.org/", http={"headers": {"Authorization": secret}}
        )
    )
    page = browser.get("/sites/example")
    assert "s3cret" not in page.text
    fields = {
        "name": "Example",
        "base_url": "http://www.example.org/",
        "timezone": "UTC",
        "obey_robots": "on",
        "http.verify_tls": "on",
        "http.headers": "Authorization: ********\nAccept: text/html",
    }
    assert browser.post("/sites/example", **fields).status_code == 303
    with database.reading() as session:
        site = session.get_one(Site, "example")
    assert site.http["headers"] == {"Authorization": secret, "Accept": "text/html"}
    assert site.name == "Example"
    elsewhere = browser.post("/sites/example", **{**fields, "base_url": "http://evil.example/"})
    assert elsewhere.status_code == 422
    assert "only what was meant for another server" in elsewhere.text
    assert 'value="http://evil.example/"' in elsewhere.text, "nothing is lost"
    with database.reading() as session:
        assert session.get_one(Site, "example").base_url == "http://www.example.org/"


def test_no_list_shows_a_secret_of_an_address(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://tok3n@www.example.org/?api_key=s3cret"))
    page = browser.get("/sites").text
    assert "http://********@www.example.org/?api_key=********" in page
    assert "tok3n" not in page


@pytest.mark.parametrize(
    ("language", "said"), [("en", "The database does not answer."), ("zh", "数据库没有响应。")]
)
def test_a_database_that_is_away_is_told_even_if_it_cannot_say_who_asks(
    app: Flask, browser: Browser, database: Database, language: str, said: str
) -> None:
    app.testing = False  # an error of the error page would be raised, not answered
    headers = {"Accept-Language": language}
    database.run(lambda s: s.execute(text("ALTER TABLE users RENAME TO away")))
    page = browser.get("/jobs", headers=headers)
    assert page.status_code == 503
    assert said in page.text
    poll = browser.get("/jobs?live=x", headers={**headers, "HX-Request": "true"})
    assert poll.status_code == 503
    assert said in poll.text
    database.run(lambda s: s.execute(text("ALTER TABLE away RENAME TO users")))
    assert browser.get("/jobs").status_code == 200, "nobody was logged out"
