"""Forms of sites and targets."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from tests.helpers.admin import (
    HOSTILE,
    add_site,
    finished_job,
    running_job,
)
from tests.helpers.browsing import Browser
from webqueue import config
from webqueue.database import Database
from webqueue.models import AuditEntry, Job, Site, Target


def wrong_fields(answer: TestResponse) -> dict[str, str]:
    """What a form says is wrong, by field."""
    return dict(re.findall(r'<p class="wrong" id="(?:f-)?([\w-]+)-wrong">([^<]+)</p>', answer.text))


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


def test_of_a_few_words_one_is_chosen(browser: Browser, database: Database) -> None:
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    page = LexborHTMLParser(browser.get("/targets/new?handler=http").text)
    methods = page.css("select#f-params-method option")
    assert [option.text() for option in methods] == ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    assert [option.text() for option in methods if "selected" in option.attributes] == ["GET"]
    fields = {
        "code": "hook",
        "site": "example",
        "handler": "http",
        "params.url": "/",
        "params.method": "POST",
    }
    assert browser.post("/targets/new", **fields, **{"params.keep": "document"}).status_code == 303
    with database.reading() as session:
        stored = session.get_one(Target, "hook").params
    assert (stored["method"], stored["keep"]) == ("POST", "document")
    page = LexborHTMLParser(browser.get("/targets/hook/edit").text)
    kept = page.css("select#f-params-keep option")
    assert [option.text() for option in kept if "selected" in option.attributes] == ["document"]


def test_the_page_on_which_something_is_changed_says_so(browser: Browser, example: None) -> None:
    for path, name in (("/targets/news/edit", "news"), ("/sites/example", "example")):
        page = browser.get(path).text
        assert f"<title>Edit {name} - webqueue</title>" in page
        assert f"<h1>Edit {name}</h1>" in page


def test_where_nothing_is_the_next_step_is_named(browser: Browser, database: Database) -> None:
    """A target needs a site; downloads of no documents are not offered."""
    page = LexborHTMLParser(browser.get("/targets").text)
    assert [link.attributes["id"] for link in page.css("main .primary")] == ["add-site"]
    assert page.css("#rows a[href='/sites/new']")
    page = LexborHTMLParser(browser.get("/documents").text)
    assert page.css(".empty a[href='/targets']")
    assert not page.css(".exports")
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    page = LexborHTMLParser(browser.get("/targets").text)
    assert [link.attributes["id"] for link in page.css("main .primary")] == ["add-target"]
    assert not page.css("#rows a[href='/sites/new']")


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
    browser.get("/targets/py")
    browser.post("/targets/py/run")
    with database.reading() as session:
        (job,) = session.scalars(select(Job.id))
    for path in ("/targets/py", f"/jobs/{job}"):
        written = [node.text() for node in LexborHTMLParser(browser.get(path).text).css("dd.mono")]
        assert '{"obj": [1, "x"]}' in written, path


def sent_as_shown(browser: Browser, path: str, **changed: str) -> TestResponse:
    """The form of a page as a browser sends it, with some fields changed."""
    form = LexborHTMLParser(browser.get(path).text).css_first("main form")
    assert form is not None
    fields: dict[str, str] = {}
    for field in form.css("input[name], select[name], textarea[name]"):
        told = field.attributes
        if told.get("type") in {"checkbox", "radio"} and "checked" not in told:
            continue
        chosen = field.css_first("option[selected]") or field.css_first("option")
        value = chosen.attributes.get("value") if field.tag == "select" and chosen else told.get("value")
        fields[str(told["name"])] = field.text() if field.tag == "textarea" else value or ""
    fields.pop("csrf_token", None)
    return browser.post(path, **{**fields, **changed})


def test_saving_a_form_changes_what_somebody_changed_and_nothing_else(
    browser: Browser, example: None, database: Database
) -> None:
    with database.reading() as session:
        before = config.target_data(session.get_one(Target, "news"))
    assert sent_as_shown(browser, "/targets/news/edit", note="Every night").status_code == 303
    with database.reading() as session:
        after = config.target_data(session.get_one(Target, "news"))
        entry = session.scalars(select(AuditEntry).where(AuditEntry.object_name == "news")).all()[-1]
    assert after == {**before, "note": "Every night"}
    assert entry.after == {"note": "Every night"}


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
