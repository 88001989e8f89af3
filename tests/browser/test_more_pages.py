"""Bulk actions, with a person's eyes on the count."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, fill
from webqueue.models import Job, Target


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


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_a_wrong_cron_for_several_targets_is_refused_at_once_and_mended_where_it_stands(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str], javascript: bool
) -> None:
    fill(admin.database)
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets?select=1&q=example")
    page.get_by_label("example_full").check()
    page.get_by_label("example_news").check()
    cron = page.get_by_label("Cron (empty: by hand)")
    cron.fill("0 26 * * *")
    page.get_by_role("button", name="Set schedule").click()
    expect(cron).to_have_value("0 26 * * *")
    expect(cron).to_have_accessible_description(
        "Nothing was changed. The hour field has '26'; allowed are 0-23, *, ranges, lists and steps."
    )
    expect(page.get_by_label("example_full")).to_be_checked()
    expect(page.get_by_label("example_news")).to_be_checked()
    console_errors.clear()  # the browser notes the 422
    cron.fill("0 20 * * *")
    page.get_by_role("button", name="Set schedule").click()
    page.get_by_role("button", name="Set schedule: 2 targets").click()
    expect(page.get_by_role("status")).to_contain_text("2 targets changed, 0 as before.")
    expect(page).to_have_url(f"{admin.url}/targets?q=example")


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_one_act_opens_in_the_audit_log_and_one_target_of_it_is_taken_back(
    admin: Admin, browser_page: BrowserPage, javascript: bool
) -> None:
    fill(admin.database)
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets?select=1&q=example")
    page.get_by_label("that match, not only the ticked ones").check()
    page.get_by_label("Cron (empty: by hand)").fill("0 20 * * *")
    page.get_by_role("button", name="Set schedule").click()
    page.get_by_role("button", name="Set schedule: 2 targets").click()
    page.goto(f"{admin.url}/settings/audit")
    page.get_by_label("Change").select_option("changed")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("example_full, example_news").click()
    page.get_by_role("link", name="Undo: example_news").click()
    expect(page.get_by_text("It was changed together with 1 other, which stays as it is.")).to_be_visible()
    page.get_by_role("button", name="Undo: 1 object").click()
    expect(page.get_by_role("status")).to_contain_text("1 object is as it was before.")
    with admin.database.reading() as session:
        schedules = dict(session.execute(select(Target.code, Target.schedule)).all())
    assert (schedules["example_full"], schedules["example_news"]) == ("0 20 * * *", "*/30 * * * *")
    page.get_by_role("link", name="Remove the filter changed").click()
    expect(page).to_have_url(f"{admin.url}/settings/audit")
