"""Run now, on a large installation: the job is there at once, the page stays where it is, and two presses make one job."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage
from tests.browser.looks import stop_clock
from tests.helpers.admin import Admin
from webqueue.models import Job

# Has no job, and a key with waiting ones; stands among the next runs of the overview.
TARGET: Final = "target_120"
KEY: Final = "host00.example.org"
# Where its button is, and what shows the job there.
PLACES: Final = {
    "/": f"tr[data-key='{KEY}'] td.num >> text=/^7$/",
    "/targets?q=target_120": f"#target-{TARGET} .st >> text=Queued",
    f"/targets/{TARGET}": "#now .st >> text=Queued",
}


def watch(page: Page) -> list[str]:
    """What the page asks for, as `POST /path` or `GET live`."""
    asked: list[str] = []

    def note(request: Request) -> None:
        parts = urlsplit(request.url)
        asked.append(f"{request.method} {'live' if 'live=' in parts.query else parts.path}")

    page.on("request", note)
    return asked


def waiting_jobs(admin: Admin) -> int:
    with admin.database.reading() as session:
        rows = select(func.count()).where(
            Job.target_code == TARGET, Job.status == "queued", Job.from_page == 0
        )
        return session.scalar(rows) or 0


@pytest.mark.parametrize("path", PLACES)
def test_the_job_is_there_after_two_requests_and_the_page_stays(
    large: Admin, browser_page: BrowserPage, path: str
) -> None:
    page = browser_page()
    page.clock.install()
    page.goto(large.login_link())
    page.goto(large.url + path)
    expect(page.locator(PLACES[path])).to_have_count(0)
    page.evaluate("window.untouched = true")
    expect(page.locator("#updated")).to_contain_text("Updated")
    # From here on no timer of the page runs: what is shown comes from the press itself.
    stop_clock(page)
    asked = watch(page)
    name = "Run now" if path.endswith(f"/{TARGET}") else f"Run now: {TARGET}"
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(PLACES[path]).first).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("Queued as #")
    assert asked == [f"POST /targets/{TARGET}/run", "GET live"]
    assert page.evaluate("window.untouched") is True
    assert waiting_jobs(large) == 1


def test_two_presses_make_one_job(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    page.goto(f"{large.url}/targets?q={TARGET}")
    page.get_by_role("button", name=f"Run now: {TARGET}").dblclick()
    expect(page.get_by_role("status")).to_contain_text("Already queued as #")
    assert waiting_jobs(large) == 1


def test_two_posts_at_the_same_time_make_one_job(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())
    statuses = page.evaluate(
        """async (path) => {
          const body = new URLSearchParams({csrf_token: document.querySelector("#act [name=csrf_token]").value});
          const sent = [1, 2, 3, 4].map(() => fetch(path, {method: "POST", body, redirect: "manual"}));
          return (await Promise.all(sent)).map((answer) => answer.type);
        }""",
        f"/targets/{TARGET}/run",
    )
    assert statuses == ["opaqueredirect"] * 4
    assert waiting_jobs(large) == 1
