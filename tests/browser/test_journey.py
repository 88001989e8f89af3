"""From the set-up link to a cancelled job, with a script and without one."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session

from tests.browser.conftest import BrowserPage
from tests.browser.looks import findings
from tests.helpers.admin import PASSWORD, Admin, add_site, add_target, add_worker, running_job
from webqueue import access, clock
from webqueue.models import Job, RateKey

BOTH_WAYS = pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])


def status_of(admin: Admin, seq: int) -> tuple[str, bool]:
    with admin.database.reading() as session:
        job = session.get_one(Job, seq)
        return job.status, job.stop_requested


def example(admin: Admin) -> None:
    """A site with a target, and a worker that lives."""

    def add(session: Session) -> None:
        add_worker(session, clock.now(session))
        add_site(session, "example", "http://www.example.org/")
        add_target(session, "example_news", "example")

    admin.database.run(add)


@BOTH_WAYS
def test_from_the_setup_link_to_a_cancelled_job(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str], javascript: bool
) -> None:
    page = browser_page(javascript=javascript)
    page.goto(f"{admin.url}/targets")
    expect(page).to_have_url(f"{admin.url}/login?next=/targets")

    link = admin.setup_link()
    page.goto(link)
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Make administrator").click()
    expect(page.get_by_role("heading", name="Three steps to the first crawl")).to_be_visible()

    page.get_by_role("link", name="Add a site").click()
    page.get_by_label("Code").fill("example")
    page.get_by_label("Address").fill("www.example.org")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("has no scheme; write http:// or https:// in front of it")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Address").fill("http://www.example.org/")
    page.get_by_role("button", name="Save").click()

    page.get_by_label("Code").fill("example_news")
    page.get_by_label("List URL", exact=False).first.fill("news/index_{page}.html")
    page.get_by_label("Item selector").fill("ul.list a")
    page.get_by_label("Schedule (cron)").fill("0 3 * * *")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("At 03:00")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="example_news")).to_be_visible()

    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status")).to_contain_text("Queued as #1.")
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status")).to_contain_text("Already queued as #1.")

    page.goto(f"{admin.url}/jobs")
    page.get_by_role("button", name="Cancel job 1").click()
    expect(page.get_by_role("status")).to_contain_text("#1 is cancelled.")
    expect(page.locator("tbody .st")).to_have_text("Cancelled")
    assert status_of(admin, 1) == ("cancelled", True)
    console_errors.clear()  # the browser notes the 422 of the refused site


@BOTH_WAYS
def test_a_running_job_is_cancelled_after_asking_once(
    admin: Admin, browser_page: BrowserPage, javascript: bool
) -> None:
    example(admin)
    admin.database.run(lambda session: running_job(session, "example_news"))
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.get_by_role("button", name="Cancel job 1").click()
    decline = page.get_by_role("button" if javascript else "link", name="Not now")
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    decline.click()
    page.get_by_role("button", name="Cancel job 1").click()
    page.get_by_role("button", name="Cancel job", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("#1 is being cancelled.")
    assert len(posted) == (1 if javascript else 2), "without a script the question is a page of its own"
    expect(page.get_by_text("cancelling: it stops after the request in flight")).to_be_visible()
    assert status_of(admin, 1) == ("running", True)


def test_what_is_confirmed_is_what_was_asked_whatever_the_page_became(
    admin: Admin, browser_page: BrowserPage
) -> None:
    """A dialog stays open as long as somebody reads; the page behind it goes on."""
    example(admin)
    admin.database.run(lambda session: running_job(session, "example_news"))
    page = browser_page()
    page.goto(admin.login_link())
    page.get_by_role("button", name="Cancel job 1").click()
    page.evaluate("document.querySelector('main [data-confirm]').setAttribute('formaction', '/pause-all')")
    page.get_by_role("button", name="Cancel job", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("#1 is being cancelled.")

    page.goto(f"{admin.url}/rate-keys/www.example.org")
    page.get_by_role("button", name="Pause all").click()
    page.evaluate("document.querySelector('#pause-all').remove()")
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("status")).to_contain_text("Everything is paused")


@BOTH_WAYS
def test_keys_are_paused_with_a_note_and_resumed(
    admin: Admin, browser_page: BrowserPage, javascript: bool
) -> None:
    example(admin)
    admin.database.run(lambda session: running_job(session, "example_news"))
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/rate-keys/www.example.org")
    page.get_by_text("Pause this key").click()
    page.get_by_label("Why (others will read it)").fill("The owner asked")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#now")).to_contain_text("“The owner asked”")
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("www.example.org is resumed.")
    with admin.database.reading() as session:
        assert session.get_one(RateKey, "www.example.org").paused_at is None


@BOTH_WAYS
def test_everything_is_paused_after_asking(admin: Admin, browser_page: BrowserPage, javascript: bool) -> None:
    example(admin)
    page = browser_page(javascript=javascript)
    page.goto(admin.login_link())
    page.get_by_role("button", name="Pause all").click()
    page.locator("#confirm-yes" if javascript else "#confirm-button").click()
    expect(page.get_by_text("Everything is paused by admin.")).to_be_visible()
    page.get_by_role("button", name="Resume all").click()
    expect(page.get_by_role("button", name="Pause all")).to_be_visible()


def test_a_try_leads_to_its_job(admin: Admin, browser_page: BrowserPage) -> None:
    example(admin)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets/example_news")
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_role("heading", name="#1 example_news")).to_be_visible()
    expect(page.get_by_text("A try stores nothing.")).to_be_visible()


def log_in_again(page: Page) -> None:
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def test_an_ended_session_leads_to_the_login_and_back(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str]
) -> None:
    example(admin)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets?q=example")
    # Ended by the server: a cookie that is thrown away comes back with an answer that is still on its way.
    admin.database.run(
        lambda s: access.set_password(
            s, "admin", access.new_password("admin", PASSWORD), by="test", now=clock.now(s)
        )
    )
    page.get_by_role("button", name="Run now: example_news").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    log_in_again(page)
    expect(page).to_have_url(f"{admin.url}/targets?q=example")
    console_errors.clear()  # the browser notes the 401


def test_the_demo_is_loaded_and_removed(admin: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(admin.login_link())
    page.get_by_role("button", name="Load the demo").click()
    expect(page.get_by_role("status")).to_contain_text("The demo is loaded: 7 targets")
    expect(page.locator("#counts")).to_contain_text("7 queued")
    assert findings(page) == []
    page.get_by_role("button", name="Remove the demo").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("7 targets are deleted with their sites, and their 7 jobs")
    dialog.get_by_role("button", name="Not now").click()
    expect(page.get_by_role("heading", name="Rate keys now")).to_be_visible()
    page.get_by_role("button", name="Remove the demo").click()
    dialog.get_by_role("button", name="Remove the demo").click()
    expect(page.get_by_role("status")).to_contain_text("The demo is removed.")
    expect(page.get_by_role("heading", name="Three steps to the first crawl")).to_be_visible()
