"""Pages fit every window, from the smallest phone to a wide screen, whatever the tables hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import BrowserPage
from tests.browser.test_documents import add_versions
from tests.helpers.admin import Admin, fill
from tests.helpers.pages import every_page
from webqueue import clock

# Around the widths at which the layout changes, and those of common screens.
WIDTHS = (320, 360, 390, 600, 720, 721, 768, 820, 860, 861, 960, 1024, 1120, 1199, 1200, 1280)
# What a form answers, which no link leads to.
ANSWERS = ("/rate-keys?url=nonsense", "/rate-keys?url=http://www.example.org/")
# Cards whose content sticks out, and the window when it scrolls sideways.
TOO_WIDE = """
[...document.querySelectorAll(".card, table")].filter(
  box => box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth
).map(box => box.outerHTML.slice(0, 80)).concat(document.documentElement.scrollWidth > innerWidth ? ["page"] : [])
"""


@pytest.fixture
def opened(admin: Admin, browser_page: BrowserPage) -> Page:
    """A filled admin, with the overview open."""
    return filled(admin, browser_page)


def filled(admin: Admin, browser_page: BrowserPage) -> Page:
    page = browser_page()
    page.goto(admin.login_link())
    fill(admin.database)
    add_versions(admin)
    return page


def test_no_window_is_too_narrow(admin: Admin, browser_page: BrowserPage) -> None:
    """In the evening, when what comes next has a date beside its time."""
    now = datetime.now(UTC)
    later = now.replace(hour=22, minute=10) - now
    with clock.replaced(lambda: datetime.now(UTC) + later):
        page = filled(admin, browser_page)
        for path in (*every_page(admin), *ANSWERS):
            page.goto(admin.url + path)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate(TOO_WIDE) == [], f"{path} at {width} px"


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


def test_on_tablets_a_time_stands_behind_its_word_and_breaks_before_its_date(
    admin: Admin, opened: Page
) -> None:
    """On pages of one key there is room for all of it in one line, on the others for two."""
    opened.set_viewport_size({"width": 768, "height": 900})
    for path, lines in (("/targets/archive_letters", 1), ("/jobs", 2)):
        opened.goto(admin.url + path)
        cells = opened.locator(".jobs td.t").evaluate_all(
            "cells => cells.map(cell => [cell, cell.querySelector('time')].map(box => box.getBoundingClientRect()))"
            ".map(([cell, time]) => [cell.height, time.top - cell.top])"
        )
        assert cells
        assert max(height for height, _ in cells) < 24 * lines, path
        assert max(above for _, above in cells) < 8, f"{path}: behind its word"
    keys = opened.locator(".jobs td.key").evaluate_all("cells => cells.map(cell => cell.offsetHeight)")
    assert max(keys) < 24, "the two columns share the room"


def test_on_tablets_the_runs_of_a_target_stand_close_below_its_next_run(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 768, "height": 900})
    opened.goto(f"{admin.url}/targets")
    row = opened.locator("#target-archive_letters")
    following, strip = row.locator("td.t").bounding_box(), row.locator(".strip").bounding_box()
    assert following is not None
    assert strip is not None
    assert strip["y"] - (following["y"] + following["height"]) < 12


def test_on_phones_every_job_ends_alike_with_or_without_a_button(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.goto(f"{admin.url}/jobs")
    rest = opened.locator(".jobs tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].filter(cell => cell.offsetHeight).at(-1)).map(cell => ["
        "cell.className, Math.round(cell.parentNode.getBoundingClientRect().bottom - "
        "cell.getBoundingClientRect().bottom)])"
    )
    assert {name for name, _ in rest} == {"acts-cell", "name"}, "with and without"
    assert max(below for _, below in rest) - min(below for _, below in rest) <= 1


def test_on_phones_the_buttons_of_a_paused_target_fit_in_one_row(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.goto(f"{admin.url}/targets/archive_letters")
    opened.get_by_role("button", name="Resume").wait_for()
    tops = opened.locator(".head .buttons > *").evaluate_all("all => all.map(button => button.offsetTop)")
    assert len(tops) == 5
    assert len(set(tops)) == 1


def test_nothing_stands_below_the_last_line_of_the_card_of_keys(
    large: Admin, browser_page: BrowserPage
) -> None:
    page = browser_page()
    page.goto(large.login_link())
    card, bar = page.locator("#keys").bounding_box(), page.locator("#keys .bar").bounding_box()
    assert card is not None
    assert bar is not None
    assert abs(card["y"] + card["height"] - (bar["y"] + bar["height"])) <= 2


def test_no_unit_stands_alone_in_the_last_line_on_phones(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.goto(admin.url)
    lines = opened.locator("#keys .sub", has_text="1800 s").evaluate(
        "words => {const range = document.createRange(), from = words.textContent.indexOf('1800 s');"
        "range.setStart(words.firstChild, from); range.setEnd(words.firstChild, from + 6);"
        "return range.getClientRects().length}"
    )
    assert lines == 1


def test_the_buttons_of_a_filter_stand_beside_its_fields_on_tablets(admin: Admin, opened: Page) -> None:
    """Also the one more of a filter that is set."""
    opened.set_viewport_size({"width": 768, "height": 900})
    for path in ("/documents", "/documents?q=none", "/targets?q=none", "/schedule?rate_key=none"):
        opened.goto(admin.url + path)
        form = opened.locator("form.filters").first
        bottoms = form.evaluate(
            "form => [...form.querySelectorAll('input[type=search], input[type=text], select, button, .btn')]"
            ".map(one => Math.round(one.getBoundingClientRect().bottom))"
        )
        assert len(set(bottoms)) == 1, f"{path}: {bottoms}"


def test_on_phones_the_button_of_a_filter_of_two_fields_stands_beside_the_second(
    admin: Admin, opened: Page
) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.goto(f"{admin.url}/schedule")
    bottoms = opened.locator(".filters > *").evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().bottom))"
    )
    assert len(bottoms) == 3
    assert bottoms[0] < bottoms[1] == bottoms[2]


def test_labels_of_boxes_that_take_two_lines_do_not_touch(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.goto(f"{admin.url}/settings/notifications")
    gaps = opened.evaluate(
        """() => {
          const texts = [...document.querySelectorAll("label.check")].map(label => {
            const range = document.createRange();
            range.selectNodeContents(label.lastChild);
            return range.getBoundingClientRect();
          });
          return texts.slice(1).map((text, index) => text.top - texts[index].bottom);
        }"""
    )
    assert gaps
    assert min(gaps) >= 8


def test_the_languages_end_where_the_page_ends(admin: Admin, opened: Page) -> None:
    for width in (390, 768, 1360):
        opened.set_viewport_size({"width": width, "height": 900})
        opened.goto(f"{admin.url}/settings/tokens")
        button, card = opened.locator(".languages button").last, opened.locator(".card").first
        word = button.evaluate(
            "button => button.getBoundingClientRect().right - parseFloat(getComputedStyle(button).paddingRight)"
        )
        edge = card.bounding_box()
        assert edge is not None
        assert abs(word - (edge["x"] + edge["width"])) <= 2, f"at {width} px"


# In how many lines each link and each other text of some cells stands.
LINES = """
cells => cells.flatMap(cell => [...cell.querySelectorAll("a"), ...[cell, ...cell.querySelectorAll("time, .sub, .nowrap")]
  .flatMap(box => [...box.childNodes]).filter(node => node.nodeType == Node.TEXT_NODE && node.data.trim())
].map(text => {
  const range = new Range(); range.selectNodeContents(text)
  return new Set([...range.getClientRects()].map(box => box.top)).size
}))
"""


def test_on_tablets_lists_break_no_name_and_no_time(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.set_viewport_size({"width": 768, "height": 900})
    page.goto(large.login_link())
    for path, cells in (
        ("/schedule", "#coming td.wide, #coming td.t"),
        ("/settings/audit", "td.key"),
        ("/settings/retention", "td.t, td[data-l=Keeps]"),
        ("/settings/challenges", "td.name:first-child > .sub"),
    ):
        page.goto(large.url + path)
        lines = page.locator(cells).evaluate_all(LINES)
        assert lines
        assert max(lines) == 1, path


def test_on_tablets_the_tabs_of_the_settings_stand_in_one_row(admin: Admin, opened: Page) -> None:
    opened.set_viewport_size({"width": 768, "height": 900})
    opened.goto(f"{admin.url}/settings/export")
    tops = opened.locator(".tabs > *").evaluate_all("all => all.map(one => one.offsetTop)")
    assert len(tops) == 9
    assert len(set(tops)) == 1


def test_the_line_of_a_key_has_its_buttons_side_by_side_and_says_on_phones_what_is_what(
    admin: Admin, opened: Page
) -> None:
    opened.set_viewport_size({"width": 768, "height": 900})
    opened.goto(f"{admin.url}/rate-keys/www.example.org")
    tops = opened.locator("#queue tr:last-child .acts > *").evaluate_all(
        "all => all.map(one => one.offsetTop)"
    )
    assert len(tops) == 2
    assert len(set(tops)) == 1
    opened.set_viewport_size({"width": 390, "height": 900})
    said = opened.locator("#queue tr:last-child td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    assert {'"Expected "', '"Trigger "'} <= set(said)
