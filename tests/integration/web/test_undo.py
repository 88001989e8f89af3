"""Undo: offered where something was changed or deleted, asked once, and only for who may configure."""

from __future__ import annotations

import html
import re

import pytest
from flask import Flask
from sqlalchemy import select, update

from tests.helpers.admin import add_target
from tests.helpers.browsing import Browser
from webqueue.database import Database
from webqueue.models import AuditEntry, Target


def undo_in(text: str) -> str:
    """Where the sentence of the last action leads."""
    found = re.search(r'class="toast good">[^<]*<a href="([^"]+/undo)">Undo</a>', text)
    assert found is not None, text
    return found.group(1)


def schedule_of(database: Database, code: str = "news") -> str | None:
    with database.reading() as session:
        return session.scalar(select(Target.schedule).where(Target.code == code))


def edited(browser: Browser) -> str:
    """Another schedule is saved; the page after it."""
    browser.get("/targets/news/edit")
    saved = browser.post(
        "/targets/news/edit",
        handler="crawl",
        site="example",
        schedule="0 6 * * *",
        enabled="1",
        **{"params.list_url": "news/index_{page}.html", "params.item_selector": "ul.list a"},
    )
    assert saved.status_code == 303
    return browser.get(saved.location).text


def test_an_edit_is_taken_back_from_the_sentence_that_tells_of_it(
    browser: Browser, example: None, database: Database
) -> None:
    where = undo_in(edited(browser))
    question = browser.get(where)
    assert "Undo: 1 object?" in question.text
    assert "It gets back what it had." in question.text
    assert "0 6 * * * → 0 3 * * *" in question.text
    assert question.text.index("confirm-button") < question.text.index("<tbody>"), "a hundred rows may follow"
    assert schedule_of(database) == "0 6 * * *", "nothing is done before the answer"
    done = browser.post(where, next="/targets/news")
    assert (done.status_code, done.location) == (303, "/targets/news")
    assert schedule_of(database) == "0 3 * * *"
    assert "1 object is as it was before." in browser.get("/targets/news").text


def test_an_edit_that_changed_nothing_offers_no_undo(
    browser: Browser, example: None, database: Database
) -> None:
    edited(browser)
    assert "/undo" not in edited(browser).partition('id="status"')[2]


@pytest.mark.parametrize("page", ["/targets/news", "/settings/audit"])
def test_each_change_of_the_lists_has_its_undo(
    browser: Browser, example: None, database: Database, page: str
) -> None:
    edited(browser)
    links = re.findall(r'href="(/settings/audit/\d+/undo)(?:\?alone=1)?"', browser.get(page).text)
    assert len(links) == 1, "what was created is not undone but deleted"
    browser.post(links[0])
    again = browser.post(links[0])
    assert again.status_code == 409
    assert "changed again since" in again.text
    assert "Nothing to undo" in browser.get(links[0]).text


@pytest.mark.parametrize(("path", "kind"), [("/targets/news", "target"), ("/sites/example", "site")])
def test_what_was_deleted_comes_back(
    browser: Browser, example: None, database: Database, path: str, kind: str
) -> None:
    browser.get(f"{path}/edit" if kind == "target" else path)
    gone = browser.post(f"{path}/delete", confirmed="yes")
    where = undo_in(browser.get(gone.location).text)
    assert schedule_of(database) is None
    assert "deleted, comes back" in browser.get(where).text
    assert browser.post(where).status_code == 303
    assert schedule_of(database) == "0 3 * * *"


def test_one_object_of_many_is_taken_back_alone_from_its_own_page(
    browser: Browser, example: None, database: Database
) -> None:
    database.run(lambda s: add_target(s, "other", "example", schedule="0 5 * * *"))
    browser.post("/bulk/targets/schedule", all="1", schedule="15 4 * * *", confirmed="yes")
    [link] = re.findall(r'href="(/settings/audit/\d+/undo\?alone=1)"', browser.get("/targets/news").text)
    question = browser.get(link).text
    assert "Undo: 1 object?" in question
    assert "It was changed together with 1 other, which stays as it is." in question
    both = re.search(r'id="undo-all" href="([^"]+)"', question)
    assert both is not None
    whole = browser.get(html.unescape(both.group(1))).text
    assert "Undo: 2 objects?" in whole
    assert "Undo only news" in whole
    assert browser.post(link.partition("?")[0], alone="1").status_code == 303
    assert (schedule_of(database), schedule_of(database, "other")) == ("0 3 * * *", "15 4 * * *")
    browser.post(link.partition("?")[0])
    assert schedule_of(database, "other") == "0 5 * * *"
    assert "1 object was changed again since, and is left as it is: news." in browser.get("/targets").text


def test_what_cannot_be_as_it_was_is_told_before_it_is_asked(
    browser: Browser, example: None, database: Database
) -> None:
    where = undo_in(edited(browser))
    wrong = {"schedule": "0 99 * * *"}
    database.run(
        lambda s: s.execute(update(AuditEntry).where(AuditEntry.action == "changed").values(before=wrong))
    )
    question = browser.get(where)
    assert question.status_code == 409
    assert "Nothing was changed." in question.text


def test_only_who_may_configure_takes_back(
    app: Flask, browser: Browser, example: None, database: Database
) -> None:
    where = undo_in(edited(browser))
    for role in ("viewer", "operator"):
        other = Browser(app, database, role)
        assert other.get(where).status_code == 403
        assert other.post(where).status_code == 403
    assert schedule_of(database) == "0 6 * * *"
