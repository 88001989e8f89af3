"""Bulk actions, with a person's eyes on the count."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, fill
from webqueue.models import Job


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
