"""The schedule page, and the evidence on the page of a rate key."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from tests.helpers.admin import HOSTILE, add_site, add_target, add_worker
from tests.helpers.browsing import Browser
from webqueue import clock, config, jobs
from webqueue.database import Database
from webqueue.models import KeyEvent
from webqueue.queries.blocks import blocks_of_key
from webqueue.queries.coming import coming_ticks

KEY = "www.example.org"


@pytest.fixture
def scheduled(database: Database) -> None:
    """Two targets in one key that tick together, one elsewhere, one that is paused, one by hand."""

    def add(session: Session) -> None:
        now = clock.now(session)
        add_worker(session, now)
        add_site(session, "example", "http://www.example.org/", timezone="Asia/Shanghai")
        add_site(session, "other", "http://other.example.net/")
        add_target(session, "news", "example", schedule="0 * * * *")
        add_target(session, "laws", "example", schedule="0 * * * *")
        add_target(session, "letters", "other", schedule="30 * * * *")
        add_target(session, "resting", "other", schedule="5 * * * *")
        add_target(session, "by_hand", "other")
        config.pause_target(session, "resting", by="test", now=now)

    database.run(add)


def test_the_next_ticks_are_listed_with_collisions_on_a_key(browser: Browser, scheduled: None) -> None:
    page = browser.get("/schedule").text
    coming = page[page.index('id="coming"') : page.index('id="past-title"')]
    assert len(re.findall(r">news<", coming)) == 24
    assert "resting" not in coming
    assert "by_hand" not in coming
    assert "2 at once in this key" in coming
    assert "+08:00" in coming
    one_key = browser.get("/schedule?rate_key=other.example.net").text
    assert ">letters<" in one_key
    assert ">news<" not in one_key
    assert browser.get("/schedule?span=1y").status_code == 400
    assert browser.get("/schedule?past=all").status_code == 400
    assert "No target ticks" in browser.get("/schedule?rate_key=nobody").text


def test_skipped_ticks_tell_their_reason(browser: Browser, scheduled: None, database: Database) -> None:
    def skip(session: Session) -> None:
        tick = clock.now(session).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
        jobs.skip_tick(session, "news", tick, "The run before was still going on.")
        key = jobs.lock_key_of_target(session, "laws")
        assert key is not None
        jobs.submit(session, "laws", source="schedule", by="schedule", tick=tick)

    database.run(skip)
    page = browser.get("/schedule").text
    past = page[page.index('id="past"') :]
    assert "The run before was still going on." in past
    assert len(re.findall(r'<tr id="past-', past)) == 2
    skipped = browser.get("/schedule?past=skipped").text
    assert len(re.findall(r'<tr id="past-', skipped)) == 1


def test_ticks_come_soonest_first_and_bounded(scheduled: None, database: Database) -> None:
    with database.reading() as session:
        now = clock.now(session)
        ticks = coming_ticks(session, now, now + timedelta(days=365), limit=7)
    assert len(ticks) == 7
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)
    assert all(now <= tick.at for tick in ticks)


def test_the_last_block_is_shown_with_its_responses(
    browser: Browser, scheduled: None, database: Database
) -> None:
    def block(session: Session) -> None:
        now = clock.now(session)
        submitted = jobs.submit(session, "news", by="ann")
        for days in (40, 20, 0):
            session.add(
                KeyEvent(
                    rate_key=KEY,
                    at=now - timedelta(days=days),
                    kind="blocked",
                    message="blocked",
                    job_id=submitted.id,
                    data={
                        "cause": f"HTTP 429 from {KEY} ({days} days ago)",
                        "seconds": 600,
                        "retry_after": 120,
                        "responses": [
                            {
                                "at": "2026-11-29T15:00:00.000Z",
                                "method": "GET",
                                "url": f"http://{KEY}/{HOSTILE}",
                                "status": 429,
                                "error": None,
                                "bytes": 1234,
                                "ms": 56,
                            },
                            {
                                "at": "2026-11-29T15:00:01.000Z",
                                "method": "GET",
                                "url": "x",
                                "error": "reset",
                                "ms": 1,
                            },
                        ],
                    },
                )
            )

    database.run(block)
    page = browser.get(f"/rate-keys/{KEY}").text
    assert "<dt>Blocks in 30 days</dt><dd>2," in page
    assert "HTTP 429 from www.example.org (0 days ago)" in page
    assert "The server asked for 2 min." in page
    assert "cooled down for 10 min" in page
    assert "1,234" in page
    assert ">reset<" in page
    assert HOSTILE not in page
    assert 'href="/targets/laws"' in page
    with database.reading() as session:
        assert blocks_of_key(session, "nobody", clock.now(session)).recent == 0
    assert 'id="evidence-title"' not in browser.get("/rate-keys/other.example.net").text
