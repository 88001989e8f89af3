"""Every page that the application has: with 300 targets, 40 keys and 10,000 jobs, and with nothing.

Which pages there are is read from the application (`tests/helpers/pages.py`), and each is looked at once for all that is asked
of it (`tests/browser/looks.py`): for everybody in both themes, on phones, by keyboard, and safe from what names and texts hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest
from flask import Flask, template_rendered
from jinja2 import Template
from playwright.sync_api import Page, expect
from sqlalchemy import select

import webqueue
from tests.browser.conftest import BrowserPage
from tests.browser.looks import findings, foreign, watch_dialogs, watch_requests
from tests.helpers.admin import HOSTILE, QUOTED, Admin
from tests.helpers.pages import every_page, logged_in
from webqueue.models import Job

pytestmark = pytest.mark.slow

PARTS: Final = 4
LEAST_PAGES: Final = 60
_SUBMIT: Final = """([path, fields]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = path;
  for (const [name, value] of Object.entries({csrf_token: document.querySelector("[name=csrf_token]").value, ...fields})) {
    const field = document.createElement("input");
    field.type = "hidden"; field.name = name; field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}"""


@contextmanager
def noted_templates(app: Flask) -> Iterator[set[str]]:
    """The templates that the application fills in during the block."""
    names: set[str] = set()

    def note(_app: Flask, template: Template, **_more: Any) -> None:
        names.add(str(template.name))

    with template_rendered.connected_to(note, app):
        yield names


def look_at(admin: Admin, page: Page, paths: list[str]) -> int:
    """Look at each page; how often the hostile name was there to read."""
    ran, asked = watch_dialogs(page), watch_requests(page)
    wrong, shown = [], 0
    for path in paths:
        answer = page.goto(admin.url + path)
        assert answer is not None
        assert answer.status == 200, path
        shown += page.get_by_text(HOSTILE).count()
        wrong += [f"{path}: {one}" for one in findings(page)]
    assert not wrong, "\n".join(wrong)
    assert ran == []
    assert asked == {urlsplit(admin.url).netloc}
    return shown


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_of_a_large_installation(
    large: Admin, large_pages: dict[str, str], browser_page: BrowserPage, part: int
) -> None:
    paths = list(large_pages)
    assert len(paths) >= LEAST_PAGES
    page = browser_page()
    page.goto(large.login_link())
    assert look_at(large, page, paths[part::PARTS]) > 0, "the hostile name is on the pages, as text"


def test_every_page_of_an_empty_installation(admin: Admin, browser_page: BrowserPage) -> None:
    page = browser_page()
    page.goto(admin.login_link())
    look_at(admin, page, list(every_page(admin)))


def test_the_sentence_that_a_button_brings_runs_nothing(large: Admin, browser_page: BrowserPage) -> None:
    """It names the job that is before, of a target with a hostile name."""
    page = browser_page()
    page.goto(large.login_link())
    ran = watch_dialogs(page)
    page.goto(f"{large.url}/targets?site=hostile")
    page.get_by_role("button", name="Run now: hostile_target", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(f" {QUOTED}")
    assert foreign(page) == []
    assert ran == []


def test_what_forms_and_errors_answer(
    large: Admin, large_pages: dict[str, str], browser_page: BrowserPage, console_errors: list[str]
) -> None:
    """Pages that no link leads to: questions, refusals, errors, the login; with the others these are all templates."""
    with large.database.reading() as session:
        jobs = {job.status: job.id for job in session.scalars(select(Job).order_by(Job.seq))}
    posts: tuple[tuple[int, str, Mapping[str, str]], ...] = (
        (200, "/pause-all", {}),
        (200, f"/targets/{quote(HOSTILE, safe='')}/delete", {}),
        (200, f"/jobs/{jobs['running']}/cancel", {}),
        (409, f"/jobs/{jobs['done']}/cancel", {}),
        (422, "/sites/new", {"code": HOSTILE, "base_url": HOSTILE}),
        (422, "/targets/new?handler=crawl", {"code": HOSTILE, "site": HOSTILE, "schedule": HOSTILE}),
        (422, "/settings/users", {"name": HOSTILE}),
        (422, "/bulk/targets/schedule", {"all": "1", "schedule": HOSTILE, "value": HOSTILE}),
        (200, "/settings/tokens", {"name": "script", "role": "viewer"}),
        (200, "/targets/hostile_target/run", {}),  # behind the jobs with such names
        *(
            (404, f"/targets/{quote(QUOTED, safe='')}/{verb}", {"confirmed": "yes"})
            for verb in ("pause", "delete")
        ),
    )
    paths = (
        "/login",
        f"/jobs/{quote(HOSTILE, safe='')}",
        f"/no/{quote(HOSTILE, safe='')}",
        "/pause-all",
        "/rate-keys?url=nonsense",
        "/rate-keys?url=http://www.example.org/",
        f"/jobs?target={quote(HOSTILE)}&status=done",
        "/targets?q=nothing",
        f"/documents?q={quote(HOSTILE)}",
    )
    page = browser_page()
    ran, asked = watch_dialogs(page), watch_requests(page)
    wrong = []
    with noted_templates(large.app) as seen:
        for url in (f"{large.url}/login", large.setup_link()):  # there is no user yet
            page.goto(url)
            wrong += [f"{url}: {one}" for one in findings(page)]
        page.goto(large.login_link())
        client = logged_in(large)
        for path in {urlsplit(path).path: path for path in large_pages}.values():
            client.get(path)
        for path in paths:
            page.goto(large.url + path)
            wrong += [f"{path}: {one}" for one in findings(page)]
        for status, path, fields in posts:
            page.goto(f"{large.url}/settings")
            with page.expect_navigation() as answer:
                page.evaluate(_SUBMIT, [path, dict(fields)])
            assert answer.value.status == status, path
            wrong += [f"{path}: {one}" for one in findings(page)]
    assert not wrong, "\n".join(wrong)
    assert ran == []
    assert asked == {urlsplit(large.url).netloc}
    # The browser notes each refusal; a violation of the content security policy would stand here, too.
    console_errors[:] = [
        one for one in console_errors if "the server responded with a status of 4" not in one
    ]
    templates = Path(webqueue.__file__).parent / "templates"
    whole = {one.name for one in templates.glob("*.html") if not one.name.startswith("_")}
    assert {name for name in seen if not name.startswith("_")} == whole
