"""Pages that follow what happens, and what they leave alone."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Response, expect
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.browser.conftest import BrowserPage, opened
from tests.browser.looks import stop_clock
from tests.helpers.admin import (
    Admin,
    add_site,
    add_target,
    add_worker,
    fill,
    log_lines,
    running_admin,
    running_job,
)
from tests.helpers.pages import logged_in, polls
from tests.helpers.ports import lasting_port
from tests.helpers.waiting import wait_until
from webqueue import clock, jobs
from webqueue.models import Job, RateKey
from webqueue.settings import Settings

LIVE_PAGES: Final = 7
POLL_MS: Final = 2_000
UPDATES: Final = 15
SCROLLED: Final = 120
BLOCKED: Final = "shop.example.com"
# Everything opened, half a sentence in each field, each box and list as it was not, and the focus in the first field, or else on
# a button that is polled; then what is left of it.
HOLD: Final = """(down) => {
  const all = (what) => [...document.querySelectorAll("main " + what)];
  const state = (one) => [one.value, one.checked ?? null];
  const details = all("details"), fields = all(":is(input, select, textarea):not([type=hidden])");
  for (const one of details) one.open = true;
  for (const one of fields) {
    if (one.type === "checkbox" || one.type === "radio") one.checked = !one.checked;
    else if (one.tagName === "SELECT") one.selectedIndex = one.length - 1;
    else one.value = "half a sent";
  }
  const focused = fields.find((one) => one.value === "half a sent") || document.querySelector("main button");
  focused.focus();
  scrollTo(0, down);
  const controls = all(":is(a[href], button, summary)");
  window.held = {details, fields, focused, controls, state, states: fields.map(state)};
}"""
HELD: Final = """() => ({
  open: held.details.filter((one) => one.isConnected && one.open).length,
  typed: held.fields.filter((one, at) => one.isConnected && `${held.state(one)}` === `${held.states[at]}`).length,
  lost: [...held.details, ...held.fields, ...held.controls].filter((one) => !one.isConnected).length,
  focused: document.activeElement === held.focused,
  scroll: scrollY,
})"""
# The control that has the focus, and of what its row is; then the order of all rows.
CHOSEN: Final = """(() => {
  const one = document.activeElement, row = one.closest("tr");
  return [one.id, one.getAttribute("aria-label"), one.href ?? "", row?.dataset.key ?? row?.id ?? "no row"];
})()"""
ORDER: Final = (
    "[...document.querySelectorAll('main tbody tr')].map((row) => row.dataset.key || row.id).join()"
)


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


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_computer_whose_clock_is_wrong_tells_the_right_times(
    admin: Admin, browser_page: BrowserPage, hours: int
) -> None:
    fill(admin.database)
    page = browser_page()
    page.clock.install(time=datetime.now(UTC) + timedelta(hours=hours))
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/rate-keys/shop.example.com")
    began = datetime.now(UTC)
    expect(page.locator("#updated")).to_have_text(
        re.compile(f"Updated ({began:%H}|{began + timedelta(minutes=5):%H}):")
    )
    page.clock.run_for(6_000)  # times are written anew every 5 s
    expect(page.locator("#now time[data-relative]").first).to_have_text(re.compile(r"in 2\d min"))


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


@contextmanager
def watched_waits() -> Iterator[list[str]]:
    """Where this thread waits during the block: a poll that does holds a thread of the server."""
    waited: list[str] = []
    waits = (threading.Condition.wait.__code__, threading.Event.wait.__code__)

    def note(frame: FrameType, event: str, called: object) -> None:
        sleeps = event == "c_call" and getattr(called, "__name__", "") in {"sleep", "select", "poll", "epoll"}
        if sleeps or (event == "call" and frame.f_code in waits):
            waited.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    sys.setprofile(note)
    try:
        yield waited
    finally:
        sys.setprofile(None)


def test_an_unchanged_poll_of_any_page_is_204_and_waits_for_nothing(
    large: Admin, large_pages: dict[str, str]
) -> None:
    client = logged_in(large)
    pages = {path: client.get(path).text for path in polls(large_pages)}
    later = datetime.now(UTC) + timedelta(seconds=61)  # another minute is no change
    with clock.replaced(lambda: later), watched_waits() as waited:
        for path, poll in polls(pages).items():
            answer = client.get(poll)
            assert (answer.status_code, answer.data) == (204, b""), path
            assert waited == [], path


def test_what_a_poll_brings_holds_no_field_and_nothing_that_opens(
    large: Admin, large_pages: dict[str, str]
) -> None:
    """The morph keeps a field whose name and place stay, not always another: so there are none."""
    client = logged_in(large)
    for path, poll in polls(large_pages).items():
        answer = client.get(poll.replace("live=", "live=another"))
        assert answer.status_code == 200, path
        brought = LexborHTMLParser(answer.text).css("input:not([type=hidden]), select, textarea, details")
        assert [one.html for one in brought] == [], path


def test_a_poll_answers_204_until_something_changes(large: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.clock.install()
    page.goto(large.login_link())
    statuses = watch_polls(page)
    expect(page.locator("#updated")).to_contain_text("Updated")
    for number in range(2):
        page.clock.run_for(POLL_MS)
        wait_for(page, partial(came, statuses, number + 1))
    assert set(statuses) == {204}
    large.database.run(lambda session: jobs.pause_key(session, "www.example.org", by="ann"))
    page.clock.run_for(POLL_MS)
    wait_for(page, lambda: 200 in statuses)
    expect(page.locator("tr[data-key='www.example.org']")).to_contain_text("Paused")
    page.clock.run_for(POLL_MS)
    wait_for(page, lambda: statuses[-1] == 204)
    assert statuses.count(200) == 1


def watch_polls(page: Page) -> list[int]:
    """The statuses of the page's polls, as they come in."""
    statuses: list[int] = []

    def note(response: Response) -> None:
        if "live=" in response.url:
            statuses.append(response.status)

    page.on("response", note)
    return statuses


def came(statuses: list[int], least: int, status: int | None = None) -> bool:
    """Whether so many answers came, of that status where one is given."""
    return (len(statuses) if status is None else statuses.count(status)) >= least


def change_everything(session: Session, number: int) -> None:
    """What each live page shows changes: a running job and its log, and a key."""
    now = clock.now(session)
    session.execute(
        update(RateKey).where(RateKey.key == BLOCKED).values(consecutive_blocks=100 + number, modified_at=now)
    )
    running = session.scalars(select(Job).where(Job.status == "running")).one()
    log_lines(session, running, f"Update {number}")
    session.execute(
        update(Job).where(Job.seq == running.seq).values(progress_current=2000 + number, modified_at=now)
    )


def one_of_each(admin: Admin, pages: dict[str, str]) -> list[str]:
    """One live page of each kind; of jobs the running one, of keys the one that changes."""
    with admin.database.reading() as session:
        running = session.scalars(select(Job.id).where(Job.status == "running")).one()
    adapter = admin.app.url_map.bind("")
    wanted = {"jobs.show": {"name": running}, "rate_keys.show": {"key": BLOCKED}}
    kinds: dict[str, str] = {}
    for path in polls(pages):
        endpoint, values = adapter.match(urlsplit(path).path)
        if values == wanted.get(endpoint, values):
            kinds.setdefault(endpoint, path)
    assert len(kinds) >= LIVE_PAGES
    return list(kinds.values())


def test_30_seconds_of_updates_keep_focus_open_details_typed_text_and_scroll(
    large: Admin, large_pages: dict[str, str], browser_page: BrowserPage
) -> None:
    page = browser_page()
    page.set_viewport_size({"width": 1360, "height": 400})  # so low that every page can be scrolled
    page.clock.install()  # 30 s by the clock of the page, with one update each time that it asks
    page.goto(large.login_link())
    statuses = watch_polls(page)
    number = 0
    looked_at: Counter[str] = Counter()
    for path in one_of_each(large, large_pages):
        page.goto(large.url + path)
        page.evaluate(HOLD, SCROLLED)
        held = page.evaluate(HELD)
        statuses.clear()
        for update_number in range(1, UPDATES + 1):
            number += 1
            large.database.run(partial(change_everything, number=number))
            page.clock.run_for(POLL_MS)
            wait_for(page, partial(came, statuses, update_number, status=200))
        page.clock.run_for(POLL_MS)
        wait_for(page, lambda: statuses[-1] == 204)  # the page is as new as its last update
        assert page.evaluate(HELD) == held, path
        assert held["focused"], path
        assert held["scroll"] == SCROLLED, path
        assert held["lost"] == 0, path
        looked_at.update(details=held["open"], fields=held["typed"])
    assert looked_at["details"] > 0
    assert looked_at["fields"] > 0


# A row, something in it that takes the focus, and what makes its row move.
MOVING: Final = {
    "/": ("tr[data-key='host20.example.org']", lambda session: running_job(session, "target_039")),
    "/jobs": ("main tbody tr:nth-child(5)", lambda session: jobs.submit(session, "target_039", by="ann")),
}


@pytest.mark.parametrize("path", MOVING)
def test_the_focus_goes_with_a_row_that_moves(large: Admin, browser_page: BrowserPage, path: str) -> None:
    """Who presses Enter in that moment presses what was chosen, not what took its place."""
    rows, move = MOVING[path]
    page = browser_page()
    page.clock.install()
    page.goto(large.login_link())
    page.goto(large.url + path)
    page.locator(rows).locator("a, button").last.focus()
    chosen, order = page.evaluate(CHOSEN), page.evaluate(ORDER)
    large.database.run(move)
    page.clock.run_for(POLL_MS)
    wait_for(page, lambda: page.evaluate(ORDER) != order)
    assert page.evaluate(CHOSEN) == chosen


def test_a_schedule_is_explained_while_it_is_typed(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link())
    page.goto(f"{admin.url}/targets/gz_notices/edit")
    page.get_by_label("Schedule (cron)").fill("15 6 * * *")
    expect(page.locator("#preview")).to_contain_text("At 06:15")
    expect(page.locator("#preview")).to_contain_text("Asia/Shanghai")
    page.get_by_label("Schedule (cron)").fill("15 26 * * *")
    expect(page.locator("#preview")).to_contain_text("hour field")


@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "silent"])
def test_a_server_that_stopped_is_told_within_15_seconds_and_a_new_answer_ends_it(
    large_settings: Settings, browser_page: BrowserPage, console_errors: list[str], silent: bool
) -> None:
    database = opened(large_settings)
    # Nothing runs: that is when pages ask seldom.
    database.run(
        lambda session: session.execute(
            update(Job).where(Job.status == "running").values(status="failed", retry_at=None)
        )
    )
    page = browser_page()
    page.clock.install()
    port = lasting_port()
    with ExitStack() as stack:
        stack.callback(database.close)
        with running_admin(large_settings, database, port) as admin:
            page.goto(admin.login_link())
            expect(page.locator("#poll")).to_have_attribute("data-seconds", "10")
            expect(page.locator("#updated")).to_contain_text("Updated")
            stop_clock(page)
        with hung_server(port) if silent else nullcontext():
            page.clock.run_for(15_000)
            expect(page.locator("#updated")).to_contain_text("No answer since")
        stack.enter_context(running_admin(large_settings, database, port))

        def recovered() -> bool:
            page.clock.run_for(1_000)
            return "Updated" in page.locator("#updated").inner_text()

        wait_for(page, recovered)
    console_errors.clear()  # the browser notes the requests that failed


@contextmanager
def hung_server(port: int) -> Iterator[None]:
    """A server that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", port)):
        yield
