"""How many clicks the common ways take from the overview of a large installation: the fewer, the calmer the day."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin


class Hand:
    """Clicks, and counts."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, what: Locator) -> None:
        what.click()
        self.clicks += 1


@pytest.fixture
def page(large: Admin, browser_page: BrowserPage) -> Page:
    """The overview."""
    opened = browser_page()
    opened.goto(large.login_link())
    return opened


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_nothing_is_clicked_for_a_failures_reason_and_the_next_run(page: Page) -> None:
    failures = page.get_by_role("table", name="Failed in the last 24 hours")
    expect(failures).to_contain_text("No link matched 'ul.list a'")
    coming = page.get_by_role("table", name="Next runs")
    expect(coming.get_by_role("row").filter(has_text="gz_notices").locator("time").first).to_be_visible()


def test_one_click_runs_a_target(page: Page, hand: Hand) -> None:
    waiting = page.locator("tr[data-key='host00.example.org'] td.num")
    before = int(waiting.inner_text())
    hand.click(page.get_by_role("button", name="Run now: target_000"))
    expect(page.get_by_role("status")).to_contain_text("Queued as #")
    expect(waiting).to_have_text(str(before + 1))
    assert hand.clicks == 1


def test_one_click_and_a_confirmation_cancel(page: Page, hand: Hand) -> None:
    hand.click(page.get_by_role("button", name="Cancel job").first)
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
    expect(page.get_by_role("status")).to_contain_text("is being cancelled")
    assert hand.clicks == 1


def test_one_click_leads_to_the_log_of_what_runs(page: Page, hand: Hand) -> None:
    keys = page.get_by_role("table", name="Rate keys now")
    hand.click(keys.get_by_role("link", name="example_full"))
    expect(page.get_by_role("region", name="Log")).to_contain_text("List page 60: 20 links, 20 new")
    assert hand.clicks == 1


def test_two_clicks_lead_to_the_failures_of_a_week(page: Page, hand: Hand) -> None:
    hand.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs"))
    hand.click(page.get_by_role("link", name="Failed, 7 days"))
    rows = page.get_by_role("main").locator("tbody tr")
    expect(rows.filter(has_text="hostile_target")).to_have_count(1)
    expect(rows.filter(has_not_text="Failed")).to_have_count(0)
    assert hand.clicks == 2


def test_two_clicks_lead_to_the_form_with_the_schedule(page: Page, hand: Hand) -> None:
    hand.click(page.get_by_role("table", name="Next runs").get_by_role("link", name="gz_notices"))
    hand.click(page.get_by_role("link", name="Edit"))
    expect(page.get_by_label("Schedule (cron)")).to_have_value("0 3 * * 1-5")
    assert hand.clicks == 2
