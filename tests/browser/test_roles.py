"""What viewers and operators meet: every page that they may open, and nothing on it that is not theirs.

What a role may do is read from the rules of the views (`webqueue.web.auth.needs`), and which buttons there are from the pages
of an administrator: a page, an action or a rule that is added is looked at from its first day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from flask import Flask
from playwright.sync_api import Page, expect
from selectolax.lexbor import LexborHTMLParser, LexborNode
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from werkzeug.exceptions import HTTPException

from tests.browser.conftest import BrowserPage, copied, served
from tests.browser.looks import barriers, misfits
from tests.helpers.admin import Admin, add_site, add_target, fill, finished_job, log_lines, running_job
from tests.helpers.pages import every_page, logged_in, may_reach, one_of_each_kind, with_new_pieces
from webqueue import access, clock, jobs
from webqueue.access import Action, Role
from webqueue.api.blueprint import ROUTES
from webqueue.models import AuditEntry, Job, RateKey, Target

pytestmark = pytest.mark.slow

Pages = dict[str, str]
OTHERS: Final = ("viewer", "operator")
SECRET: Final = "Xyzzy7Plugh"
# Buttons for what is not so here: everything is paused, and somebody is logged in twice.
ONLY_SOMETIMES: Final = frozenset({"rate_keys.resume_all", "sessions.end", "sessions.end_others"})
CHINESE: Final = "zh-CN"
# Where a page prints what somebody else wrote, or what a person can press.
_NO_PROSE: Final = "button, a, dialog, svg, option, script, meta, title, label, .log, pre, form#act"


@pytest.fixture(scope="module")
def stocked(large_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """A large installation, with secrets and with what pages say something special about."""
    with served(copied(large_file, tmp_path_factory.mktemp("roles") / "large")) as running:
        running.database.run(_stock)
        yield running


@pytest.fixture(scope="module")
def pages_of(stocked: Admin) -> dict[str, Pages]:
    """By role: all the pages that it may open. Each link on them was followed, once for each kind."""
    return {role: every_page(stocked, role) for role in Role}


def _stock(session: Session) -> None:
    now = clock.now(session)
    add_site(
        session,
        "secretive",
        "https://secretive.example.org/",
        http={
            "headers": {"Authorization": f"Bearer {SECRET}", "X-Key": SECRET},
            "proxy": f"http://us:{SECRET}@proxy.example.org:3128",
        },
    )
    for code, handler, params in (
        ("secret_request", "http", {"url": f"https://us:{SECRET}@secretive.example.org/", "headers": {"Cookie": SECRET}}),
        ("secret_function", "python", {"function": "os:getcwd", "kwargs": {"api_key": SECRET}}),
    ):  # fmt: skip
        add_target(session, code, "secretive", handler=handler, params=params)
    session.add(
        Target(  # kinds that are switched off are taken by no form
            code="secret_command", site_code="secretive", handler="command",
            params={"argv": ["true"], "env": {"SECRETIVE": SECRET}}, created_at=now, changed_at=now,
        )
    )  # fmt: skip
    session.flush()
    finished_job(session, "secret_request", ago=timedelta(minutes=5), seconds=3, status="cancelled")
    # A command whose job does not stop, and one that may be forced to.
    add_site(session, "endless", "https://endless.example.org/")
    add_target(session, "endless_news", "endless", max_runtime_sec=60)
    add_site(session, "slow", "https://slow.example.org/")
    add_target(session, "slow_news", "slow")
    session.flush()
    long_ago = now - timedelta(hours=3)
    running_job(session, "endless_news", started_at=long_ago, began_at=long_ago)
    running_job(
        session, "slow_news", stop_requested=True, stop_requested_by="ann", stop_requested_at=now - timedelta(minutes=1)
    )  # fmt: skip
    kept = finished_job(
        session, "gz_notices", ago=timedelta(minutes=3), seconds=4, status="failed", error_msg="No link matched",
        result={"kept_page": "0" * 64},
    )  # fmt: skip
    log_lines(session, kept, "Kept a copy of the page")
    for key in session.scalars(select(RateKey).where(RateKey.key.like("host0%"))).all():
        jobs.settle(session, key, now)


def offers(app: Flask, html: str) -> Iterator[tuple[str, str]]:
    """What a page leads to: endpoint and address of each link, form and button."""
    page, adapter = LexborHTMLParser(html), app.url_map.bind("")

    def endpoint(address: str, method: str) -> str:
        try:
            return str(adapter.match(urlsplit(address).path, method=method)[0])
        except HTTPException as error:
            raise AssertionError(f"{method} {address} is nothing that the application has") from error

    for node in page.css("a[href], [hx-get], form[action], [formaction]"):
        if node.attributes.get("id") == "act":
            continue  # the form of the buttons has no button of its own
        method = node.attributes.get("method") or ("post" if "formaction" in node.attributes else "get")
        address = next(
            address for name in ("href", "hx-get", "formaction", "action") if (address := node.attributes.get(name))
        )  # fmt: skip
        parts = urlsplit(address)
        if not parts.netloc and parts.path:
            yield endpoint(address, method.upper()), address


@pytest.mark.parametrize("role", Role)
def test_nothing_on_a_page_leads_to_a_refusal(stocked: Admin, pages_of: dict[str, Pages], role: str) -> None:
    found, refused = set(), set()
    for path, html in pages_of[role].items():
        for endpoint, address in offers(stocked.app, html):
            found.add(endpoint)
            if not may_reach(stocked.app, endpoint, role):
                refused.add(f"{path} leads to {address}")
    assert not refused, "\n".join(sorted(refused))
    # A button that nobody finds would be none: what an operator may do is offered.
    mine = {
        rule.endpoint
        for rule in stocked.app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and hasattr(stocked.app.view_functions[rule.endpoint], "needs")
        and may_reach(stocked.app, rule.endpoint, role)
    }  # fmt: skip
    if role in OTHERS:
        assert mine - found <= ONLY_SOMETIMES


def labels(html: str) -> set[str]:
    return {_words(node) for node in LexborHTMLParser(html).css("button, a.btn")}


def prose(html: str) -> str:
    """What a page tells, without its controls."""
    page = LexborHTMLParser(html)
    for node in page.css(_NO_PROSE):
        node.decompose()
    assert page.body is not None
    return _words(page.body)


def _words(node: LexborNode) -> str:
    return re.sub(r"\s+", " ", node.text(separator=" ")).strip()


@pytest.mark.parametrize("role", OTHERS)
def test_no_text_speaks_of_a_button_that_is_not_there(pages_of: dict[str, Pages], role: str) -> None:
    everywhere = {label for html in pages_of["admin"].values() for label in labels(html)}
    own = {label for html in pages_of[role].values() for label in labels(html)}
    # Of one word only "Edit" is no word of sentences, too.
    lacking = {label for label in everywhere - own if " " in label or label == "Edit"}
    assert {"Add a target", "Delete site", "Edit"} <= lacking
    assert ({"Run now", "Run again", "Force stop", "End cooldown", "Pause all"} <= lacking) == (
        role == "viewer"
    )
    wrong = {
        f"{path}: …{text[max(0, found.start() - 60) : found.end() + 40]}…"
        for path, text in ((path, prose(html)) for path, html in pages_of[role].items())
        for label in lacking
        for found in re.finditer(rf"\b{re.escape(label)}\b", text)
    }
    assert not wrong, "\n".join(sorted(wrong))


def columns(html: str) -> dict[tuple[str, str], bool]:
    """The columns of a page's tables by their headings, and whether there is anything in them."""
    found = {}
    for table in LexborHTMLParser(html).css("table"):
        name = table.attributes.get("aria-labelledby") or ""
        for number, heading in enumerate(table.css("thead th")):
            cells = [cell for row in table.css("tbody tr") for cell in row.css("td")[number : number + 1]]
            found[name, _words(heading)] = any(
                _words(cell) or cell.css("input, svg, button") for cell in cells
            )
    return found


@pytest.mark.parametrize("role", OTHERS)
def test_no_column_is_empty_for_want_of_a_right(pages_of: dict[str, Pages], role: str) -> None:
    wrong = []
    for path, html in pages_of[role].items():
        theirs = columns(pages_of["admin"].get(path, ""))
        wrong += [
            f"{path}: {name}"
            for name, filled in columns(html).items()
            if not filled and theirs.get(name, True)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("role", Role)
def test_no_secret_is_on_any_page_or_in_the_api(
    stocked: Admin, pages_of: dict[str, Pages], role: str
) -> None:
    masked = [path for path, html in pages_of[role].items() if "********" in html]
    assert len(masked) >= 4, "the secrets are there, as masks"
    assert [path for path, html in pages_of[role].items() if SECRET in html] == []
    client = logged_in(stocked, role)
    listings = [route.rule for route in ROUTES if route.action is Action.READ and "<" not in route.rule]
    secretive = (
        "/sites/secretive",
        "/targets/secret_request",
        "/targets/secret_command",
        "/targets/secret_function",
    )
    assert len(listings) > 5
    for path in (*listings, *secretive):
        answer = client.get(f"/api/v1{path}")
        assert answer.status_code in ({200, 422} if path in listings else {200}), path
        assert SECRET not in answer.text, path
        assert path in listings or "********" in answer.text


# A card with nothing in it, and a heading with nothing below it.
_EMPTY: Final = """() => {
  const shows = (one) => one.checkVisibility() && (one.innerText.trim() !== "" ||
    one.matches("svg, input, select, textarea, button") || one.querySelector("svg, input, select, textarea, button"));
  const cards = [...document.querySelectorAll("main .card, main .why, main section, main ul, main ol, main dl, main form")]
    .filter((one) => one.checkVisibility() && one.id !== "log-lines" && !shows(one));
  const headings = [...document.querySelectorAll("main h2, main h3")].filter((heading) => {
    if (!heading.checkVisibility()) return false;
    for (let at = heading; at && at.id !== "main"; at = at.parentElement)
      for (let next = at.nextElementSibling; next; next = next.nextElementSibling) {
        if (/^H[1-6]$/.test(next.tagName)) return true;
        if (shows(next)) return false;
      }
    return true;
  });
  return [...cards, ...headings].map((one) => `${one.outerHTML.slice(0, 120)} has nothing to show`);
}"""


def blanks(page: Page) -> list[str]:
    """Cards, lists and headings for nothing."""
    found: list[str] = page.evaluate(_EMPTY)
    return found


LOOKS: Final = (blanks, barriers, misfits)
# Each role in one language, so that all pages are seen in both; administrators see them in English and in Chinese elsewhere.
LANGUAGES: Final = (("viewer", "en-GB"), ("operator", "zh-CN"))


@pytest.mark.parametrize(("role", "locale"), LANGUAGES)
def test_every_page_is_whole(
    stocked: Admin, pages_of: dict[str, Pages], browser_page: BrowserPage, role: str, locale: str
) -> None:
    page = browser_page(locale=locale)
    page.goto(stocked.login_link(role))
    paths = one_of_each_kind(stocked.app, pages_of[role])
    new = with_new_pieces(stocked.app, {path: pages_of[role][path] for path in paths}, pages_of["admin"])
    assert 0 < len(new) < len(paths)
    wrong = []
    for path in paths:
        page.goto(stocked.url + path)
        # What is made of an administrator's pieces was looked at as theirs; what may be lacking is what stands around.
        looks = LOOKS if path in new else (blanks,)
        wrong += [f"{path}: {one}" for look in looks for one in look(page)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("role", "locale"), LANGUAGES)
def test_every_page_of_an_empty_installation_is_whole(
    admin: Admin, browser_page: BrowserPage, role: str, locale: str
) -> None:
    pages = every_page(admin, role)
    refused = [
        address
        for html in pages.values()
        for endpoint, address in offers(admin.app, html)
        if not may_reach(admin.app, endpoint, role)
    ]
    assert refused == []
    asked = r"Add a|schedule\." if role == "operator" else r"Add a|Run now|[Pp]ress"
    assert [path for path, html in pages.items() if re.search(asked, prose(html))] == []
    page = browser_page(locale=locale)
    page.goto(admin.login_link(role))
    wrong = []
    for path in pages:
        page.goto(admin.url + path)
        wrong += [f"{path}: {one}" for look in LOOKS for one in look(page)]
    assert not wrong, "\n".join(wrong)


def test_keys_press_nothing_for_a_viewer_and_say_so(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link("viewer"))
    before = _acts(admin)
    for path in ("/targets", "/jobs?status=running", "/rate-keys"):
        page.goto(admin.url + path)
        page.keyboard.press("j")
        for key in "rxp":
            expect(page.get_by_role("status")).to_have_text("")
            page.keyboard.press(key)
            expect(page.get_by_role("status")).to_contain_text("your role only reads")
            page.keyboard.press("?")
            expect(page.locator("#key-help")).to_contain_text("Next row")
            expect(page.locator("#key-help")).not_to_contain_text("pause")
            page.keyboard.press("Escape")
            page.reload()
            page.keyboard.press("j")
    assert _acts(admin) == before


def _acts(admin: Admin) -> tuple[Any, ...]:
    """What anybody has done so far."""
    with admin.database.reading() as session:
        counted = [session.scalar(select(func.count()).select_from(kind)) for kind in (Job, AuditEntry)]
        stops = session.scalar(select(func.count()).select_from(Job).where(Job.stop_requested))
    return (*counted, stops)


def test_buttons_go_from_an_open_page_with_the_right(admin: Admin, browser_page: BrowserPage) -> None:
    fill(admin.database)
    page = browser_page()
    page.goto(admin.login_link("operator"))
    page.goto(f"{admin.url}/targets")
    expect(page.get_by_role("button", name="Run now: gz_notices")).to_be_visible()
    admin.database.run(lambda s: access.set_role(s, "operator", "viewer", by="test", now=clock.now(s)))
    page.evaluate("document.dispatchEvent(new CustomEvent('webqueue:changed'))")
    expect(page.get_by_role("button", name="Run now: gz_notices")).to_have_count(0)
    expect(page.locator("#target-gz_notices")).to_be_visible()


def test_a_button_of_before_says_who_may(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str]
) -> None:
    """On a page that has not asked since the role changed, and by a form without a script."""
    fill(admin.database)
    for javascript in (True, False):
        admin.login_link("operator")
        admin.database.run(lambda s: access.set_role(s, "operator", "operator", by="test", now=clock.now(s)))
        page = browser_page(javascript=javascript)
        page.goto(admin.login_link("operator"))
        page.goto(f"{admin.url}/targets")
        admin.database.run(lambda s: access.set_role(s, "operator", "viewer", by="test", now=clock.now(s)))
        page.get_by_role("button", name="Run now: gz_notices").click()
        place = page.get_by_role("status") if javascript else page.get_by_role("main")
        expect(place).to_contain_text("It takes the role operator or admin; yours is viewer.")
        console_errors.clear()  # the browser notes the refusal
