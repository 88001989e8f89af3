"""Schedule, settings and bulk actions: for everybody, on phones too, and with a person's eyes on the count."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage, Theme
from tests.helpers.admin import Admin, fill
from tests.helpers.axe import grave_violations
from webqueue.models import Job

PAGES = (
    "/schedule",
    "/schedule?past=skipped",
    "/settings/users",
    "/settings/tokens",
    "/settings/rate-groups",
    "/settings/challenges",
    "/settings/export",
    "/settings/notifications",
    "/settings/retention",
    "/settings/audit",
    "/jobs?select=1",
    "/targets?select=1",
    "/rate-keys/shop.example.com",
)
BUTTON_SIZE = 44


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_keeps_anybody_out(admin: Admin, browser_page: BrowserPage, theme: Theme) -> None:
    fill(admin.database)
    page = browser_page(theme=theme)
    page.goto(admin.login_link())
    for path in PAGES:
        page.goto(admin.url + path)
        assert grave_violations(page) == [], path


@pytest.mark.parametrize("width", [390, 320])
def test_phones_scroll_no_page_sideways_and_have_large_buttons(
    admin: Admin, browser_page: BrowserPage, width: int
) -> None:
    fill(admin.database)
    page = browser_page(width)
    page.goto(admin.login_link())
    for path in PAGES:
        page.goto(admin.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        for button in page.locator("main button:visible").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= BUTTON_SIZE, f"{path}: {button.inner_text()}"


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_all_waiting_jobs_are_cancelled_in_four_clicks(
    admin: Admin, browser_page: BrowserPage, javascript: bool
) -> None:
    fill(admin.database)
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/jobs?status=queued")
    page.get_by_role("link", name="Select several").click()
    page.get_by_label("that match, not only the ticked ones").check()
    page.locator("#bulk-cancel").click()
    page.get_by_role("button", name="Cancel: 3 jobs").click()
    expect(page.get_by_role("status")).to_contain_text("3 jobs cancelled.")
    expect(page).to_have_url(f"{admin.url}/jobs?status=queued")
    with admin.database.reading() as session:
        assert session.scalar(select(func.count()).where(Job.status == "queued")) == 0
