"""A page that is open in another tab while its reader chooses another language, zone or theme there."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, fill

PATIENT = 25_000


def test_an_open_page_follows_the_language_and_loses_nothing_typed(
    admin: Admin, browser_page: BrowserPage
) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/rate-keys")
    expect(page.get_by_role("heading", name="Rate keys", exact=True)).to_be_visible()
    typing = page.context.new_page()
    typing.goto(f"{admin.url}/rate-keys/shop.example.com")
    typing.locator("#describe > summary").click()
    typing.locator("#describe textarea").fill("Half a sentence")

    chooser = page.context.new_page()
    chooser.goto(f"{admin.url}/settings")
    chooser.get_by_role("button", name="简体中文").click()
    expect(chooser.locator("html")).to_have_attribute("lang", "zh-CN")

    page.bring_to_front()
    expect(page.get_by_role("heading", name="限速键", exact=True)).to_be_visible(timeout=PATIENT)
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    typing.bring_to_front()
    expect(typing.locator("#outdated")).to_contain_text("此页面已过时", timeout=PATIENT)
    expect(typing.locator("#describe textarea")).to_have_value("Half a sentence")
    expect(typing.locator("html")).to_have_attribute("lang", "en")
    typing.get_by_role("link", name="重新加载").click()
    expect(typing.locator("html")).to_have_attribute("lang", "zh-CN")
