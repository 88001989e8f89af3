"""Pages fit every window, from the smallest phone to a wide screen, whatever the tables hold."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from sqlalchemy import select

from tests.browser.conftest import BrowserPage
from tests.browser.test_documents import add_versions
from tests.helpers.admin import Admin, fill
from webqueue.models import Job

# Around the widths at which the layout changes, and those of common screens.
WIDTHS = (320, 360, 390, 600, 720, 721, 768, 820, 860, 861, 960, 1024, 1119, 1120, 1200, 1280)
EMPTY_PAGES = (
    "/", "/targets", "/sites", "/sites/new", "/targets/new", "/targets/new?handler=python", "/jobs", "/rate-keys",
    "/documents", "/settings", "/jobs?status=failed", "/rate-keys?url=nonsense",
)  # fmt: skip
FULL_PAGES = (
    *EMPTY_PAGES, "/targets/example_news", "/targets/hostile_target", "/targets/hostile_target/edit", "/sites/example",
    "/rate-keys/shop.example.com", "/rate-keys/www.example.org", "/rate-keys?url=http://www.example.org/",
    "/documents/1", "/documents/1?version=2", "/documents/2", "/documents/3",
)  # fmt: skip
MORE_PAGES = (
    "/schedule", "/targets?select=1", "/jobs?select=1", "/settings/users", "/settings/tokens", "/settings/audit",
    "/settings/retention", "/settings/challenges", "/settings/notifications", "/documents/4",
)  # fmt: skip
# Cards whose content sticks out, and the window when it scrolls sideways.
TOO_WIDE = """
[...document.querySelectorAll(".card, table")].filter(
  box => box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth
).map(box => box.outerHTML.slice(0, 80)).concat(document.documentElement.scrollWidth > innerWidth ? ["page"] : [])
"""


def pages_with_jobs(admin: Admin) -> list[str]:
    """Every page of the filled admin, one job in each state among them."""
    with admin.database.reading() as session:
        jobs = {job.status: job.id for job in session.scalars(select(Job).order_by(Job.seq))}
    return [*FULL_PAGES, *(f"/jobs/{job}" for job in jobs.values())]


@pytest.fixture
def opened(admin: Admin, browser_page: BrowserPage) -> Page:
    """A filled admin, with the overview open."""
    page = browser_page()
    page.goto(admin.login_link())
    fill(admin.database)
    add_versions(admin)
    return page


def test_no_window_is_too_narrow(admin: Admin, opened: Page) -> None:
    for path in (*pages_with_jobs(admin), *MORE_PAGES):
        opened.goto(admin.url + path)
        for width in WIDTHS:
            opened.set_viewport_size({"width": width, "height": 900})
            assert opened.evaluate(TOO_WIDE) == [], f"{path} at {width} px"


def test_the_tables_with_most_columns_are_rows_of_two_columns_on_tablets(admin: Admin, opened: Page) -> None:
    """Neither cut off, nor one fact a line: the buttons stand beside them."""
    opened.set_viewport_size({"width": 768, "height": 900})
    opened.goto(f"{admin.url}/rate-keys")
    row = opened.locator("tr", has=opened.get_by_role("link", name="www.example.org"))
    buttons, facts = row.locator(".acts").bounding_box(), row.bounding_box()
    assert buttons is not None
    assert facts is not None
    assert facts["height"] < 200
    assert buttons["x"] + buttons["width"] > facts["width"], "at the right end"
    opened.set_viewport_size({"width": 700, "height": 900})
    buttons, key = row.locator(".acts").bounding_box(), row.get_by_role("link").first.bounding_box()
    assert buttons is not None
    assert key is not None
    assert buttons["x"] == key["x"], "below each other"


def test_on_phones_a_box_stands_beside_what_it_ticks_and_buttons_fill_their_row(
    admin: Admin, opened: Page
) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    for path in ("/jobs?select=1", "/targets?select=1"):
        opened.goto(admin.url + path)
        row = opened.locator("tbody tr").first
        box, rest = row.locator("input").bounding_box(), row.locator("td").nth(1).bounding_box()
        assert box is not None
        assert rest is not None
        assert box["x"] + box["width"] < rest["x"], path
        assert abs(box["y"] - rest["y"]) < 10, path
    opened.goto(f"{admin.url}/settings/users")
    form = opened.locator(".acts form").last
    button, whole = form.locator("button").bounding_box(), form.bounding_box()
    assert button is not None
    assert whole is not None
    assert button["width"] == whole["width"]
