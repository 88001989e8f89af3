"""The log on a job's page: levels, words, the way back to earlier lines, and links to single ones."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from tests.helpers.admin import HOSTILE, add_site, add_target, finished_job, log_lines
from tests.helpers.browsing import Browser
from webqueue import queries
from webqueue.database import Database
from webqueue.models import Job
from webqueue.queries.logs import LINES_AROUND


@pytest.fixture
def job(database: Database) -> Job:
    """A job with 300 lines, a warning, an error, and another job's line in between."""

    def make(session: Session) -> Job:
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "news", "example")
        other = finished_job(session, "news", ago=timedelta(hours=2), seconds=1)
        made = finished_job(session, "news", ago=timedelta(hours=1), seconds=1)
        log_lines(session, made, *(f"List page {number}: 20 links" for number in range(1, 151)))
        log_lines(session, other, "of another job")
        log_lines(session, made, "100 % of 20_links", level="warning")
        log_lines(session, made, *(f"List page {number}: 20 links" for number in range(151, 301)))
        log_lines(session, made, HOSTILE, level="error")
        return made

    return database.run(make)


def messages(page: str) -> list[str]:
    return re.findall(r'<span class="msg">([^<]*)</span>', page)


def test_lines_by_level_and_by_what_they_say(browser: Browser, job: Job) -> None:
    def shown(**query: str) -> list[str]:
        return messages(browser.get(f"/jobs/{job.id}", query_string=query).text)

    harmless = "&lt;img src=x onerror=alert(1)&gt;"
    assert shown(level="error") == [harmless]
    assert shown(level="warning") == ["100 % of 20_links", harmless]
    assert shown(q="PAGE 17:") == ["List page 17: 20 links"]
    assert shown(q="% of 20_") == ["100 % of 20_links"], "a wildcard of SQL is a character like others"
    assert shown(q="of another job") == []
    assert "No line fits." in browser.get(f"/jobs/{job.id}", query_string={"q": "nowhere"}).text
    assert len(shown(level="loud")) == 200, "an unknown level shows all"
    assert shown(q="x" * 5_000 + "\0") == []


def test_earlier_lines_can_be_reached_to_the_first(browser: Browser, job: Job) -> None:
    page = browser.get(f"/jobs/{job.id}").text
    seen = set(messages(page))
    for _ in range(4):
        if (earlier := re.search(r'id="log-earlier" href="([^"]+)"', page)) is None:
            break
        page = browser.get(earlier[1].partition("#")[0].replace("&amp;", "&")).text
        seen |= set(messages(page))
    assert "Earlier lines" not in page
    assert len(seen) == 302


def test_a_line_has_an_address_that_shows_it_between_its_neighbours(
    browser: Browser, job: Job, database: Database
) -> None:
    with database.reading() as session:
        (line,) = queries.job_log(session, job.seq, only=queries.LogFilter(text="List page 40:")).lines
    page = browser.get(f"/jobs/{job.id}", query_string={"line": str(line.id)}).text
    assert f'href="/jobs/{job.id}?line={line.id}#L{line.id}"' in page
    assert f'id="L{line.id}"' in page
    shown = messages(page)
    assert shown[0] == "List page 1: 20 links"
    assert len(shown) == 39 + LINES_AROUND
    for strange in ("0", "-1", "9" * 30, "x"):
        assert browser.get(f"/jobs/{job.id}", query_string={"line": strange}).status_code == 200
        assert browser.get(f"/jobs/{job.id}", query_string={"after": strange}).status_code == 200


def test_a_poll_appends_only_what_fits(browser: Browser, job: Job, database: Database) -> None:
    page = browser.get(f"/jobs/{job.id}", query_string={"level": "error"}).text
    poll = re.search(r'hx-get="([^"]+)"', page)
    assert poll is not None
    database.run(lambda s: log_lines(s, job, "fine", level="info"))
    database.run(lambda s: log_lines(s, job, "broken", level="error"))
    address = re.sub("live=[^.&]*", "live=0", poll[1].replace("&amp;", "&"))
    assert messages(browser.get(address).text) == ["broken"]
