"""The stop of a job that does not listen: offered in time, asked about, and told, with and without JavaScript."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, add_site, add_target, running_job
from tests.helpers.axe import grave_violations
from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.database import Database
from webqueue.models import Job


def cancelling(database: Database, *, for_sec: float) -> int:
    """The number of a running job that was cancelled so long ago."""
    asked = clock.local_now() - timedelta(seconds=for_sec)
    with database.transaction() as session:
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "news", "example")
        job = running_job(
            session, "news", stop_requested=True, stop_requested_at=asked, stop_requested_by="ann"
        )
        return job.seq


def forced(database: Database, seq: int) -> bool:
    with database.reading() as session:
        return session.get_one(Job, seq).force_requested_at is not None


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_it_asks_once_and_says_what_it_does(
    admin: Admin, browser_page: BrowserPage, javascript: bool
) -> None:
    seq = cancelling(admin.database, for_sec=40)
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/jobs/{seq}")
    page.get_by_role("button", name="Force stop").click()
    confirm = page.get_by_role("dialog") if javascript else page.locator("main")
    expect(confirm).to_contain_text("a thread cannot be killed")
    assert not forced(admin.database, seq), "it asks first"
    confirm.get_by_role("button", name="Force stop").click()
    wait_until(lambda: forced(admin.database, seq))
    expect(page.locator("#why")).to_contain_text("hands its other jobs back and ends")
    expect(page.get_by_role("button", name="Force stop")).to_have_count(0)


def test_the_button_comes_by_itself_when_half_a_minute_is_over(
    admin: Admin, browser_page: BrowserPage
) -> None:
    page = browser_page(390, "dark")
    page.goto(admin.login_link())
    begun = clock.local_now()
    seq = cancelling(admin.database, for_sec=0)
    button = page.get_by_role("button", name="Force stop")
    with clock.replaced(lambda: begun + timedelta(seconds=29)):
        page.goto(f"{admin.url}/jobs/{seq}")
        expect(page.locator("#updated")).to_be_visible()
        expect(button).to_have_count(0)
    with clock.replaced(lambda: begun + timedelta(seconds=60)):
        expect(button).to_be_visible()
    assert grave_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
