"""Every form as the pages of a large installation have it, without a script: what it sends, and a day's work through them.

`test_without_script.py` sends each form that changes something; these are the others, and the way between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, Page, expect
from selectolax.lexbor import LexborHTMLParser, LexborNode
from sqlalchemy import func, select

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import PASSWORD, Admin
from webqueue.models import Job, Target

FILTERS: Final = "form[method=get]"
# What a field takes; others take a word.
WORDS: Final = {"url": "http://www.example.org/"}


def test_every_form_has_a_button_and_the_token(large_pages: dict[str, str]) -> None:
    wrong, forms = [], 0
    for path, html in large_pages.items():
        page = LexborHTMLParser(html)
        for form in page.css("form"):
            name = form.attributes.get("id") or ""
            method = form.attributes.get("method")
            buttons = [*form.css("button"), *(page.css(f"button[form='{name}']") if name else [])]
            forms += 1
            if method not in {"get", "post", "dialog"}:
                wrong.append(f"{path}: {name} has the method {method}")
            if method == "post" and form.css_first("input[name=csrf_token]") is None:
                wrong.append(f"{path}: {name} has no token")
            # The form of the buttons in tables is on each page, also on one that has no such button.
            if name != "act" and all(one.attributes.get("type") == "button" for one in buttons):
                wrong.append(f"{path}: {name} has no button that sends it")
    assert not wrong, "\n".join(wrong)
    assert forms > len(large_pages)


def test_every_control_has_an_id_of_its_own(large_pages: dict[str, str]) -> None:
    """By which a swap finds it again, and a person's style sheet or script."""
    wrong, found = [], 0
    for path, html in large_pages.items():
        controls = LexborHTMLParser(html).css("button, input:not([type=hidden]), select, textarea")
        names = [one.attributes.get("id") for one in controls]
        found += len(names)
        wrong += [f"{path}: {one.html}" for one, name in zip(controls, names, strict=True) if not name]
        wrong += [f"{path}: {name} twice" for name in set(names) if name and names.count(name) > 1]
    assert not wrong, "\n".join(wrong)
    assert found > len(large_pages)


def filters(pages: dict[str, str]) -> Iterator[tuple[str, int, list[str]]]:
    """Each form that asks: on which page, the how many such form there, and the names of its fields."""
    seen: set[tuple[str, ...]] = set()
    for path, html in pages.items():
        for number, form in enumerate(LexborHTMLParser(html).css(FILTERS)):
            names = [name for field in form.css("input, select") if (name := _name(field))]
            shape = (urlsplit(form.attributes["action"] or "").path.split("/")[1], *sorted(names))
            if shape not in seen:
                seen.add(shape)
                yield path, number, names


def _name(field: LexborNode) -> str:
    return field.attributes.get("name") or "" if field.attributes.get("type") != "hidden" else ""


def choose(field: Locator, name: str) -> str:
    """Fill in a field; what it holds then."""
    if field.evaluate("one => one.tagName") == "SELECT":
        values: list[str] = field.locator("option").evaluate_all("all => all.map((one) => one.value)")
        field.select_option(values[-1])
    else:
        field.fill(WORDS.get(name, "example"))
    return field.input_value()


def test_every_filter_works_without_script(
    large: Admin, large_pages: dict[str, str], browser_page: BrowserPage
) -> None:
    page = browser_page(javascript=False)
    page.goto(large.login_link())
    tried = set()
    for path, number, names in filters(large_pages):
        page.goto(large.url + path)
        form = page.locator(FILTERS).nth(number)
        form.evaluate("one => one.closest('details')?.setAttribute('open', '')")
        chosen = {name: choose(form.locator(f"[name='{name}']"), name) for name in names}
        with page.expect_navigation() as answer:
            form.get_by_role("button").first.click()
        assert answer.value is not None
        assert answer.value.status == 200, page.url
        asked = dict(parse_qsl(urlsplit(page.url).query, keep_blank_values=True))
        assert chosen.items() <= asked.items(), path
        for name, value in chosen.items():
            expect(page.locator(f"{FILTERS} [name='{name}']").last).to_have_value(value)
        tried.add(urlsplit(page.url).path.split("/")[1])
    assert tried >= {"targets", "jobs", "rate-keys", "schedule", "documents", "settings"}


def test_a_days_work_without_script(large: Admin, browser_page: BrowserPage) -> None:
    large.login_link()  # which makes the user
    page = browser_page(javascript=False)
    log_in(page, large)
    page.get_by_role("link", name="Add a target").click()
    page.get_by_label("Code").fill("new_one")
    page.get_by_label("Site").select_option("site_07")
    page.get_by_label("List URL", exact=False).first.fill("news/index_{page}.html")
    page.get_by_label("Item selector").fill("ul.list a")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Run now").click()
    # Seven others of the key wait already.
    expect(page.get_by_role("status")).to_contain_text("Queued as #")
    expect(page.locator("#now .st")).to_have_text("Queued")
    page.locator("#now a").click()
    page.get_by_role("button", name="Cancel", exact=False).first.click()
    expect(page.get_by_role("status")).to_contain_text("is cancelled.")

    page.goto(f"{large.url}/targets/new_one/edit")
    schedule = page.get_by_label("Schedule (cron)")
    schedule.fill("15 26 * * *")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("hour field")
    schedule.fill("15 6 * * 1-5")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("At 06:15")
    expect(page.locator("#preview li")).to_have_count(5)
    expect(schedule).to_have_value("15 6 * * 1-5")
    with large.database.reading() as session:
        assert session.get_one(Target, "new_one").schedule is None, "a preview saves nothing"
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("The schedule of new_one is paused.")
    with large.database.reading() as session:
        target = session.get_one(Target, "new_one")
        assert (target.schedule, target.paused_by) == ("15 6 * * 1-5", "admin")

    page.goto(large.url)
    page.get_by_role("table", name="Rate keys now").get_by_role("link", name="example_full").click()
    expect(page.get_by_role("region", name="Log").get_by_role("listitem")).to_have_count(60)
    page.get_by_label("Lines with").fill("page 33:")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("region", name="Log")).to_contain_text("List page 33: 20 links")
    expect(page.get_by_role("region", name="Log").get_by_role("listitem")).to_have_count(1)

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs").click()
    page.get_by_text("More filters").click()
    page.get_by_label("State", exact=True).select_option("queued")
    page.get_by_role("button", name="Filter").click()
    rows = page.get_by_role("main").locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.locator(".st", has_text="Queued")).to_have_count(50)
    page.get_by_role("link", name="Older").click()
    expect(page).to_have_url(re.compile("[?&]cursor="))
    expect(rows.locator(".st", has_text="Queued")).to_have_count(50)
    with large.database.reading() as session:
        assert (session.scalar(select(func.count()).where(Job.status == "queued")) or 0) > 200


def log_in(page: Page, admin: Admin) -> None:
    """As a person does who was sent to the login."""
    page.goto(f"{admin.url}/targets")
    expect(page).to_have_url(f"{admin.url}/login?next=/targets")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{admin.url}/targets")
