"""An installation with 300 targets, 40 rate keys and 10,000 jobs: pages stay small, and cost as much at page 100 as at page 1.

What a page costs is counted in the steps of SQLite's machine, which are the same on any computer; what it takes in seconds
measures `make bench-pages`.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import expect
from sqlalchemy import func, select

import webqueue
from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin
from tests.helpers.large import JOBS, QUEUED, add_past
from tests.helpers.pages import logged_in
from tests.helpers.plans import counted
from webqueue.models import Job

pytestmark = pytest.mark.slow

MOST_BYTES: Final = 60_000
ROWS: Final = 50
TIMES_MORE: Final = 30
# Rows differ in what is told of them, so that no two pages cost the same.
ALLOWED_RATIO: Final = 1.2


def cost(admin: Admin, client: FlaskClient, path: str) -> int:
    """The steps of SQLite's machine for a page."""
    with counted(admin.database) as work:
        assert client.get(path).status_code == 200, path
    assert work.steps > 0
    return work.steps


def test_overview_and_jobs_are_small_at_50_rows(large_pages: dict[str, str]) -> None:
    for path in ("/", "/jobs"):
        html = large_pages[path]
        assert html.count("<tr id=") >= ROWS, path
        assert len(html.encode()) < MOST_BYTES, path


def test_page_100_costs_what_page_1_does_and_300_000_jobs_what_10_000_do(large: Admin) -> None:
    client = logged_in(large)
    # Page 100 of 50 a page: the cursor is the number of the last job of page 99.
    last = newest(large) - 99 * ROWS + 1
    page_100 = f"/jobs?cursor={last}"
    html = client.get(page_100).text
    assert html.count('<tr id="job-') == ROWS
    assert f">#{last - 1} " in html
    few = {
        path: cost(large, client, path)
        for path in ("/jobs", page_100, "/", "/targets", "/rate-keys", "/schedule")
    }
    assert few[page_100] <= ALLOWED_RATIO * few["/jobs"], few

    add_past(large.database, TIMES_MORE - 1)
    with large.database.reading() as session:
        assert (session.scalar(select(func.count()).select_from(Job)) or 0) > 0.97 * TIMES_MORE * JOBS
    far_back = f"/jobs?cursor={newest(large) - 5_000 * ROWS}"
    many = {path: cost(large, client, path) for path in (*few, far_back)}
    assert many[far_back] <= ALLOWED_RATIO * many["/jobs"], many
    assert all(many[path] <= ALLOWED_RATIO * few[path] for path in few), (few, many)


def newest(admin: Admin) -> int:
    with admin.database.reading() as session:
        return session.scalars(select(func.max(Job.seq))).one()


def test_all_matching_are_acted_on_over_all_pages(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    page.goto(f"{large.url}/jobs?status=queued")
    with large.database.reading() as session:
        queued = session.scalar(select(func.count()).where(Job.status == "queued")) or 0
    assert queued > QUEUED
    page.get_by_role("link", name="Select several").click()
    page.get_by_label(f"All {queued} that match").check()
    page.locator("#bulk-cancel").click()
    page.get_by_role("button", name=f"Cancel: {queued} jobs").click(timeout=60_000)
    expect(page.get_by_role("status")).to_contain_text(f"{queued} jobs cancelled.", timeout=60_000)


def test_style_and_script_are_small(large: Admin, browser_page: BrowserPage) -> None:
    """All that a page loads beside its HTML; the file of our own script is as small as the design says."""
    page = browser_page()
    loaded: set[str] = set()
    page.on("response", lambda answer: loaded.add(urlsplit(answer.url).path))
    page.goto(large.login_link())
    page.wait_for_load_state("networkidle")
    static = Path(webqueue.__file__).parent / "static"
    names = {re.sub(r"^/static/", "", path) for path in loaded if path.startswith("/static/")}
    code = {path.name for path in static.iterdir() if path.suffix in {".css", ".js"}}
    assert code <= names, "a style or script that is part of no page"
    assert sum(len(gzip.compress((static / name).read_bytes())) for name in names) < MOST_BYTES
    assert (static / "app.js").stat().st_size < 8_000
