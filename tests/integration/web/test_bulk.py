"""Many jobs or targets at once, by plain forms, and the list as CSV."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from tests.helpers.admin import add_site, add_target, add_worker, finished_job
from tests.helpers.browsing import Browser
from webqueue import clock, config, jobs, queries
from webqueue.database import Database
from webqueue.models import AuditEntry, Job, Target
from webqueue.queries.csv_lines import csv_line, harmless
from webqueue.web import target_bulk


@pytest.fixture
def five(database: Database) -> None:
    """Five targets on one site."""

    def add(session: Session) -> None:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        for number in range(5):
            add_target(session, f"news_{number}", "example", schedule="0 3 * * *", note="even" * (number % 2))

    database.run(add)


def submit_all(database: Database) -> None:
    database.run(lambda s: [jobs.submit(s, f"news_{number}", by="ann") for number in range(5)])


def statuses(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(Job.status).order_by(Job.seq)))


def confirmed(browser: Browser, asked: TestResponse) -> TestResponse:
    """Press the button of the page that asks."""
    assert asked.status_code == 200
    action = re.search(r'<form method="post" action="([^"]+)" class="buttons">', asked.text)
    assert action is not None, asked.text
    fields: dict[str, list[str]] = {}
    form = asked.text[action.start() : asked.text.index("</form>", action.start())]
    for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form):
        fields.setdefault(name, []).append(value)
    return browser.client.post(action.group(1), data=fields)


def test_the_page_that_asks_says_nothing_twice_and_warns_only_of_what_is_lost(
    browser: Browser, five: None, database: Database
) -> None:
    submit_all(database)
    for path, fields, shown, look in (
        ("targets/pause", {"target": "news_1"}, "news_1.", "primary"),
        ("targets/run", {"all": "1"}, "They are news_0, news_1, news_2 and 2 more.", "primary"),
        ("jobs/cancel", {"all": "1"}, "They are #1 news_0, #2 news_1, #3 news_2 and 2 more.", "danger"),
    ):
        asked = browser.post(f"/bulk/{path}", **fields).text
        assert f"</h1>\n<p>{shown}</p>" in asked, path
        assert f'<button class="{look}" id="confirm-button">' in asked, path


def test_the_ticked_jobs_are_cancelled_after_the_count_was_named(
    browser: Browser, five: None, database: Database
) -> None:
    submit_all(database)
    page = browser.get("/jobs?select=1").text
    ticks = re.findall(r'name="job" value="(\w+)"', page)
    assert len(ticks) == 5
    asked = browser.post("/bulk/jobs/cancel", job=ticks[:2])
    assert "Cancel: 2 jobs" in asked.text
    assert statuses(database) == ["queued"] * 5
    assert confirmed(browser, asked).status_code == 303
    assert statuses(database) == ["queued"] * 3 + ["cancelled"] * 2
    assert "2 jobs cancelled." in browser.get("/jobs").text


def test_all_that_match_are_those_of_the_question(browser: Browser, five: None, database: Database) -> None:
    submit_all(database)
    asked = browser.post("/bulk/jobs/cancel", all="1", target="news_1")
    assert "Cancel: 1 job" in asked.text
    all_asked = browser.post("/bulk/jobs/cancel", all="1", status="queued")
    assert "Cancel: 5 jobs" in all_asked.text
    database.run(lambda s: jobs.submit(s, "news_0", by="bob", from_page=7))
    confirmed(browser, all_asked)
    assert statuses(database) == ["cancelled"] * 5 + ["queued"], "the job that came later was not asked about"


def test_failed_jobs_run_again_and_the_others_are_left(
    browser: Browser, five: None, database: Database
) -> None:
    def history(session: Session) -> None:
        for number in range(3):
            finished_job(session, f"news_{number}", ago=jobs_ago(number), seconds=3, status="failed")
        finished_job(session, "news_3", ago=jobs_ago(4), seconds=3)

    database.run(history)
    asked = browser.post("/bulk/jobs/retry", all="1", finished="7d")
    assert "Run again: 3 jobs" in asked.text
    assert "The other 1 is left alone: its state does not allow it." in asked.text
    assert confirmed(browser, asked).status_code == 303
    assert statuses(database) == ["failed"] * 3 + ["done"] + ["queued"] * 3
    again = confirmed(browser, browser.post("/bulk/jobs/retry", all="1", status="failed"))
    assert again.status_code == 303
    assert statuses(database).count("queued") == 3, "equal jobs stand already"
    assert "3 jobs not queued, an equal job stands already" in browser.get("/jobs").text


def jobs_ago(hours: int) -> timedelta:
    return timedelta(hours=hours + 1)


def test_nothing_chosen_is_said(browser: Browser, five: None) -> None:
    assert browser.post("/bulk/targets/change", change="params", value="x", all="1").status_code == 400
    assert browser.post("/bulk/targets/change", change="owner", value="x").status_code == 409
    assert browser.post("/bulk/jobs/cancel").status_code == 409
    assert browser.post("/bulk/targets/run").status_code == 409
    assert browser.post("/bulk/jobs/cancel", all="1", status="open").status_code == 400
    assert browser.post("/bulk/jobs/cancel", all="1", up_to="x").status_code == 400


def test_a_schedule_that_cannot_be_read_keeps_no_other_from_going_on(
    browser: Browser, database: Database, five: None
) -> None:
    database.run(
        lambda s: config.pause_targets(s, ["news_0", "news_1", "news_2"], by="ann", now=clock.now(s))
    )
    with database.transaction() as session:
        session.execute(update(Target).where(Target.code == "news_1").values(timezone="Mars/Olympus"))
    answer = confirmed(browser, browser.post("/bulk/targets/resume", target=["news_0", "news_1", "news_2"]))
    assert answer.status_code == 303
    page = browser.get("/targets").text
    assert "2 targets resumed" in page
    assert "1 target refused (" in page
    assert "Mars/Olympus" in page
    with database.reading() as session:
        still = session.scalars(select(Target.code).where(Target.paused_at.is_not(None)))
        assert list(still) == ["news_1"]


def test_targets_are_run_paused_and_resumed_together(
    browser: Browser, five: None, database: Database
) -> None:
    page = browser.get("/targets?select=1&q=even").text
    assert '<input type="hidden" name="select" value="1">' in page, (
        "another filter does not end the selecting"
    )
    assert 'name="select"' not in browser.get("/targets?q=even").text
    assert "All 2 that match" in page
    asked = browser.post("/bulk/targets/run", all="1", q="even")
    assert "Run now: 2 targets" in asked.text
    confirmed(browser, asked)
    assert statuses(database) == ["queued"] * 2
    confirmed(browser, browser.post("/bulk/targets/run", target=["news_0", "news_1"]))
    assert "1 target has a job already" in browser.get("/targets").text
    confirmed(browser, browser.post("/bulk/targets/pause", all="1"))
    with database.reading() as session:
        assert all(session.scalars(select(Target.paused_by)).all())
    confirmed(browser, browser.post("/bulk/targets/resume", target=["news_0", "news_4"]))
    with database.reading() as session:
        resumed = session.scalars(select(Target.code).where(Target.paused_at.is_(None)).order_by(Target.code))
        assert list(resumed) == ["news_0", "news_4"]


def test_a_schedule_is_given_to_all_or_to_none(browser: Browser, five: None, database: Database) -> None:
    wrong = browser.post("/bulk/targets/schedule", all="1", schedule="0 26 * * *")
    assert wrong.status_code == 422
    assert "Nothing was changed" in wrong.text
    right = confirmed(browser, browser.post("/bulk/targets/schedule", all="1", schedule="15 4 * * *"))
    assert right.status_code == 303
    with database.reading() as session:
        targets = session.scalars(select(Target)).all()
        assert {target.schedule for target in targets} == {"15 4 * * *"}
        assert {target.next_tick_at.minute for target in targets if target.next_tick_at} == {15}
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "changed")).all()
        assert [entry.after for entry in entries] == [{"schedule": "15 4 * * *"}] * 5
    confirmed(browser, browser.post("/bulk/targets/schedule", target="news_2", schedule=""))
    with database.reading() as session:
        assert session.get_one(Target, "news_2").schedule is None


def fields_of(database: Database, name: str) -> list[object]:
    with database.reading() as session:
        return [getattr(target, name) for target in session.scalars(select(Target).order_by(Target.code))]


def test_owner_note_interval_and_tags_are_changed_together(
    browser: Browser, five: None, database: Database
) -> None:
    def change(what: str, value: str, **chosen: str | list[str]) -> TestResponse:
        asked = browser.post("/bulk/targets/change", change=what, value=value, **(chosen or {"all": "1"}))
        return confirmed(browser, asked) if asked.status_code == 200 else asked

    asked = browser.post("/bulk/targets/change", change="owner", value="press office", all="1", q="even")
    assert "Set owner: press office?" in asked.text
    assert "Change 2 targets" in asked.text
    confirmed(browser, asked)
    assert fields_of(database, "owner") == ["", "press office", "", "press office", ""]
    assert re.search(r'2 targets changed, 0 as before\. <a href="[^"]+/undo">', browser.get("/targets").text)
    assert "<b>owner</b>: – → press office" in browser.get("/settings/audit").text
    change("add_tag", "新闻", target=["news_0", "news_1"])
    change("add_tag", "daily")
    change("add_tag", "daily")
    assert "0 targets changed, 5 as before." in browser.get("/targets").text
    assert fields_of(database, "tags") == [
        ["新闻", "daily"],
        ["新闻", "daily"],
        ["daily"],
        ["daily"],
        ["daily"],
    ]
    assert "All 2 that match" in browser.get("/targets?select=1&q=新闻").text, "tags are searched"
    change("remove_tag", "daily", q="新闻", all="1")
    assert fields_of(database, "tags") == [["新闻"], ["新闻"], ["daily"], ["daily"], ["daily"]]
    change("add_tag", "law, press,", target="news_4")
    assert fields_of(database, "tags")[4] == ["daily", "law", "press"], "as the form of a target reads them"
    change("remove_tag", "law, press", target="news_4")
    assert fields_of(database, "tags")[4] == ["daily"]
    change("interval_sec", "2.5", target="news_3")
    assert fields_of(database, "interval_sec") == [10, 10, 10, 2.5, 10]
    change("note", "")
    assert fields_of(database, "note") == [""] * 5
    with database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "changed")).first()
    assert entry is not None
    assert (entry.before, entry.after) == ({"owner": ""}, {"owner": "press office"})


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("interval_sec", "soon", "Nothing was changed."),
        ("interval_sec", "-1", "must be at least 0, not -1"),
        ("add_tag", "", "the new value is empty"),
        ("add_tag", "x" * 500, "Nothing was changed."),
        ("owner", "two\nlines", "Nothing was changed."),
    ],
)
def test_what_one_target_cannot_be_is_given_to_none(
    browser: Browser, five: None, database: Database, what: str, value: str, said: str
) -> None:
    before = [fields_of(database, name) for name in ("interval_sec", "tags", "owner")]
    answer = browser.post("/bulk/targets/change", change=what, value=value, all="1")
    assert answer.status_code == 422, "before anything is asked"
    assert said in answer.text
    assert [fields_of(database, name) for name in ("interval_sec", "tags", "owner")] == before


def test_what_is_refused_keeps_the_ticks_and_what_was_written(browser: Browser, five: None) -> None:
    ticked = {"target": ["news_1", "news_3"], "q": "even", "change": "add_tag", "value": "law"}
    wrong = browser.post("/bulk/targets/schedule", schedule="0 26 * * *", **ticked)
    assert wrong.status_code == 422
    assert '<p class="wrong" id="bulk-schedule-wrong">Nothing was changed.' in wrong.text
    assert re.search(r'name="schedule" value="0 26 \* \* \*"[^>]* aria-invalid="true"', wrong.text)
    assert re.findall(r'name="target" value="(\w+)"[^>]* checked', wrong.text) == ["news_1", "news_3"]
    assert '<option value="add_tag" selected>' in wrong.text
    assert 'name="value" value="law"' in wrong.text
    assert 'name="q" value="even"' in wrong.text
    assert "hx-get" not in wrong.text, "its address takes forms only"
    every = browser.post("/bulk/targets/change", change="interval_sec", value="soon", all="1", q="even").text
    assert '<p class="wrong" id="bulk-value-wrong">Nothing was changed.' in every
    assert 'id="all-matching" checked' in every
    elsewhere = browser.post("/bulk/targets/schedule", schedule="x", target="news_0", q="even").text
    assert re.search(r'name="target" value="news_0" checked', elsewhere), "though the filter does not show it"
    nothing = browser.post("/bulk/targets/change", change="owner", value="Ann")
    assert nothing.status_code == 409
    assert "No target is chosen" in nothing.text
    assert 'name="value" value="Ann"' in nothing.text


def test_what_only_some_targets_cannot_be_names_them(
    browser: Browser, five: None, database: Database
) -> None:
    many = [f"tag{number}" for number in range(50)]
    database.run(lambda s: s.execute(update(Target).where(Target.code == "news_3").values(tags=many)))
    answer = browser.post("/bulk/targets/change", change="add_tag", value="law", all="1")
    assert answer.status_code == 422
    assert "has more than 50 entries (news_3)" in answer.text
    soon = browser.post("/bulk/targets/change", change="interval_sec", value="-1", all="1").text
    assert "must be at least 0, not -1.0</p>" in soon, "it is the value that is wrong, with each"


def test_what_cannot_be_any_more_after_the_question_is_refused_with_the_choice_kept(
    browser: Browser, five: None, database: Database
) -> None:
    asked = browser.post("/bulk/targets/change", change="add_tag", value="law", all="1")
    many = [f"tag{number}" for number in range(50)]
    database.run(lambda s: s.execute(update(Target).where(Target.code == "news_3").values(tags=many)))
    answer = confirmed(browser, asked)
    assert answer.status_code == 422
    assert "has more than 50 entries (news_3)" in answer.text
    assert 'id="all-matching" checked' in answer.text
    assert fields_of(database, "tags") == [[], [], [], many, []]


@pytest.mark.parametrize("change", ["pause", "run", "change"])
def test_exactly_the_targets_of_the_question_are_taken(
    browser: Browser, five: None, database: Database, change: str
) -> None:
    fields = {"change": "owner", "value": "Ann"} if change == "change" else {}
    asked = browser.post(f"/bulk/targets/{change}", all="1", q="even", **fields)
    assert "2 targets" in asked.text

    def meanwhile(session: Session) -> None:
        add_target(session, "news_5", "example", note="even")
        add_target(session, "news_6", "example", note="even")
        session.execute(update(Target).where(Target.code == "news_1").values(note="odd"))
        config.delete_target(session, "news_3", by="bob", now=clock.now(session))

    database.run(meanwhile)
    assert confirmed(browser, asked).status_code == 303
    told = browser.get("/targets").text
    assert "1 target is gone" in told
    assert "2 more match now and were left out" in told
    with database.reading() as session:
        touched = {
            "pause": select(Target.code).where(Target.paused_at.is_not(None)),
            "run": select(Job.target_code),
            "change": select(Target.code).where(Target.owner == "Ann"),
        }[change]
        assert list(session.scalars(touched)) == ["news_1"], "it was asked about, though it matches no more"


def test_what_is_not_taken_at_once_is_told(
    browser: Browser, five: None, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_TARGETS", 3)
    asked = browser.post("/bulk/targets/pause", all="1")
    assert "Pause: 3 targets" in asked.text
    assert "More than 3 are not taken at once: 2 that match are left out." in asked.text
    confirmed(browser, asked)
    told = browser.get("/targets").text
    assert "3 targets paused." in told
    assert "more match now" not in told, "they did before"


def test_a_pause_of_many_is_one_act_in_short_transactions(
    browser: Browser, five: None, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_bulk, "AT_ONCE", 2)
    confirmed(browser, browser.post("/bulk/targets/pause", all="1"))
    with database.reading() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "paused")).all()
    assert [entry.object_name for entry in entries] == [f"news_{number}" for number in range(5)]
    assert len({entry.at for entry in entries}) == 1


def test_operators_set_no_schedules(app: Flask, database: Database, five: None) -> None:
    operator = Browser(app, database, "operator")
    assert operator.post("/bulk/targets/schedule", all="1", schedule="0 4 * * *").status_code == 403
    assert operator.post("/bulk/targets/change", all="1", change="owner", value="x").status_code == 403
    assert operator.post("/bulk/targets/run", all="1").status_code == 200
    assert "bulk-schedule" not in operator.get("/targets?select=1").text


def test_the_rows_stand_still_while_some_are_ticked(browser: Browser, five: None, database: Database) -> None:
    page = browser.get("/jobs?select=1").text
    poll = re.search(r'hx-get="([^"]+)"', page)
    assert poll is not None
    submit_all(database)
    changed = browser.get(poll.group(1).replace("&amp;", "&")).text
    assert 'hx-target="#rows"' not in changed
    assert "<input" not in changed


# --- CSV


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\u3000=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"
    assert next(csv.reader(io.StringIO(csv_line(["a", cell, "b"]), newline=""))) == ["a", f"'{cell}", "b"]


def test_other_cells_stay(database: Database) -> None:
    assert harmless("news_1") == "news_1"
    assert harmless("2026-11-29T16:00:00+00:00") == "2026-11-29T16:00:00+00:00"


def test_the_list_is_had_as_csv_with_its_filters(browser: Browser, five: None, database: Database) -> None:
    submit_all(database)
    database.run(
        lambda s: finished_job(
            s, "news_1", ago=jobs_ago(1), seconds=2.5, status="failed", error_msg='=HYPERLINK("x"),\n"y"'
        )
    )
    database.run(lambda s: s.execute(update(Job).where(Job.seq == 1).values(created_by="@ann")))
    answer = browser.get("/jobs.csv?target=news_1")
    assert answer.mimetype == "text/csv"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert answer.data.startswith(b"\xef\xbb\xbfseq,id,status,"), (
        "by it a spreadsheet knows that this is UTF-8"
    )
    rows = list(csv.DictReader(io.StringIO(answer.data.decode("utf-8-sig"), newline="")))
    assert [row["seq"] for row in rows] == ["6", "2"]
    assert rows[0]["error_msg"] == '\'=HYPERLINK("x"),\n"y"'
    assert rows[0]["running_for_sec"] == "2.5"
    assert rows[1]["error_msg"] == ""
    whole = list(csv.DictReader(io.StringIO(browser.get("/jobs.csv").data.decode("utf-8-sig"), newline="")))
    assert len(whole) == 6
    assert whole[-1]["created_by"] == "'@ann"
    assert browser.get("/jobs.csv?status=open").status_code == 400
