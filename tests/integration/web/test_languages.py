"""Pages speak English or Chinese: as their user chose, else as the browser says."""

from __future__ import annotations

import pytest
from flask import Flask
from sqlalchemy import select

from tests.helpers.browsing import Browser
from webqueue.database import Database
from webqueue.models import User

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}


@pytest.mark.parametrize(
    ("said", "tag"),
    [
        (None, "en"),
        ("", "en"),
        ("*", "en"),
        ("zh-CN", "zh-CN"),
        ("zh-CN,en;q=0.8", "zh-CN"),
        ("ZH-hans-cn;q=0.9, en;q=0.8", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("en-GB,zh-CN;q=0.9", "en"),
        ("fr-FR,zh;q=0.5,en;q=0.4", "zh-CN"),
        ("zh;q=0, fr", "en"),
        ("zhx-", "en"),
        ("de", "en"),
        (";;,=q=", "en"),
    ],
)
def test_the_login_speaks_the_language_of_the_browser(app: Flask, said: str | None, tag: str) -> None:
    headers = {} if said is None else {"Accept-Language": said}
    answer = app.test_client().get("/login", headers=headers)
    assert f'<html lang="{tag}"' in answer.text
    assert answer.headers["Content-Language"] == tag
    assert {"Accept-Language", "Cookie"} <= set(answer.vary)


def test_what_a_user_chose_weighs_more_than_the_browser(
    app: Flask, browser: Browser, database: Database
) -> None:
    assert '<html lang="zh-CN"' in browser.get("/settings", headers=CHINESE).text
    chosen = browser.post("/settings/language", language="en", headers=CHINESE)
    assert chosen.status_code == 303
    page = browser.get("/settings", headers=CHINESE).text
    assert '<html lang="en"' in page
    assert "The language is changed." in page
    browser.post("/settings/language", language="zh")
    page = browser.get("/settings").text
    assert '<html lang="zh-CN"' in page
    assert "语言已更改。" in page, "it is said in the new language"
    assert '<html lang="en"' in Browser(app, database, "viewer").get("/settings").text, "it is theirs alone"
    browser.post("/settings/language", language="", headers=CHINESE)
    assert "语言已更改。" in browser.get("/settings", headers=CHINESE).text
    assert '<html lang="en"' in browser.get("/settings").text
    with database.reading() as session:
        assert session.scalars(select(User.language).where(User.name == "admin")).one() is None


def test_a_language_that_pages_do_not_speak_is_refused(browser: Browser, database: Database) -> None:
    refused = browser.post("/settings/language", language="tlh")
    assert refused.status_code == 400
    assert "is none of en, zh" in refused.text
    with database.reading() as session:
        assert session.scalars(select(User.language)).one() is None


def test_choosing_leads_back_to_the_page_it_was_chosen_on(browser: Browser) -> None:
    back = {"Referer": "http://localhost/jobs?status=failed"}
    assert (
        browser.post("/settings/language", back, language="zh").headers["Location"] == "/jobs?status=failed"
    )
    elsewhere = {"Referer": "http://other.example/jobs"}
    assert browser.post("/settings/language", elsewhere, language="en").headers["Location"] == "/settings"


def test_a_poll_of_another_language_is_answered(browser: Browser) -> None:
    def poll_of(page: str) -> str:
        return page.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")

    path = poll_of(browser.get("/jobs").text)
    unchanged = browser.get(path)
    assert unchanged.status_code == 204
    assert "Accept-Language" in unchanged.vary
    assert browser.get(path, headers=CHINESE).status_code == 200


def test_programs_are_answered_in_english(browser: Browser) -> None:
    missing = browser.get("/api/v1/jobs/x", headers=CHINESE)
    assert missing.status_code == 404
    assert missing.json is not None
    assert missing.json["detail"] == "There is no job 'x'."
