"""Documents on their pages, as exports and as a feed: found words marked, changes told, formulas harmless."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import feedparser
import pytest
from flask import Flask
from sqlalchemy import event, insert

from tests.helpers.admin import HOSTILE
from tests.helpers.api import ApiClient
from tests.helpers.browsing import Browser
from tests.helpers.crawling import add_target
from webqueue import documents
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.models import Document
from webqueue.queries import DocumentFilter, document_export, document_search
from webqueue.settings import Settings

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def engine_name() -> str:
    """The reads below these pages are tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def app(settings: Settings, database: Database) -> Flask:
    add_target(database, "news")
    return create_app(settings, database)


@pytest.fixture
def browser(app: Flask, database: Database) -> Browser:
    return Browser(app, database, "viewer")


def put(database: Database, name: str, title: str, text: str, *, hours: int = 0, target: str = "news") -> int:
    with database.transaction() as session:
        stored = documents.store(
            session,
            documents.DocumentDraft(f"http://example.org/{name}", title, text),
            target_code=target,
            job_id="0123456789ab",
            root_id="0123456789ab",
            now=T0 + timedelta(hours=hours),
        )
    assert stored.document_id is not None
    return stored.document_id


def miss(database: Database, name: str) -> None:
    for hours, root in enumerate("ab"):
        with database.transaction() as session:
            documents.mark_missing(
                session,
                target_code="news",
                url=f"http://example.org/{name}",
                root_id=root,
                now=T0 + timedelta(hours=hours),
            )


class TestTheList:
    def test_marks_what_was_found_and_escapes_the_rest(self, browser: Browser, database: Database) -> None:
        put(database, "a", f"{HOSTILE} harbour", f"{HOSTILE} The harbour office <b>opens</b> the harbour.")
        page = browser.get("/documents?q=HARBOUR").text
        assert page.count("<mark>harbour</mark>") == 3
        assert "&lt;b&gt;opens&lt;/b&gt;" in page
        assert "<img src=x" not in page
        assert 'value="HARBOUR"' in page

    def test_shows_what_is_gone_and_since_when(self, browser: Browser, database: Database) -> None:
        put(database, "a", "Stays", "text")
        number = put(database, "b", "Vanished", "text")
        miss(database, "b")
        page = browser.get("/documents?state=gone").text
        assert "Vanished" in page
        assert "Stays" not in page
        assert f'since <time datetime="{(T0 + timedelta(hours=1)):%Y-%m-%dT%H:%M}' in page
        shown = browser.get(f"/documents/{number}").text
        assert re.search(r'id="gone">Since <time datetime="2026-03-01T13:00', shown)
        assert "404 or 410 twice" in shown

    @pytest.mark.parametrize("query", ['"', "%25", "%22)(*", "NEAR(", "x" * 10_000, "%ED%A0%80"])
    def test_takes_any_query_for_plain_text(self, browser: Browser, app: Flask, query: str) -> None:
        assert browser.get(f"/documents?q={query}").status_code == 200
        assert browser.get(f"/documents.csv?q={query}").status_code == 200

    def test_says_what_short_words_do_not_reach(
        self, browser: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(database, "a", "政府", "省")
        put(database, "b", "b", "省")
        assert "are looked for in the newest" not in browser.get("/documents?q=省").text
        monkeypatch.setattr(document_search, "SHORT_REACH", 1)
        page = browser.get("/documents?q=省").text
        assert "Words of one or two characters are looked for in the newest 1 documents only" in page


class TestWhatChanged:
    @pytest.fixture
    def number(self, database: Database, app: Flask) -> int:
        put(database, "a", "Fees", "The fee is 20 euros.\n" + "Same.\n" * 20)
        put(database, "a", "Fees", "The fee is 25 euros.\n" + "Same.\n" * 20, hours=1)
        return put(database, "a", "New Fees", f"The fee is 25 {HOSTILE} euros.\n" + "Same.\n" * 20, hours=2)

    def test_the_last_two_versions_are_compared(self, browser: Browser, number: int) -> None:
        page = browser.get(f"/documents/{number}").text
        assert "From version 2 to version 3" in page
        assert '<ins><span class="visually-hidden">added: </span>New </ins>Fees' in page
        assert "<img src=x" not in page
        assert "<summary>18 unchanged lines</summary>" in page

    def test_any_two_are_in_whatever_order(self, browser: Browser, number: int) -> None:
        for query in ("from=1&to=2", "from=2&to=1", "from=1&to=2&version=1", "version=2"):
            page = browser.get(f"/documents/{number}?{query}").text
            assert "From version 1 to version 2: 1 word added, 1 removed." in page
            assert "removed: </span>20</del>" in page
            assert "added: </span>25</ins>" in page
        assert "From version 1 to version 3" in browser.get(f"/documents/{number}?from=1&to=3").text
        assert "From version 1 to version 2" in browser.get(f"/documents/{number}?version=1").text

    def test_one_that_never_was_is_not_found(self, browser: Browser, number: int) -> None:
        assert browser.get(f"/documents/{number}?from=1&to=9").status_code == 404
        assert browser.get(f"/documents/{number}?from=x&to=y").status_code == 200
        huge = "9" * 30
        for path in (f"{number}?from=1&to={huge}", f"{number}?version={huge}", huge):
            assert browser.get(f"/documents/{path}").status_code == 404, path

    def test_a_document_with_one_version_has_nothing_to_compare(
        self, browser: Browser, database: Database
    ) -> None:
        assert "Compare" not in browser.get(f"/documents/{put(database, 'z', 'One', 'text')}").text


class TestExports:
    @pytest.fixture
    def client(self, database: Database, app: Flask) -> ApiClient:
        return ApiClient(database)

    def test_of_pages_api_and_filters_agree(
        self, browser: Browser, client: ApiClient, database: Database
    ) -> None:
        put(database, "a", "政府公报", "第一行\n第二行 \u2028 end")
        put(database, "b", '=HYPERLINK("http://evil")', "\t+1")
        lines = client.call("GET", "documents.jsonl", role="viewer").text
        assert lines == browser.get("/documents.jsonl").text
        rows = [json.loads(line) for line in lines.split("\n")[:-1]]
        assert [row["title"] for row in rows] == ['=HYPERLINK("http://evil")', "政府公报"]
        assert rows[1]["text"] == "第一行\n第二行 \u2028 end"
        assert rows[0]["changed_at"] == "2026-03-01T12:00:00Z"
        table = list(csv.DictReader(io.StringIO(client.call("GET", "documents.csv").text, newline="")))
        assert [row["title"] for row in table] == ['\'=HYPERLINK("http://evil")', "政府公报"]
        assert [row["text"] for row in table] == ["'\t+1", "第一行\n第二行 \u2028 end"]
        mark = b"\xef\xbb\xbf"
        assert browser.get("/documents.csv").data == mark + client.call("GET", "documents.csv").data, (
            "spreadsheets need it to read Chinese, programs stumble over it"
        )
        assert browser.get("/documents.csv?q=nothing").data.startswith(mark + b"id,target,url,")
        assert client.call("GET", "documents.csv?q=政府").text.count("\n") == 3, (
            "names, and a text of two lines"
        )
        assert client.call("GET", "documents.jsonl?state=gone").text == ""
        assert client.call("GET", "documents.jsonl?nonsense=1").status_code == 422
        assert client.call("GET", "documents.csv", role=None).status_code == 401

    def test_stream_in_small_reads_with_little_memory(self, database: Database, app: Flask) -> None:
        text = "x" * 200_000
        with database.transaction() as session:
            session.execute(
                insert(Document),
                [
                    {
                        "target_code": "news", "url": f"http://e/{number}", "url_hash": str(number), "title": "T", "text": text,
                        "first_seen_at": T0, "last_seen_at": T0, "changed_at": T0, "content_hash": "", "first_job_id": "",
                        "last_job_id": "", "last_root_id": "",
                    }
                    for number in range(250)
                ],
            )  # fmt: skip
        open_now, most_open = 0, 0

        @event.listens_for(database.engine, "checkout")
        def taken(*_: object) -> None:
            nonlocal open_now, most_open
            open_now += 1
            most_open = max(most_open, open_now)

        @event.listens_for(database.engine, "checkin")
        def given_back(*_: object) -> None:
            nonlocal open_now
            open_now -= 1

        tracemalloc.start()
        try:
            count = 0
            for line in document_export.jsonl_lines(database, DocumentFilter()):
                assert open_now == 0, "nobody's read stays open while a slow reader takes a line"
                assert len(line) > 200_000
                count += 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (count, most_open) == (250, 1)
        assert peak < 12_000_000, f"{peak:,} bytes for 50 MB"

    def test_the_feed_is_atom(self, client: ApiClient, database: Database) -> None:
        add_target(database, "other")
        put(database, "a", "First & <b>", "Text \x0b of it\ufffe & more")
        put(database, "b", "Second", "Text", hours=1)
        put(database, "c", "", "", hours=2, target="other")
        answer = client.call("GET", "documents.atom")
        assert answer.content_type == "application/atom+xml; charset=utf-8"
        check_atom(answer.data)
        found = feedparser.parse(answer.data)
        assert not found.bozo
        assert [entry.title for entry in found.entries] == ["(no title)", "Second", "First & <b>"]
        assert found.entries[2].link == "http://example.org/a"
        assert found.entries[2].summary == "Text \ufffd of it\ufffd & more"
        mine = feedparser.parse(client.call("GET", "documents.atom?target=news").data)
        assert [entry.id for entry in mine.entries] == [entry.id for entry in found.entries[1:]]
        again = client.call("GET", "documents.atom", headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304
        check_atom(client.call("GET", "documents.atom?target=nothing").data)

    def test_a_feed_reader_may_send_the_token_as_a_password_and_only_read(self, client: ApiClient) -> None:
        def basic(password: str) -> dict[str, str]:
            return {"Authorization": "Basic " + base64.b64encode(f"reader:{password}".encode()).decode()}

        token = next(iter(client.tokens.values()))
        for path, status in (("documents.atom", 200), ("documents", 200)):
            assert client.call("GET", path, role=None, headers=basic(token)).status_code == status
        assert client.call("GET", "documents.atom", role=None, headers=basic("wrong")).status_code == 401
        for broken in ("Basic", "Basic ", "Basic ===", "Basic " + base64.b64encode(b"\xff\xfe").decode()):
            headers = {"Authorization": broken}
            assert client.call("GET", "documents.atom", role=None, headers=headers).status_code == 401
        answer = client.call("POST", "rate-keys/x/pause", {}, role=None, headers=basic(token))
        assert answer.status_code == 401, "no other site's page can make a browser change something"


def check_atom(body: bytes) -> None:
    """What RFC 4287 asks of a feed and its entries (sections 4.1.1 and 4.1.2)."""
    feed = ET.fromstring(body)
    assert feed.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated"):
        assert len(feed.findall(f"{ATOM}{name}")) == 1, name
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    assert [link.get("rel") for link in feed.findall(f"{ATOM}link")] == ["self"]
    ids = [entry.findtext(f"{ATOM}id") for entry in feed.findall(f"{ATOM}entry")]
    assert len(set(ids)) == len(ids)
    for entry in feed.findall(f"{ATOM}entry"):
        for name in ("id", "title", "updated"):
            assert len(entry.findall(f"{ATOM}{name}")) == 1, name
        assert len(entry.findall(f"{ATOM}summary")) == 1
        assert entry.findtext(f"{ATOM}title")
    for element in (*feed.iter(f"{ATOM}updated"), *feed.iter(f"{ATOM}published")):
        assert datetime.fromisoformat(str(element.text)).tzinfo is not None


def test_a_long_text_is_shown_in_part_and_downloaded_whole(browser: Browser, database: Database) -> None:
    whole = "A line of a very long text.\n" * 20_000
    number = put(database, "long", "A book", whole)
    page = browser.get(f"/documents/{number}")
    assert len(page.data) < 250_000
    assert "the first 200,000 of 560,000 characters" in page.text
    link = re.search(r'href="(/documents/[^"]*text\.txt[^"]*)"', page.text)
    assert link is not None
    download = browser.get(link.group(1).replace("&amp;", "&"))
    assert download.text == whole
    assert (
        download.headers["Content-Disposition"] == f'attachment; filename="document-{number}-version-1.txt"'
    )
    assert download.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "text.txt" not in browser.get(f"/documents/{put(database, 'short', 'A note', 'Short.')}").text
