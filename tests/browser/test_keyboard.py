"""The keys: where they lead, what they press, and where they are off."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page, expect
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import Admin, fill
from webqueue.models import Job, Target

# The controls that a person sees, in the order of the page, numbered; then what has the focus, and how it shows that.
NUMBER: Final = """() => {
  const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
    .filter((one) => one.checkVisibility({visibilityProperty: true}));
  all.forEach((one, number) => { one.dataset.number = number; });
  return all.length;
}"""
FOCUSED: Final = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [Number(one.dataset.number ?? -1), shown && inside];
}"""
IN_DIALOG: Final = "document.activeElement.closest('dialog')?.id"


def opened(admin: Admin, browser_page: BrowserPage) -> Page:
    """The overview of a filled admin."""
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    return page


def test_keys_lead_to_the_pages_and_the_list_of_keys(admin: Admin, browser_page: BrowserPage) -> None:
    page = opened(admin, browser_page)
    for key, path in (("t", "/targets"), ("j", "/jobs"), ("k", "/rate-keys"), ("s", "/schedule"), ("o", "/")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page).to_have_url(admin.url + path)
        page.wait_for_load_state()  # the script of the next page has to be there for the next key
    page.keyboard.press("?")
    expect(page.locator("#key-help")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.keyboard.press("Escape")
    expect(page.locator("#key-help")).not_to_be_visible()
    expect(page).to_have_url(f"{admin.url}/")


def test_rows_are_walked_opened_run_and_paused(admin: Admin, browser_page: BrowserPage) -> None:
    page = opened(admin, browser_page)
    page.goto(f"{admin.url}/targets")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("#target-example_full a").first).to_be_focused()
    page.keyboard.press("p")
    expect(page.get_by_role("status")).to_contain_text("The schedule of example_full is paused.")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#target-gz_notices a").first).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_role("status")).to_contain_text("Queued as #")
    with admin.database.reading() as session:
        assert session.get_one(Target, "example_full").paused_at is not None
        newest = session.scalars(select(Job).order_by(Job.seq.desc()).limit(1)).one()
        assert newest.target_code == "gz_notices"
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{admin.url}/targets/gz_notices")
    page.goto(f"{admin.url}/jobs?status=running")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#confirm")).to_be_visible()


def test_keys_are_off_in_fields_and_settings(admin: Admin, browser_page: BrowserPage) -> None:
    page = opened(admin, browser_page)
    with admin.database.reading() as session:
        before = session.scalar(select(func.count()).select_from(Job))
    page.goto(f"{admin.url}/targets")
    page.keyboard.press("/")
    expect(page.locator("#f-q")).to_be_focused()
    page.keyboard.type("gj?rxp/")
    expect(page.locator("#f-q")).to_have_value("gj?rxp/")
    expect(page).to_have_url(f"{admin.url}/targets")
    # A search, and not the first field of another form.
    page.goto(f"{admin.url}/rate-keys/www.example.org")
    page.keyboard.press("/")
    expect(page.locator("#f-url")).to_be_focused()
    page.goto(f"{admin.url}/settings")
    page.keyboard.press("g")
    page.keyboard.press("o")
    # A page that is left does not answer this.
    assert page.evaluate("fetch('/healthz').then((answer) => answer.status)") == 200
    expect(page).to_have_url(f"{admin.url}/settings")
    with admin.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == before


def test_tab_reaches_every_control_in_its_order_and_shows_where_it_is(
    large: Admin, browser_page: BrowserPage
) -> None:
    page = browser_page()
    page.goto(large.login_link())
    controls = page.evaluate(NUMBER)
    assert controls > 100
    walked = []
    for _ in range(controls):
        page.keyboard.press("Tab")
        walked.append(page.evaluate(FOCUSED))
    assert walked == [[number, True] for number in range(controls)]


def test_a_job_is_run_and_cancelled_by_tab_and_enter_alone(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(large.login_link())

    def go_to(name: str) -> None:
        for _ in range(page.evaluate(NUMBER)):
            page.keyboard.press("Tab")
            label = page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
            )
            if label.startswith(name):
                return
        raise AssertionError(f"Tab leads to no {name}")

    go_to("Cancel job")
    page.keyboard.press("Enter")
    assert page.evaluate(IN_DIALOG) == "confirm", "the focus is where the question is"
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Cancel job")
    page.keyboard.press("Enter")
    go_to("Cancel job")
    assert page.evaluate(FOCUSED)[1]
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("is being cancelled.")
    go_to("Run now: target_120")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Queued as #")
