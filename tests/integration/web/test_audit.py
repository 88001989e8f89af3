"""The page of the audit log: acts that open, filters in the address, CSV."""

from __future__ import annotations

import csv
import functools
import html
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import Update, update
from sqlalchemy.orm import Session

from tests.helpers.admin import add_site, add_target
from tests.helpers.browsing import Browser
from webqueue.database import Database
from webqueue.models import AuditEntry


@pytest.fixture
def changed(browser: Browser, database: Database) -> None:
    """Twelve targets of one site that got one schedule by one act, and then another owner for one of them."""
    database.run(lambda s: add_site(s, "example", "http://www.example.org/"))
    for number in range(12):
        database.run(functools.partial(add_target, code=f"news_{number:02}", site="example"))
    browser.post("/bulk/targets/schedule", all="1", schedule="15 4 * * *", confirmed="yes")
    browser.post("/bulk/targets/change", target="news_03", change="owner", value="Ann", confirmed="yes")


def row_of(page: str, words: str) -> str:
    """The row of the list in which these words stand."""
    return next(row for row in page.split("<tr")[1:] if words in row).partition("</tr>")[0]


def test_one_act_is_one_row_that_opens(browser: Browser, changed: None) -> None:
    page = browser.get("/settings/audit?action=changed").text
    assert page.count('<tr id="entry-') == 2
    act = row_of(page, "12 × target")
    assert "<summary>news_00, news_01, news_02 and 9 more</summary>" in act
    assert act.count("<b>schedule</b>: – → 15 4 * * *") == 10, "the first ones"
    assert act.count("/undo?alone=1") == 10
    assert 'aria-label="Undo: 12 objects"' in act
    every = re.search(r'<a href="([^"]+)">Show all 12</a>', act)
    assert every is not None
    opened = browser.get(every.group(1)).text
    assert opened.count('<tr id="entry-') == 12
    assert "one act" in opened
    one = re.search(r'href="([^"]+/undo\?alone=1)" aria-label="Undo: news_07"', opened)
    assert one is not None
    assert "Undo: 1 object?" in browser.get(one.group(1)).text


def test_a_pause_of_many_is_one_row_too(browser: Browser, changed: None) -> None:
    browser.post("/bulk/targets/pause", all="1", confirmed="yes")
    assert "12 × target" in row_of(browser.get("/settings/audit").text, "paused")


def _execute(session: Session, statement: Update) -> None:
    session.execute(statement)


def test_filters_stand_in_the_address_and_can_each_be_removed(
    browser: Browser, changed: None, database: Database
) -> None:
    page = browser.get("/settings/audit?by=admin&kind=target&name=news_03").text
    assert page.count('<tr id="entry-') == 2
    chips = re.findall(r'href="([^"]+)" aria-label="Remove the filter ([^"]+)"', page)
    assert [words for _, words in chips] == ["by admin", "target", "name news_03"]
    assert html.unescape(chips[1][0]) == "/settings/audit?by=admin&name=news_03"
    assert 'name="by" value="admin"' in page
    assert browser.get(html.unescape(chips[1][0])).text.count('<tr id="entry-') == 2
    assert "Nothing fits these filters." in browser.get("/settings/audit?by=eve").text
    # By the clock of the user, a day begins eight hours before it does in UTC.
    browser.post("/settings/zone", zone="Asia/Shanghai")
    late = datetime(2025, 3, 1, 16, 30, tzinfo=UTC)
    for name, at in (("news_05", late), ("news_06", late - timedelta(hours=1))):
        moved = update(AuditEntry).where(AuditEntry.object_name == name, AuditEntry.action == "changed")
        database.run(functools.partial(_execute, statement=moved.values(at=at)))
    assert "news_05" in browser.get("/settings/audit?since=2025-03-02&until=2025-03-02").text
    before = browser.get("/settings/audit?until=2025-03-01").text
    assert "news_06" in before
    assert "news_05" not in before
    for wrong in ("since=soon", "until=9999-99-99", "until=9999-12-31", "act=x", "cursor=x"):
        assert browser.get(f"/settings/audit?{wrong}").status_code == 400


def test_it_is_had_as_csv_with_its_filters(
    app: Flask, browser: Browser, changed: None, database: Database
) -> None:
    answer = browser.get("/settings/audit.csv?kind=target&action=changed")
    assert "attachment" in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.data.decode("utf-8-sig"), newline="")))
    assert len(rows) == 13, "each by itself"
    assert (rows[0]["name"], rows[0]["before"], rows[0]["after"]) == (
        "news_03",
        '{"owner": ""}',
        '{"owner": "Ann"}',
    )
    assert 'href="/settings/audit.csv?kind=target"' in browser.get("/settings/audit?kind=target").text
    assert Browser(app, database, "operator").get("/settings/audit.csv").status_code == 403
