"""An installation with 300 targets, 40 rate keys and 10,000 jobs: pages stay small and quick, at page 100 too."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import webqueue
from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin
from tests.helpers.large import QUEUED, fill_large

pytestmark = pytest.mark.slow

JOBS = 10_000
MOST_HTML = 60_000
# The limit of the design is 200 ms on a machine of its own; tests share theirs with each other.
MOST_SECONDS = 2.0


@pytest.fixture
def large(admin: Admin) -> Admin:
    admin.database.run(lambda session: fill_large(session, JOBS))
    return admin


def timed(page: Page, url: str) -> tuple[str, float]:
    """The HTML of a page, and the seconds until it was there; the best of three, for others use this machine too."""
    best, text = float("inf"), ""
    for _ in range(3):
        begun = time.perf_counter()
        answer = page.request.get(url)
        best = min(best, time.perf_counter() - begun)
        assert answer.status == 200, url
        text = answer.text()
    return text, best


def test_pages_are_small_and_page_100_is_as_quick_as_page_1(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    took: dict[str, float] = {}
    for path in ("/", "/jobs", "/targets", "/rate-keys", "/schedule"):
        html, seconds = timed(page, large.url + path)
        took[path] = seconds
        if path in {"/", "/jobs"}:
            assert len(html.encode()) < MOST_HTML, path
    # Page 100 of 50 a page: the cursor is the number of the last job of page 99.
    last = JOBS - 99 * 50 + 1
    html, took["page 100"] = timed(page, f"{large.url}/jobs?cursor={last}")
    assert len(re.findall(r'<tr id="job-', html)) == 50
    assert f">#{last - 1} " in html
    assert all(seconds < MOST_SECONDS for seconds in took.values()), took
    assert took["page 100"] < 3 * took["/jobs"] + 0.1, took


def test_an_unchanged_poll_is_204(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    for path in ("/", "/jobs", "/targets", "/schedule"):
        page.goto(large.url + path)
        poll = page.locator("#poll").get_attribute("hx-get")
        assert page.request.get(large.url + str(poll)).status == 204, path


def test_all_matching_are_acted_on_over_all_pages(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    page.goto(f"{large.url}/jobs?status=queued")
    page.get_by_role("link", name="Select several").click()
    page.get_by_label(f"All {QUEUED} that match").check()
    page.locator("#bulk-cancel").click()
    page.get_by_role("button", name=f"Cancel: {QUEUED} jobs").click(timeout=60_000)
    expect(page.get_by_role("status")).to_contain_text(f"{QUEUED} jobs cancelled.", timeout=60_000)


def test_style_and_script_are_small() -> None:
    static = Path(webqueue.__file__).parent / "static"
    files = [static / name for name in ("tokens.css", "ui.css", "app.js", "htmx.min.js")]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 60_000
