"""Pages that follow what happens, and what they leave alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from playwright.sync_api import Page, Response, expect
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, add_site, add_target, add_worker, fill, log_lines, running_job
from tests.helpers.waiting import wait_until
from webqueue import clock, jobs
from webqueue.models import Job, RateKey


def wait_for(page: Page, condition: Callable[[], bool]) -> None:
    """Let the page's events arrive until something is so."""

    def asked() -> bool:
        page.wait_for_timeout(50)
        return condition()

    wait_until(asked, timeout=15)


def test_pages_follow_a_running_job(admin: Admin, browser_page: BrowserPage) -> None:
    def start(session: Session) -> None:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "example_news", "example")
        running_job(session, "example_news", progress_current=5, progress_total=40)

    admin.database.run(start)
    page = browser_page()
    page.goto(admin.login_link())
    expect(page.get_by_text("5 of 40")).to_be_visible()
    admin.database.run(
        lambda session: session.execute(
            update(Job).values(progress_current=6, modified_at=clock.now(session))
        )
    )
    expect(page.get_by_text("6 of 40")).to_be_visible()
    assert page.title().startswith("(1 running) Overview")


def test_a_log_that_begins_says_no_longer_that_it_is_empty(admin: Admin, browser_page: BrowserPage) -> None:
    def start(session: Session) -> Job:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "example_news", "example")
        return running_job(session, "example_news")

    job = admin.database.run(start)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/jobs/{job.id}")
    expect(page.get_by_text("No line yet.")).to_be_visible()
    admin.database.run(lambda session: log_lines(session, job, "The first line"))
    expect(page.locator("#log-lines li")).to_have_count(1)
    expect(page.get_by_text("No line yet.")).to_be_hidden()


def test_the_log_is_appended_and_followed(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    with admin.database.reading() as session:
        job = session.scalars(select(Job).where(Job.status == "running")).one()
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/jobs/{job.id}")
    expect(page.locator("#log-lines li")).to_have_count(60)
    page.locator("#log").scroll_into_view_if_needed()  # how far down the page it stands is not the question
    admin.database.run(lambda session: log_lines(session, job, "A line that came later"))
    expect(page.locator("#log-lines li")).to_have_count(61)
    expect(page.get_by_text("A line that came later")).to_be_in_viewport()
    page.get_by_label("Follow").uncheck()
    page.evaluate("document.getElementById('log').scrollTop = 0")
    admin.database.run(lambda session: log_lines(session, job, "One more"))
    expect(page.locator("#log-lines li")).to_have_count(62)
    assert page.evaluate("document.getElementById('log').scrollTop") == 0


def test_a_poll_answers_204_until_something_changes(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    statuses: list[int] = []

    def note(response: Response) -> None:
        if "live=" in response.url:
            statuses.append(response.status)

    page.on("response", note)
    expect(page.locator("#updated")).to_contain_text("Updated")
    wait_for(page, lambda: len(statuses) >= 2)
    assert set(statuses) == {204}
    admin.database.run(lambda session: jobs.pause_key(session, "hostile.example", by="ann"))
    expect(page.locator("tr[data-key='hostile.example'] .st")).to_have_text("Paused")
    wait_for(page, lambda: statuses[-1] == 204)
    assert statuses.count(200) == 1


def block(session: Session, times: int) -> None:
    """As if the key had been blocked so often in a row."""
    session.execute(
        update(RateKey)
        .where(RateKey.key == "shop.example.com")
        .values(consecutive_blocks=times, modified_at=clock.now(session))
    )


def test_updates_keep_focus_open_details_typed_text_and_scroll(
    admin: Admin, browser_page: BrowserPage
) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/rate-keys/shop.example.com")
    page.get_by_text("Pause this key").click()
    page.get_by_label("Why (others will read it)").fill("half a sent")
    page.evaluate("scrollTo(0, 200)")
    before = page.evaluate("scrollY")
    button = page.get_by_role("button", name="Cancel job").first.element_handle()
    for number in range(3):
        admin.database.run(partial(block, times=7 + number))
        expect(page.get_by_text(f"Blocked {7 + number} times in a row")).to_be_visible()
    note = page.get_by_label("Why (others will read it)")
    expect(note).to_be_focused()
    assert note.input_value() == "half a sent"
    assert page.evaluate("scrollY") == before
    assert button is not None
    assert button.evaluate("element => element.isConnected"), (
        "a button that did not change is the same button"
    )


def test_a_schedule_is_explained_while_it_is_typed(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets/gz_notices/edit")
    page.get_by_label("Schedule (cron)").fill("15 6 * * *")
    expect(page.locator("#preview")).to_contain_text("At 06:15", timeout=3000)
    expect(page.locator("#preview")).to_contain_text("Asia/Shanghai")
    page.get_by_label("Schedule (cron)").fill("15 26 * * *")
    expect(page.locator("#preview")).to_contain_text("hour field", timeout=3000)


def test_a_server_that_stopped_is_told_and_a_new_answer_ends_it(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str]
) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.route("**/*live=*", lambda route: route.abort())
    expect(page.locator("#updated")).to_contain_text("No answer since", timeout=15_000)
    page.unroute("**/*live=*")
    expect(page.locator("#updated")).to_contain_text("Updated", timeout=15_000)
    console_errors.clear()  # the browser notes the requests that failed
