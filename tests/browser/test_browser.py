"""The browser of the tests itself: it obeys width, theme and the script switch, and reports errors."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import BrowserPage

PAGE = """<!doctype html><title>Probe</title><p id=theme></p><script>
document.getElementById("theme").textContent =
    innerWidth + (matchMedia("(prefers-color-scheme: dark)").matches ? " dark" : " light");
</script>"""


def test_a_page_has_the_width_and_theme_that_was_asked_for(browser_page: BrowserPage) -> None:
    narrow = browser_page(390, "dark")
    narrow.set_content(PAGE)
    expect(narrow.locator("#theme")).to_have_text("390 dark")

    wide = browser_page()
    wide.set_content(PAGE)
    expect(wide.locator("#theme")).to_have_text("1360 light")


def test_javascript_can_be_switched_off(browser_page: BrowserPage) -> None:
    page = browser_page(javascript=False)
    page.set_content(PAGE)
    expect(page.locator("#theme")).to_have_text("")


def test_errors_of_a_page_are_collected(browser_page: BrowserPage, console_errors: list[str]) -> None:
    page = browser_page()
    page.set_content("<script>nowhere()</script><script>console.error('said aloud')</script>")
    assert len(console_errors) == 2
    assert "nowhere is not defined" in console_errors[0]
    assert "said aloud" in console_errors[1]
    console_errors.clear()
