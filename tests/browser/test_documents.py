"""Documents in a browser: searched, compared without JavaScript, exported; readable for everybody."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import BrowserPage, Theme
from tests.helpers.admin import Admin, fill
from tests.helpers.axe import grave_violations
from webqueue import clock, documents

PATHS = (
    "/documents",
    "/documents?q=harbour",
    "/documents?q=政府",
    "/documents?state=gone",
    "/documents/{number}",
    "/documents/{number}?from=1&to=3",
)
FILLER = "\n".join(f"Paragraph {number}: an unchanged sentence about the works." for number in range(40))


def add_versions(admin: Admin) -> int:
    """A document with three versions that is gone, and a Chinese one; the first one's number."""
    texts = [
        f"Harbour fees\nThe fee is 20 euros a year.\n{FILLER}\nThe office is open on Mondays.",
        f"Harbour fees\nThe fee is 25 euros a year.\n{FILLER}\nThe office is open on Mondays.",
        f"Harbour fees\nThe fee is 25 euros per year and boat.\n{FILLER}\nThe office is closed.\nA new line.",
    ]
    numbers = []
    with admin.database.transaction() as session:
        now = clock.now(session)
        stamp = {"target_code": "gz_notices", "job_id": "0123456789ab", "root_id": "0123456789ab"}
        for hours, text in enumerate(texts):
            draft = documents.DocumentDraft(
                "http://harbour.example/fees", f"Fees of the harbour, {hours}", text
            )
            stored = documents.store(session, draft, now=now - timedelta(hours=9 - hours), **stamp)
            numbers.append(stored.document_id)
        chinese = documents.DocumentDraft(
            "http://gov.example/1", "省政府公报", "广东省人民政府办公厅关于通知"
        )
        documents.store(session, chinese, now=now, **stamp)
        for root in "ab":
            documents.mark_missing(
                session, target_code="gz_notices", url="http://harbour.example/fees", root_id=root, now=now
            )
    assert numbers[0] is not None
    return numbers[0]


@pytest.mark.parametrize(("theme", "width"), [("light", 1360), ("dark", 1360), ("light", 390), ("dark", 320)])
def test_pages_are_readable_and_fit(
    admin: Admin, browser_page: BrowserPage, theme: Theme, width: int
) -> None:
    fill(admin.database)
    number = add_versions(admin)
    page = browser_page(width, theme)
    page.goto(admin.login_link())
    for path in PATHS:
        page.goto(admin.url + path.format(number=number))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert grave_violations(page) == [], path
        if folder := os.environ.get("SCREENSHOTS"):
            name = path.format(number=number).replace("/", "_").replace("?", "-")
            page.screenshot(path=f"{folder}/{theme}-{width}{name}.png", full_page=True)


def test_search_and_comparison_work_without_javascript(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    add_versions(admin)
    page = browser_page(javascript=False)
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/documents")
    page.get_by_label("Words in title, text or URL").fill("boat fee")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("mark", has_text="fee").first).to_be_visible()
    page.get_by_role("link", name="Fees of the harbour, 2").click()
    expect(page.locator("#diff ins", has_text="boat")).to_have_count(1)
    page.get_by_label("From", exact=True).select_option("1")
    page.get_by_label("To", exact=True).select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#diff del", has_text="20")).to_have_count(1)
    expect(page.locator("#diff ins", has_text="25")).to_have_count(1)
    folded = page.locator("details", has_text="unchanged lines").get_by_text("Paragraph 20:")
    expect(folded).to_have_count(1)
    expect(folded).to_be_hidden()
    page.locator("summary", has_text="unchanged lines").first.click()
    expect(folded).to_be_visible()


def test_what_is_added_and_removed_is_told_by_signs_too(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    number = add_versions(admin)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/documents/{number}")
    for tag, sign, line in (("ins", "+", "underline"), ("del", "−", "line-through")):
        style = f"getComputedStyle(document.querySelector('#diff {tag}')"
        assert page.evaluate(f"{style}, '::before').content") == f'"{sign}"'
        assert line in page.evaluate(f"{style}).textDecorationLine")


def test_exports_are_downloads_of_what_is_shown(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    add_versions(admin)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/documents?q=办公厅")
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON lines").click()
    assert download.value.suggested_filename == "documents.jsonl"
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert "省政府公报" in lines[0]
    feed = page.get_by_role("link", name="Atom feed").get_attribute("href")
    answer = page.request.get(f"{admin.url}{feed}")
    assert (answer.status, answer.text().count("<entry>")) == (200, 1)
