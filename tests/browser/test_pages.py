"""Every page, with and without data: both themes, narrow and wide, for everybody, and safe from what was crawled."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Page, Request
from sqlalchemy import select

from tests.browser.conftest import BrowserPage, Theme
from tests.helpers.admin import HOSTILE, Admin, fill
from tests.helpers.axe import grave_violations
from webqueue.models import Job

EMPTY_PAGES = (
    "/", "/targets", "/sites", "/sites/new", "/targets/new", "/targets/new?handler=python", "/jobs", "/rate-keys",
    "/documents", "/settings", "/jobs?status=failed", "/rate-keys?url=nonsense",
)  # fmt: skip
FULL_PAGES = (
    *EMPTY_PAGES, "/targets/example_news", "/targets/hostile_target", "/targets/hostile_target/edit", "/sites/example",
    "/rate-keys/shop.example.com", "/rate-keys/www.example.org", "/rate-keys?url=http://www.example.org/",
    "/documents/1", "/documents/1?version=2", "/documents/2", "/documents/3",
)  # fmt: skip
BUTTON_SIZE = 44


def pages_with_jobs(admin: Admin) -> list[str]:
    """Every page of the filled admin, one job in each state among them."""
    with admin.database.reading() as session:
        jobs = {job.status: job.id for job in session.scalars(select(Job).order_by(Job.seq))}
    return [*FULL_PAGES, *(f"/jobs/{job}" for job in jobs.values())]


def watch_requests(page: Page) -> set[str]:
    """The hosts that a page asks."""
    asked: set[str] = set()

    def note(request: Request) -> None:
        asked.add(urlsplit(request.url).netloc)

    page.on("request", note)
    return asked


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_keeps_anybody_out(admin: Admin, browser_page: BrowserPage, theme: Theme) -> None:
    page = browser_page(theme=theme)
    asked = watch_requests(page)
    page.goto(f"{admin.url}/login")
    assert grave_violations(page) == []
    page.goto(admin.login_link())
    for path in EMPTY_PAGES:
        page.goto(admin.url + path)
        assert grave_violations(page) == [], path
    fill(admin.database)
    for path in pages_with_jobs(admin):
        page.goto(admin.url + path)
        assert grave_violations(page) == [], path
    assert asked == {urlsplit(admin.url).netloc}


@pytest.mark.parametrize("width", [390, 320])
def test_phones_scroll_no_page_sideways_and_have_large_buttons(
    admin: Admin, browser_page: BrowserPage, width: int
) -> None:
    page = browser_page(width)
    page.goto(admin.login_link())
    fill(admin.database)
    for path in pages_with_jobs(admin):
        page.goto(admin.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        for button in page.locator("main button:visible").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= BUTTON_SIZE, f"{path}: {button.inner_text()}"


def test_what_was_crawled_runs_nothing_and_stays_text(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    page.goto(admin.login_link())
    shown = 0
    for path in pages_with_jobs(admin):
        page.goto(admin.url + path)
        assert page.locator("img").count() == 0, path
        assert page.locator("a[href^='javascript' i]").count() == 0, path
        shown += page.get_by_text(HOSTILE).count()
    assert shown > 5, "the hostile texts are on the pages, as text"
    assert dialogs == []


def test_links_to_crawled_pages_tell_nothing_about_the_admin(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/documents/3")
    link = page.get_by_role("link", name="http://www.gz.example.cn/news/2026/03/01/1.html")
    assert link.get_attribute("rel") == "noreferrer noopener"


def test_the_theme_of_the_settings_is_set_by_the_server(admin: Admin, browser_page: BrowserPage) -> None:
    page = browser_page(theme="light")
    page.goto(admin.login_link())
    assert page.locator("html").get_attribute("data-theme") is None
    page.goto(f"{admin.url}/settings")
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Save").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(15, 20, 26)"


def test_everything_is_reached_by_keyboard_and_shows_where_it_is(
    admin: Admin, browser_page: BrowserPage
) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
