"""The pages, asked by a plain HTTP client: who gets in, what is refused, what forms and polls answer."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

import webqueue
from tests.helpers.admin import (
    HOSTILE,
    PASSWORD,
    add_site,
    add_target,
    add_worker,
    fill,
    finished_job,
    log_lines,
    running_job,
)
from tests.helpers.browsing import Browser, add_user
from webqueue import access, clock, jobs
from webqueue import settings as webqueue_settings
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.documents import OriginalStore
from webqueue.models import Job, Site, StoredSetting, Target
from webqueue.settings import Settings

PACKAGE = Path(webqueue.__file__).parent
OPEN = {"/login", "/login/<token>", "/setup/<token>", "/static/<path:filename>", "/healthz", "/readyz"}
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://localhost/targets?q=x"}


@pytest.fixture
def engine_name() -> str:
    """What the pages read and write is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def app(settings: Settings, database: Database) -> Flask:
    made = create_app(settings, database)
    made.testing = True
    return made


@pytest.fixture
def browser(app: Flask, database: Database) -> Browser:
    """An administrator, logged in."""
    return Browser(app, database)


@pytest.fixture
def example(database: Database) -> None:
    def add(session: Session) -> None:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "news", "example", schedule="0 3 * * *")

    database.run(add)


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


# --- who gets in


def test_nothing_is_open_but_what_is_named_here(app: Flask) -> None:
    client = app.test_client()
    for method in ("GET", "POST"):
        for path in paths(app, method):
            answer = client.open(filled(path), method=method)
            if path == "/metrics" and method == "GET":
                assert answer.status_code == 401, "programs read it, which follow no login"
            elif path in OPEN:
                assert answer.headers.get("Location", "") != "/login", path
            else:
                assert answer.status_code == 303, (method, path)
                assert answer.headers["Location"].startswith("/login"), path
    assert client.get("/nowhere").headers["Location"].startswith("/login")


def test_every_form_needs_its_token(browser: Browser, app: Flask) -> None:
    for path in paths(app, "POST"):
        answer = browser.client.post(filled(path))
        assert answer.status_code == 400, path
        assert "from another session" in answer.text


def test_every_action_asks_for_the_role_that_it_needs(app: Flask, database: Database, example: None) -> None:
    viewer = Browser(app, database, "viewer")
    free = {"/login", "/logout", "/setup/<token>", "/settings/theme", "/settings/zone", "/settings/password"}
    for path in paths(app, "POST"):
        if path not in free:
            assert viewer.post(filled(path)).status_code == 403, path
    for path in ("/", "/targets", "/targets/news", "/jobs", "/rate-keys/www.example.org", "/sites/example"):
        page = viewer.get(path)
        assert page.status_code == 200
        assert not re.findall(r'formaction="', page.text), path
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
        lambda s: access.set_password(s, "operator", "another password", by="test", now=clock.now(s))
    )
    database.run(lambda s: access.disable_user(s, "viewer", by="test", now=clock.now(s)))
    assert [browser.get("/").status_code for browser in browsers] == [303, 303, 303]


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


# --- what keeps a mistake from becoming a hole


def test_every_answer_has_the_headers(browser: Browser, app: Flask, example: None) -> None:
    for path in ("/", "/jobs", "/nowhere", "/login", "/static/ui.css", "/healthz"):
        headers = browser.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
    assert browser.get("/").headers["Cache-Control"] == "no-store"
    assert "immutable" in browser.get("/static/ui.css").headers["Cache-Control"]


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
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
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


# --- actions


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


# --- forms


def site_fields(**changed: str) -> dict[str, str]:
    return {
        "code": "example",
        "base_url": "http://www.example.org/",
        "adapter": "list",
        "timezone": "UTC",
        "obey_robots": "on",
        "http.verify_tls": "on",
        **changed,
    }


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("code", "Example", "is no code"),
        ("code", "", "is no code"),
        ("base_url", "www.example.org", "has no scheme"),
        ("base_url", "", "is missing"),
        ("timezone", "Mars/Olympus", "Mars/Olympus"),
        ("min_gap_sec", "soon", "is not a number"),
        ("min_gap_sec", "-1", "at least"),
        ("cooldown_sec", "1.5", "whole number"),
        ("rate_key", "a b", "is no rate key"),
        ("http.headers", "no colon", "has no colon"),
        ("http.timeout_sec", "0", "more than"),
        ("http.proxy", "nonsense", "proxy"),
    ],
)
def test_a_site_with_one_wrong_field_names_it_and_stores_nothing(
    browser: Browser, database: Database, field: str, value: str, message: str
) -> None:
    browser.get("/sites/new")
    answer = browser.post("/sites/new", **site_fields(**{field: value}))
    assert answer.status_code == 422
    wrong = wrong_fields(answer)
    assert list(wrong) == [field.replace(".", "-")]
    assert message in wrong[field.replace(".", "-")]
    with database.reading() as session:
        assert session.scalars(select(Site)).all() == []


def target_fields(**changed: str) -> dict[str, str]:
    return {
        "code": "news",
        "site": "example",
        "handler": "crawl",
        "enabled": "on",
        "params.list_url": "news/index_{page}.html",
        "params.item_selector": "ul.list a",
        **changed,
    }


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("code", "", "is no code"),
        ("site", "", "is missing"),
        ("site", "nowhere", "there is no site"),
        ("schedule", "0 25 * * *", "hour field"),
        ("schedule", "whenever", "field"),
        ("timezone", "Mars/Olympus", "Mars/Olympus"),
        ("interval_sec", "often", "is not a number"),
        ("interval_sec", "-1", "at least"),
        ("start_at", "tomorrow", "is no time"),
        ("retry.times", "1.5", "whole number"),
        ("tags", "a, a", "twice"),
        ("params.item_selector", "ul[", "is no CSS selector"),
        ("params.item_selector", "", "is required"),
        ("params.max_pages", "0", "greater than or equal to 1"),
        ("params.list_url", "news.html", "nothing leads to list page 2"),
        ("params.ignore_selectors", "ul[", "is no CSS selector"),
    ],
)
def test_a_target_with_one_wrong_field_names_it_and_stores_nothing(
    browser: Browser, database: Database, field: str, value: str, message: str
) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    answer = browser.post("/targets/new", **target_fields(**{field: value}))
    assert answer.status_code == 422
    wrong = wrong_fields(answer)
    name = field.replace(".", "-")
    assert list(wrong) == [name]
    assert message in wrong[name]
    assert 'value="news/index_{page}.html"' in answer.text or field == "params.list_url", (
        "what was typed is kept"
    )
    with database.reading() as session:
        assert session.scalars(select(Target)).all() == []


def test_all_wrong_fields_are_named_at_once_also_beside_what_is_no_number(
    browser: Browser, database: Database
) -> None:
    wrong_site = site_fields(code="Bad Code", base_url="www.example.org", min_gap_sec="soon")
    answer = browser.post("/sites/new", **wrong_site)
    assert answer.status_code == 422
    assert sorted(wrong_fields(answer)) == ["base_url", "code", "min_gap_sec"]

    assert browser.post("/sites/new", **site_fields(min_gap_sec="soon")).status_code == 422
    with database.reading() as session:
        assert session.scalars(select(Site)).all() == [], "the rest was right, and is not stored without it"

    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    wrong_target = target_fields(
        schedule="61 * * * *",
        interval_sec="often",
        **{"params.item_selector": "ul[", "params.max_pages": "many", "retry.times": "x"},
    )
    answer = browser.post("/targets/new", **wrong_target)
    assert answer.status_code == 422
    assert sorted(wrong_fields(answer)) == [
        "interval_sec",
        "params-item_selector",
        "params-max_pages",
        "retry-times",
        "schedule",
    ]


def test_a_target_is_added_changed_copied_and_deleted(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    added = browser.post(
        "/targets/new", **target_fields(tags="a, b", **{"params.ignore_selectors": ".date\n.ads"})
    )
    assert (added.status_code, added.headers["Location"]) == (303, "/targets/news")
    with database.reading() as session:
        target = session.get_one(Target, "news")
    assert (target.tags, target.params["ignore_selectors"]) == (["a", "b"], [".date", ".ads"])
    again = browser.post("/targets/new", **target_fields())
    assert again.status_code == 422
    assert "There is a target" in wrong_fields(again)["code"]

    form = browser.get("/targets/news/edit").text
    assert ".date\n.ads</textarea>" in form
    changed = browser.post("/targets/news/edit", **target_fields(schedule="0 3 * * *", owner="Ann"))
    assert changed.status_code == 303
    with database.reading() as session:
        target = session.get_one(Target, "news")
    assert (target.schedule, target.owner, target.next_tick_at is not None) == ("0 3 * * *", "Ann", True)

    assert 'value="0 3 * * *"' in browser.get("/targets/new?copy=news").text
    assert browser.post("/targets/news/delete").status_code == 200, "asks first"
    assert browser.post("/targets/news/delete", confirmed="yes").status_code == 303
    assert browser.get("/targets/news").status_code == 404


def test_the_form_of_a_target_and_the_keys_offer_every_site(browser: Browser, database: Database) -> None:
    """More than a page of anything holds."""

    def add(session: Session) -> None:
        for number in range(201):
            add_site(session, f"s{number:03}", f"http://s{number:03}.example.org/")

    database.run(add)
    form = browser.get("/targets/new").text
    assert all(f'<option value="s{number:03}"' in form for number in range(201))
    first = browser.get("/rate-keys").text
    assert "s199.example.org" in first
    assert "s200.example.org" not in first
    more = re.search(r'href="(/rate-keys\?cursor=[^"]+)"', first)
    assert more is not None
    assert "s200.example.org" in browser.get(more[1]).text
    assert browser.get("/rate-keys?cursor=%00").status_code == 400


def test_a_target_with_jobs_is_not_deleted(browser: Browser, example: None) -> None:
    browser.post("/targets/news/run")
    answer = browser.post("/targets/news/delete", confirmed="yes")
    assert answer.status_code == 409
    assert "so it is kept" in answer.text


def test_a_python_target_takes_arguments_as_json(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    fields = {
        "code": "py",
        "site": "example",
        "handler": "python",
        "enabled": "on",
        "params.function": "json:dumps",
    }
    assert browser.get("/targets/new?handler=python").status_code == 200
    broken = browser.post("/targets/new", **fields, **{"params.kwargs": "{obj: 1}"})
    assert "is no JSON" in wrong_fields(broken)["params-kwargs"]
    assert browser.post("/targets/new", **fields, **{"params.kwargs": '{"obj": [1, "x"]}'}).status_code == 303
    with database.reading() as session:
        assert session.get_one(Target, "py").params["kwargs"] == {"obj": [1, "x"]}


def test_a_preview_stores_nothing(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/", timezone="Asia/Shanghai"))
    answer = browser.post("/targets/new", **target_fields(schedule="0 3 * * *", preview="1"))
    assert answer.status_code == 200
    assert "At 03:00" in answer.text
    assert "+08:00" in answer.text
    with database.reading() as session:
        assert session.scalars(select(Target)).all() == []
    fragment = browser.get("/targets/preview?schedule=0+25+*+*+*&site=example")
    assert "hour field" in fragment.text
    assert "<html" not in fragment.text


def test_a_try_is_submitted_with_the_form(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    answer = browser.post("/targets/new", **target_fields(then="try"))
    with database.reading() as session:
        job = session.scalars(select(Job)).one()
    assert job.source == "try"
    assert answer.headers["Location"] == f"/jobs/{job.id}"


def test_what_a_try_found_is_shown_as_text(browser: Browser, example: None, database: Database) -> None:
    job = database.run(
        lambda s: running_job(
            s,
            "news",
            source="try",
            result={
                "list_url": "http://www.example.org/news",
                "links": [
                    {"url": "javascript:alert(1)", "text": HOSTILE},
                    {"url": "http://a.example/1", "text": "One"},
                ],
                "article": {
                    "url": "http://a.example/1",
                    "title": HOSTILE,
                    "text": "Words",
                    "published_at": None,
                },
            },
        )
    )
    page = browser.get(f"/jobs/{job.id}").text
    assert "2 links on the list page" in page
    assert 'href="javascript' not in page
    assert '<a href="http://a.example/1" rel="noreferrer noopener"' in page
    assert HOSTILE not in page


def test_a_job_shows_what_it_counted(browser: Browser, example: None, database: Database) -> None:
    job = database.run(
        lambda s: finished_job(
            s,
            "news",
            ago=timedelta(minutes=1),
            seconds=2,
            status="failed",
            error_msg="No link on list page 1",
            counters={"requests": 12, "bytes": 34567, "statuses": {"200": 11, "404": 1}},
            result={
                "pages": 2, "links": 31, "new": 0, "known": 0, "failed": 1, "links_on_page_1": 20,
                "failures": [f"HTTP 404 from {HOSTILE}"], "stopped_because": "known_pages", "kept_page": "a" * 64,
            },
        )
    )  # fmt: skip
    text = re.sub(r"<[^>]+>", " ", browser.get(f"/jobs/{job.id}").text)
    words = " ".join(text.split())
    assert "List pages 2 Links 31 New 0 Not fetched 1 Requests 12 Bytes 34,567" in words
    assert "Statuses 200: 11, 404: 1 Stopped because known pages" in words
    assert "Could not be fetched HTTP 404 from &lt;img" in words
    assert f'href="/kept/{"a" * 64}"' in browser.get(f"/jobs/{job.id}").text


# --- polls


def poll_of(browser: Browser, path: str) -> str:
    found = re.search(r'id="poll" hidden hx-get="([^"]+)"', browser.get(path).text)
    assert found is not None, path
    return found.group(1).replace("&amp;", "&")


LIVE_PAGES = (
    "/",
    "/targets",
    "/targets/news",
    "/jobs?status=queued",
    "/rate-keys",
    "/rate-keys/www.example.org",
    "/schedule",
    "/settings",
)


@pytest.mark.parametrize("path", LIVE_PAGES)
def test_a_poll_is_204_until_something_changes(
    browser: Browser, example: None, database: Database, path: str
) -> None:
    poll = poll_of(browser, path)
    nothing = browser.get(poll)
    assert (nothing.status_code, nothing.data) == (204, b"")
    database.run(lambda s: jobs.submit(s, "news", by="ann"))
    changed = browser.get(poll)
    assert changed.status_code == 200
    assert "<html" not in changed.text
    assert changed.text.count("<hx-partial") >= 2
    assert not re.findall(r"<(input|details|select|textarea|form)\b", changed.text), "polls change no control"
    again = re.search(r'hx-get="([^"]+)"', changed.text)
    assert again is not None
    assert browser.get(again.group(1).replace("&amp;", "&")).status_code == 204


def test_a_page_polls_often_while_something_runs(browser: Browser, example: None, database: Database) -> None:
    assert 'data-seconds="10"' in browser.get("/").text
    database.run(lambda s: running_job(s, "news"))
    page = browser.get("/").text
    assert 'data-seconds="2"' in page
    assert "<title>(1 running) Overview - webqueue</title>" in page


def test_the_filters_stay_in_the_poll(browser: Browser, example: None) -> None:
    assert poll_of(browser, "/jobs?status=queued&source=manual").startswith(
        "/jobs?status=queued&source=manual&live="
    )


def test_a_job_page_polls_only_new_log_lines(browser: Browser, database: Database) -> None:
    fill(database)
    with database.reading() as session:
        job = session.scalars(select(Job).where(Job.status == "running")).one()
    poll = poll_of(browser, f"/jobs/{job.id}")
    assert browser.get(poll).status_code == 204
    database.run(lambda s: log_lines(s, job, HOSTILE))
    changed = browser.get(poll).text
    assert len(re.findall(r'<li id="L', changed)) == 1
    assert "&lt;img src=x" in changed
    assert HOSTILE not in changed


# --- pages


def test_lists_of_fifty_jobs_are_small(browser: Browser, example: None, database: Database) -> None:
    def many(session: Session) -> None:
        for page in range(1, 61):
            jobs.submit(session, "news", by="ann", from_page=page)

    database.run(many)
    for path in ("/", "/jobs"):
        assert len(browser.get(path).data) < 60_000, path
    older = re.search(r'id="older" href="([^"]+)"', browser.get("/jobs").text)
    assert older is not None
    second = browser.get(older.group(1).replace("&amp;", "&")).text
    assert len(re.findall(r'<tr id="job-', second)) == 10
    assert 'id="newer"' in second


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?status=open",
        "/jobs?cursor=x",
        "/jobs?queued=1y",
        "/rate-keys?state=hot",
        "/targets?state=green",
    ],
)
def test_an_address_that_makes_no_sense_says_why(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 400
    assert "is n" in answer.text


def test_error_pages_name_the_request(browser: Browser) -> None:
    answer = browser.get("/nowhere")
    assert answer.status_code == 404
    assert answer.headers["X-Request-Id"] in answer.text


def test_a_fault_is_logged_and_told_without_details(
    app: Flask, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise RuntimeError("the secret of the fault")

    app.testing = False
    monkeypatch.setattr("webqueue.queries.counts", fault)
    answer = browser.get("/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
