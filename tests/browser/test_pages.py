"""What single pages owe to their readers; what all of them owe is in test_every_page.py."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, fill


def test_links_to_crawled_pages_tell_nothing_about_the_admin(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/documents/3")
    link = page.get_by_role("link", name="http://www.gz.example.cn/news/2026/03/01/1.html")
    expect(link).to_have_attribute("rel", "noreferrer noopener")


def test_the_theme_of_the_settings_is_set_by_the_server(admin: Admin, browser_page: BrowserPage) -> None:
    page = browser_page(theme="light")
    page.goto(admin.login_link())
    expect(page.locator("html")).not_to_have_attribute("data-theme", re.compile(""))
    page.goto(f"{admin.url}/settings")
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Use theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(15, 20, 26)")
