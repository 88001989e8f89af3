"""What pages show, and how they are kept up to date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    HOSTILE,
    add_document,
    add_site,
    add_target,
    fill,
    finished_job,
    log_lines,
    running_job,
)
from tests.helpers.asking import counted_statements
from tests.helpers.browsing import Browser
from tests.helpers.world import Clock, World
from webqueue import clock, config, jobs
from webqueue.database import Database
from webqueue.models import Job, JobLog, Process
from webqueue.outcomes import Blocked, Done
from webqueue.scheduler import note_overbooked_keys


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


def test_an_unchanged_poll_asks_who_reads_and_for_one_version(
    browser: Browser, example: None, database: Database
) -> None:
    poll = poll_of(browser, "/")
    with counted_statements(database) as sent:
        assert browser.get(poll).status_code == 204
    assert len(sent) == 2, sent
    assert "sessions" in sent[0]
    assert "max(rate_keys.modified_at)" in sent[1]


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


def test_the_page_of_a_failed_job_tells_what_became_of_it(
    browser: Browser, example: None, database: Database
) -> None:
    failed = database.run(
        lambda s: finished_job(
            s, "news", ago=timedelta(minutes=5), seconds=3, status="failed", error_msg="away"
        )
    )
    poll = poll_of(browser, f"/jobs/{failed.id}")
    assert browser.get(poll).status_code == 204
    again = database.run(lambda s: jobs.retry(s, failed.id, by="ann"))
    changed = browser.get(poll)
    assert changed.status_code == 200
    assert f"#{again.seq}" in changed.text
    poll = poll_of(browser, f"/jobs/{failed.id}")
    database.run(lambda s: jobs.cancel(s, again.id, by="ann"))
    assert "Cancelled" in browser.get(poll).text, "the job that repeats it has ended"


def test_the_page_of_a_running_job_tells_that_everything_is_paused(
    browser: Browser, example: None, database: Database
) -> None:
    running = database.run(lambda s: running_job(s, "news"))
    poll = poll_of(browser, f"/jobs/{running.id}")
    assert browser.get(poll).status_code == 204
    database.run(lambda s: jobs.pause_all(s, by="ann"))
    assert "Resume all" in browser.get(poll).text


def test_a_sign_of_life_is_shown_without_anything_else_that_changed(
    browser: Browser, example: None, database: Database
) -> None:
    poll = poll_of(browser, "/settings")
    database.run(lambda s: s.execute(update(Process).values(heartbeat_at=Process.heartbeat_at)))
    assert browser.get(poll).status_code == 204
    database.run(lambda s: s.execute(update(Process).values(heartbeat_at=clock.now(s) + timedelta(hours=1))))
    assert 'id="health"' in browser.get(poll).text


def test_times_are_those_of_the_users_zone(browser: Browser, example: None, database: Database) -> None:
    """A day in Shanghai is another one in UTC: what was published at its midnight is of that day."""

    def add(session: Session) -> Job:
        job = finished_job(session, "news", ago=timedelta(minutes=5), seconds=3)
        log_lines(session, job, "a line")
        at = datetime(2026, 2, 28, 16, tzinfo=UTC)
        session.execute(update(JobLog).values(at=at))
        add_document(session, job, "http://www.example.org/1", "Notice", "text").published_at = at
        return job

    job = database.run(add)
    in_utc = browser.get("/documents").text
    assert "2026-02-28</td>" in in_utc
    assert browser.post("/settings/zone", zone="Asia/Shanghai").status_code == 303
    assert "2026-03-01</td>" in browser.get("/documents").text
    line = '<time datetime="2026-02-28T16:00:00Z" title="2026-03-01 00:00:00 +08:00">00:00:00</time>'
    assert line in browser.get(f"/jobs/{job.id}").text


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


def test_a_job_page_tells_what_became_of_a_block(browser: Browser, example: None, database: Database) -> None:
    world = World(database)
    with clock.replaced(moment := Clock()):
        world.submit("news")
        world.finish(blocked := world.claim_one(), Blocked("HTTP 429", retry_after=10))
        path = f"/jobs/{blocked.job.id}"
        assert "What happens next: it is repeated by itself as" in browser.get(path).text
        moment.advance(3600)
        again = world.claim_one()
        assert "by the job that runs" in browser.get("/rate-keys/www.example.org").text
        world.finish(again, Done())
        shown = browser.get(path).text
    assert "What happens next" not in shown
    happened = shown.partition("What happened next: ")[2].partition("</p>")[0]
    assert f'href="/jobs/{again.job.id}"' in happened
    assert "Done" in happened


def test_a_job_that_was_recovered_and_is_done_shows_no_error(
    browser: Browser, example: None, database: Database
) -> None:
    note = "restart_during_run (recovery attempt 1/3)"
    with database.transaction() as session:
        seqs = [
            finished_job(
                session, "news", ago=timedelta(hours=1), seconds=9, status=status, error_msg=note
            ).seq
            for status in ("done", "failed")
        ]
    rows = browser.get("/jobs").text.split("<tr ")
    done, failed = (next(row for row in rows if f">#{seq} news<" in row) for seq in seqs)
    assert note not in done
    assert note in failed
    assert note in browser.get("/jobs.csv").text


def test_a_filter_that_a_quick_one_names_is_not_named_again(browser: Browser, example: None) -> None:
    for path in ("/jobs?attention=1", "/jobs?status=queued", "/jobs?status=failed&finished=7d"):
        page = browser.get(path).text
        assert re.search(r'class="chip on"[^>]+aria-current="true"', page), path
        assert "Remove the filter" not in page, path
    page = browser.get("/jobs?status=failed&target=news").text
    assert page.count("Remove the filter") == 2
    assert 'class="chip on"' not in page


def test_a_waiting_job_names_the_one_before_it_once_and_leads_to_it(
    browser: Browser, example: None, database: Database
) -> None:
    first = database.run(lambda s: running_job(s, "news").id)
    second = database.run(lambda s: jobs.submit(s, "news", by="ann", force=True).id)
    why = re.search(r'<div id="why">(.*?)</div>', browser.get(f"/jobs/{second}").text, re.DOTALL)
    assert why is not None
    assert why.group(1).count("news</a>") == why.group(1).count("#1 news") == 1
    assert f'behind <a href="/jobs/{first}">#1 news</a>, which runs' in why.group(1)


def test_the_page_of_a_stuck_key_says_which_job_does_not_stop(
    browser: Browser, example: None, database: Database
) -> None:
    def hang(session: Session) -> Job:
        asked = clock.now(session) - timedelta(minutes=4)
        return running_job(
            session, "news", stop_requested=True, stop_requested_at=asked, stop_requested_by="ann"
        )

    job = database.run(hang)
    key = browser.get(f"/rate-keys/{job.rate_key}").text
    assert "<strong>Stuck:</strong>" in key
    assert "does not stop" in key
    assert "cancelling, but it does not stop" in browser.get("/").text


def test_a_running_job_tells_how_long_the_rest_takes(
    browser: Browser, example: None, database: Database
) -> None:
    job_id = database.run(lambda s: running_job(s, "news", progress_current=30, progress_total=90).id)
    left = re.search(r"about (\d+) min left", browser.get(f"/jobs/{job_id}").text)
    assert left is not None
    assert int(left.group(1)) == 12, "a third took six minutes"
    with database.transaction() as session:
        session.execute(update(Job).where(Job.id == job_id).values(from_page=31))
    assert " left" not in browser.get(f"/jobs/{job_id}").text, "it did not begin at the beginning"
    with database.transaction() as session:
        session.execute(update(Job).where(Job.id == job_id).values(from_page=0, current_page=2))
    page = browser.get(f"/jobs/{job_id}").text
    assert "30 of 90" in page
    assert " left" not in page, "that many are on one list page of a crawl, not in all of it"


def test_a_running_job_tells_its_time_once_a_row(browser: Browser, example: None, database: Database) -> None:
    """The overview has no column for it; the list of jobs has."""
    database.run(lambda s: running_job(s, "news", progress_current=30, progress_total=90))
    assert re.search(r'<span class="sub">30 of 90, 6 min[^<]*</span>', browser.get("/").text)
    assert re.search(r'<span class="sub">30 of 90, about 12 min left</span>', browser.get("/jobs").text)


def test_a_failed_job_names_the_page_it_goes_on_from_when_it_has_one(
    browser: Browser, example: None, database: Database
) -> None:
    def failed_after(pages: int) -> str:
        return database.run(
            lambda s: (
                finished_job(
                    s, "news", ago=timedelta(minutes=5), seconds=3, status="failed", last_completed_page=pages
                ).id
            )
        )

    assert "then press Run again; it goes on from page 4." in browser.get(f"/jobs/{failed_after(3)}").text
    assert "then press Run again.</p>" in browser.get(f"/jobs/{failed_after(0)}").text


def test_the_page_of_a_paused_target_says_that_its_next_runs_will_not_be(
    browser: Browser, example: None, database: Database
) -> None:
    poll = poll_of(browser, "/targets/news")
    database.run(lambda s: config.pause_target(s, "news", by="bob", now=clock.now(s)))
    paused = "<strong>Paused</strong> by bob. Its schedule starts nothing until it is resumed"
    assert paused in browser.get("/targets/news").text
    assert paused in browser.get(poll).text
    browser.post("/targets/news/resume")
    assert "Its schedule starts nothing" not in browser.get("/targets/news").text


def test_the_runs_of_a_target_are_told_in_words(browser: Browser, example: None, database: Database) -> None:
    database.run(lambda s: finished_job(s, "news", ago=timedelta(hours=2), seconds=31))
    assert '<span class="sub">The last run took 31 s</span>' in browser.get("/targets/news").text
    database.run(lambda s: finished_job(s, "news", ago=timedelta(hours=1), seconds=20))
    assert "The last 2 runs, oldest first; the longest took 31 s" in browser.get("/targets/news").text


def test_a_retry_tells_which_attempt_it_is(browser: Browser, example: None, database: Database) -> None:
    world = World(database)
    with clock.replaced(moment := Clock()):
        world.submit("news")
        first = world.claim_one()
        world.finish(first, Blocked("HTTP 429", retry_after=10))
        moment.advance(3600)
        second = world.claim_one()
        assert "Attempt 2 of 13:" in browser.get(f"/jobs/{second.job.id}").text
        assert "Attempt" not in browser.get(f"/jobs/{first.job.id}").text


def test_a_target_tells_administrators_who_changed_it(app: Flask, example: None, database: Database) -> None:
    admin, viewer = (Browser(app, database, role) for role in ("admin", "viewer"))
    database.run(lambda s: config.pause_target(s, "news", by="bob", now=clock.now(s)))
    shown = admin.get("/targets/news").text
    changes = shown.partition('id="edits-title"')[2].partition("</table>")[0]
    assert "bob" in changes
    assert "paused" in changes
    assert "/settings/audit?kind=target&amp;name=news" in shown
    assert "edits-title" not in viewer.get("/targets/news").text, "the audit log is not theirs"


def test_a_key_booked_for_more_than_a_day_is_told_with_the_targets_that_book_it(
    browser: Browser, example: None, database: Database
) -> None:
    seven_hours = 7 * 3600
    page = browser.get("/rate-keys/www.example.org").text
    assert "nothing yet: no target with a schedule has run" in page

    def add(session: Session) -> None:
        add_target(session, "archive", "example", schedule="0 */6 * * *")
        finished_job(session, "archive", ago=timedelta(hours=1), seconds=seven_hours)

    database.run(add)
    overview = poll_of(browser, "/")
    note_overbooked_keys(database)
    changed = browser.get(overview)
    assert "1 rate key is booked for more hours than a day has." in changed.text, "an open page tells it too"
    assert "www.example.org: about 28 h of runs a day." in changed.text
    page = browser.get("/rate-keys/www.example.org").text
    assert re.search(r"archive</a>: 1 d 4 h a day; a run usually takes 7 h", page)

    database.run(lambda s: add_target(s, "archive", "example", schedule="0 */12 * * *"))
    note_overbooked_keys(database)
    assert "booked for more" not in browser.get("/").text
    page = browser.get("/rate-keys/www.example.org").text
    assert "14 h of runs a day" in page
    assert "booked for more" not in page


def test_a_page_has_at_most_one_primary_button(browser: Browser, example: None, database: Database) -> None:
    def pause(session: Session) -> None:
        add_site(session, "other", "http://other.example.org/")
        for key in ("www.example.org", "other.example.org"):
            jobs.pause_key(session, key, by="ann")

    database.run(pause)
    for path in (
        "/",
        "/rate-keys",
        "/rate-keys/www.example.org",
        "/targets",
        "/targets/news",
        "/jobs",
        "/sites",
    ):
        assert len(re.findall(r'class="[^"]*\bprimary\b', browser.get(path).text)) <= 1, path
