"""Documents on both databases: once per target and URL, versions by text, known pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, func, select

from tests.helpers.crawling import add_target
from webqueue import documents
from webqueue.database import Database
from webqueue.models import Document, DocumentAlias, DocumentVersion

URL = "http://example.org/a.html"
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def target(database: Database) -> str:
    add_target(database, "news")
    return "news"


def put(
    database: Database,
    target: str,
    *,
    now: datetime = T0,
    root: str = "root1",
    original: str | None = None,
    **fields: Any,
) -> documents.Stored:
    draft = documents.DocumentDraft(**({"url": URL, "title": "Title", "text": "Text"} | fields))
    with database.transaction() as session:
        return documents.store(
            session, draft, target_code=target, job_id="job1", root_id=root, now=now, original=original
        )


def only(database: Database) -> Document:
    with database.reading() as session:
        return session.scalars(select(Document)).one()


def versions(database: Database) -> list[tuple[int, str, str]]:
    with database.reading() as session:
        rows = session.execute(
            select(DocumentVersion.version, DocumentVersion.title, DocumentVersion.text).order_by(
                DocumentVersion.document_id, DocumentVersion.version
            )
        )
        return [(row.version, row.title, row.text) for row in rows]


def state(database: Database, target: str, url: str, *, root: str, began: datetime) -> str:
    with database.reading() as session:
        return documents.known(session, target, [url], root_id=root, chain_began_at=began)[url]


def test_a_first_draft_is_new_and_its_first_version(database: Database, target: str) -> None:
    result = put(database, target, published_at=T0 - HOUR, etag='"1"', original="ab" * 32)

    assert result.what == documents.NEW
    document = only(database)
    assert (document.id, document.url, document.title) == (result.document_id, URL, "Title")
    assert (document.first_seen_at, document.last_seen_at, document.changed_at) == (T0, T0, T0)
    assert (document.published_at, document.etag, document.original) == (T0 - HOUR, '"1"', "ab" * 32)
    assert (document.version, document.state, document.last_root_id) == (1, "live", "root1")
    assert versions(database) == [(1, "Title", "Text")]


def test_the_same_text_again_only_moves_last_seen(database: Database, target: str) -> None:
    put(database, target)
    result = put(database, target, now=T0 + HOUR, root="root2", etag='"2"')

    assert result.what == documents.UNCHANGED
    document = only(database)
    assert (document.first_seen_at, document.last_seen_at, document.changed_at) == (T0, T0 + HOUR, T0)
    assert (document.version, document.last_root_id, document.etag) == (1, "root2", '"2"')
    assert len(versions(database)) == 1


def test_another_text_is_a_new_version_and_the_old_one_stays(database: Database, target: str) -> None:
    put(database, target)
    result = put(database, target, now=T0 + HOUR, text="Other", title="Newer")

    assert result.what == documents.CHANGED
    document = only(database)
    assert (document.version, document.changed_at, document.title) == (2, T0 + HOUR, "Newer")
    assert versions(database) == [(1, "Title", "Text"), (2, "Newer", "Other")]


def test_versions_are_told_apart_by_the_hashed_text(database: Database, target: str) -> None:
    put(database, target, text="Seen 1 times. News.", hashed_text="News.")
    assert put(database, target, text="Seen 2 times. News.", hashed_text="News.").what == documents.UNCHANGED
    assert put(database, target, text="Seen 2 times. Olds.", hashed_text="Olds.").what == documents.CHANGED
    assert [text for _, _, text in versions(database)] == ["Seen 1 times. News.", "Seen 2 times. Olds."]


def test_two_targets_have_a_document_each(database: Database, target: str) -> None:
    add_target(database, "other")
    put(database, target)
    assert put(database, "other").what == documents.NEW
    assert state(database, "third", URL, root="x", began=T0 + HOUR) == documents.NEW


def test_what_no_database_can_store_is_replaced(database: Database, target: str) -> None:
    text = "NUL \x00 and half a pair \ud800"
    put(database, target, title=text, text=text, content_type="text/html; \x00" + "x" * 500, etag="\x00")
    assert put(database, target, title=text, text=text).what == documents.UNCHANGED
    assert versions(database) == [(1, "NUL � and half a pair �", "NUL � and half a pair �")]


def test_a_title_without_end_is_cut(database: Database, target: str) -> None:
    put(database, target, title="T" * 1_000_000)
    assert only(database).title == "T" * 1_000


def test_a_url_longer_than_any_index_entry(database: Database, target: str) -> None:
    url = "http://example.org/" + "é" * 20_000
    put(database, target, url=url)
    assert put(database, target, url=url).what == documents.UNCHANGED


def test_eight_writers_of_one_page_make_one_document(database: Database, target: str) -> None:
    barrier = threading.Barrier(8)

    def write(_: int) -> str:
        barrier.wait(timeout=30)
        return put(database, target).what

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(write, range(8)))
    assert sorted(done) == [documents.NEW] + [documents.UNCHANGED] * 7
    assert len(versions(database)) == 1


def test_eight_writers_of_different_texts_make_a_version_each(database: Database, target: str) -> None:
    barrier = threading.Barrier(8)

    def write(number: int) -> str:
        barrier.wait(timeout=30)
        return put(database, target, text=f"Text {number}").what

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(write, range(8)))
    assert sorted(done) == [documents.CHANGED] * 7 + [documents.NEW]
    assert [number for number, _, _ in versions(database)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert only(database).version == 8


def test_nothing_is_committed(database: Database, target: str) -> None:
    def fail_after_storing() -> None:
        with database.transaction() as session:
            draft = documents.DocumentDraft(url=URL, title="", text="")
            documents.store(session, draft, target_code=target, job_id="j", root_id="r", now=T0)
            raise RuntimeError("the caller fails")

    with pytest.raises(RuntimeError, match="the caller fails"):
        fail_after_storing()
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Document)) == 0


class TestOtherUrls:
    """A page's own address, and the links that led to it."""

    LINK = "http://example.org/a.html?from=list"

    def test_the_link_is_known_the_next_time(self, database: Database, target: str) -> None:
        put(database, target, aliases=(self.LINK,))
        assert only(database).url == URL
        for url in (URL, self.LINK):
            assert state(database, target, url, root="root2", began=T0 + HOUR) == documents.KNOWN

    def test_another_link_leads_to_the_same_document(self, database: Database, target: str) -> None:
        put(database, target, aliases=(self.LINK,))
        other = "http://example.org/a.html?from=top"
        assert put(database, target, aliases=(other,)).what == documents.UNCHANGED
        assert put(database, target, aliases=(other,), text="Changed").what == documents.CHANGED
        assert state(database, target, other, root="root2", began=T0 + HOUR) == documents.KNOWN
        assert only(database).version == 2

    def test_the_same_title_is_the_same_page_by_another_link(self, database: Database, target: str) -> None:
        put(database, target, aliases=(self.LINK,), text="Seen once")
        assert (
            put(database, target, aliases=("http://example.org/x",), text="Seen twice").what
            == documents.CHANGED
        )
        assert only(database).version == 2

    def test_pages_that_all_claim_one_address_stay_apart(self, database: Database, target: str) -> None:
        section = "http://example.org/news/"
        for number in range(3):
            result = put(
                database,
                target,
                url=section,
                aliases=(f"http://example.org/{number}.html",),
                title=f"Article {number}",
                text=f"Text {number}",
            )
            assert result.what == documents.NEW
        for number in range(3):
            url = f"http://example.org/{number}.html"
            assert state(database, target, url, root="root2", began=T0 + HOUR) == documents.KNOWN
        with database.reading() as session:
            urls = session.scalars(select(Document.url).order_by(Document.id)).all()
        assert urls == [section, "http://example.org/1.html", "http://example.org/2.html"]

    def test_a_document_stored_under_its_link_stays_there(self, database: Database, target: str) -> None:
        put(database, target, url=self.LINK)
        assert put(database, target, url=URL, aliases=(self.LINK,)).what == documents.UNCHANGED
        assert only(database).url == self.LINK

    def test_aliases_go_with_their_document(self, database: Database, target: str) -> None:
        put(database, target, aliases=(self.LINK,))
        with database.transaction() as session:
            session.delete(session.scalars(select(Document)).one())
        with database.reading() as session:
            assert session.scalar(select(func.count()).select_from(DocumentAlias)) == 0
            assert session.scalar(select(func.count()).select_from(DocumentVersion)) == 0

    def test_validators_and_seen_find_it_by_the_link(self, database: Database, target: str) -> None:
        put(database, target, aliases=(self.LINK,), etag='"7"', last_modified="Sun, 01 Mar 2026 12:00:00 GMT")
        with database.transaction() as session:
            assert documents.validators(session, target, self.LINK) == {
                "if-none-match": '"7"',
                "if-modified-since": "Sun, 01 Mar 2026 12:00:00 GMT",
            }
            assert documents.seen(
                session, target_code=target, url=self.LINK, job_id="job2", root_id="root2", now=T0 + HOUR
            )
        assert only(database).last_seen_at == T0 + HOUR


class TestKnown:
    """DESIGN section 6, "Known pages"."""

    def test_stored_before_the_chain_is_known(self, database: Database, target: str) -> None:
        put(database, target, root="old")
        assert state(database, target, URL, root="new", began=T0 + HOUR) == documents.KNOWN

    def test_stored_within_the_chain_is_not(self, database: Database, target: str) -> None:
        put(database, target, root="chain", now=T0 + HOUR)
        assert state(database, target, URL, root="chain", began=T0) == documents.IN_CHAIN

    def test_fetched_again_within_the_chain_is_not_fetched_a_third_time(
        self, database: Database, target: str
    ) -> None:
        put(database, target, root="old")
        with database.transaction() as session:
            documents.seen(
                session, target_code=target, url=URL, job_id="j", root_id="chain", now=T0 + 2 * HOUR
            )
        assert state(database, target, URL, root="chain", began=T0 + HOUR) == documents.IN_CHAIN
        assert state(database, target, URL, root="later", began=T0 + 3 * HOUR) == documents.KNOWN

    def test_another_chain_stored_it_meanwhile(self, database: Database, target: str) -> None:
        put(database, target, root="other", now=T0 + HOUR)
        assert state(database, target, URL, root="chain", began=T0) == documents.IN_CHAIN

    def test_many_urls_in_one_statement(self, database: Database, target: str) -> None:
        put(database, target)
        urls = [URL, *(f"http://example.org/{number}" for number in range(3_000))]
        statements: list[str] = []
        with database.reading() as session:
            connection = session.connection()
            event.listen(connection, "before_cursor_execute", lambda *args: statements.append(args[2]))
            found = documents.known(session, target, urls, root_id="r2", chain_began_at=T0 + HOUR)
        assert len(statements) == 1
        assert list(found) == urls
        assert [url for url, what in found.items() if what != documents.NEW] == [URL]

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        writes=st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from("ABC"), st.integers(1, 20)), max_size=12
        ),
        chain=st.sampled_from("ABC"),
        began=st.integers(0, 21),
    )
    def test_the_rule(
        self, database: Database, target: str, writes: list[tuple[int, str, int]], chain: str, began: int
    ) -> None:
        """Against the rule in words, for any history: page number, chain that stored it, and minute."""
        with database.transaction() as session:
            session.execute(Document.__table__.delete())  # type: ignore[attr-defined]
        history = sorted(writes, key=lambda write: write[2])
        for page, root, minute in history:
            put(database, target, url=f"{URL}?{page}", root=root, now=T0 + timedelta(minutes=minute))
        with database.reading() as session:
            found = documents.known(
                session,
                target,
                [f"{URL}?{page}" for page in range(4)],
                root_id=chain,
                chain_began_at=T0 + timedelta(minutes=began),
            )
        for page in range(4):
            stored = [(root, minute) for number, root, minute in history if number == page]
            if not stored:
                expected = documents.NEW
            elif stored[0][1] < began and stored[-1][0] != chain:
                expected = documents.KNOWN
            else:
                expected = documents.IN_CHAIN
            assert found[f"{URL}?{page}"] == expected


class TestMissing:
    def miss(self, database: Database, target: str, root: str, *, hours: int = 1) -> str | None:
        with database.transaction() as session:
            return documents.mark_missing(
                session, target_code=target, url=URL, root_id=root, now=T0 + hours * HOUR
            )

    def test_twice_in_a_row_is_gone_since_then_and_kept(self, database: Database, target: str) -> None:
        put(database, target)
        states = [self.miss(database, target, root, hours=hours) for hours, root in enumerate("ABC")]
        assert states == ["live", "gone", "gone"]
        assert only(database).gone_at == T0 + HOUR, "the second time, not the last one"
        assert len(versions(database)) == 1

    def test_a_chain_that_is_retried_counts_once(self, database: Database, target: str) -> None:
        put(database, target)
        assert [self.miss(database, target, root) for root in "AAAB"] == ["live", "live", "live", "gone"]

    @pytest.mark.parametrize("again", ["store", "seen"])
    def test_a_page_that_comes_back_is_live(self, database: Database, target: str, again: str) -> None:
        put(database, target)
        self.miss(database, target, "A")
        self.miss(database, target, "B")
        if again == "store":
            put(database, target)
        else:
            with database.transaction() as session:
                documents.seen(session, target_code=target, url=URL, job_id="j", root_id="r", now=T0)
        assert (only(database).state, only(database).gone_at) == ("live", None)
        assert self.miss(database, target, "C") == "live"

    def test_nobody_misses_what_was_never_stored(self, database: Database, target: str) -> None:
        assert self.miss(database, target, "A") is None
        with database.transaction() as session:
            assert not documents.seen(session, target_code=target, url=URL, job_id="j", root_id="r", now=T0)


class TestForgetting:
    """Retention of documents (off by default): what goes stays known."""

    def forget(self, database: Database, before: datetime, limit: int = 100) -> int:
        with database.transaction() as session:
            return documents.forget_documents(session, before=before, now=T0 + 9 * HOUR, limit=limit)

    def test_what_no_request_found_for_long_goes_with_its_versions(
        self, database: Database, target: str
    ) -> None:
        for number in range(5):
            put(database, target, url=f"{URL}?{number}", now=T0 + number * HOUR)
        assert self.forget(database, T0 + 3 * HOUR, limit=2) == 2
        assert self.forget(database, T0 + 3 * HOUR, limit=2) == 1
        assert self.forget(database, T0 + 3 * HOUR) == 0
        with database.reading() as session:
            assert sorted(session.scalars(select(Document.url))) == [f"{URL}?3", f"{URL}?4"]
        assert len(versions(database)) == 2

    def test_it_stays_known_and_may_be_stored_anew(self, database: Database, target: str) -> None:
        put(database, target)
        assert self.forget(database, T0 + HOUR) == 1
        assert state(database, target, URL, root="later", began=T0 + 10 * HOUR) == documents.KNOWN
        assert put(database, target, root="forced", now=T0 + 20 * HOUR).what == documents.NEW
        assert state(database, target, URL, root="forced", began=T0 + 20 * HOUR) == documents.IN_CHAIN
        assert self.forget(database, T0 + 21 * HOUR) == 1, "its address is remembered already"


def test_another_process_sees_it(
    database: Database, target: str, open_database: Callable[[], Database]
) -> None:
    put(database, target)
    assert put(open_database(), target).what == documents.UNCHANGED
