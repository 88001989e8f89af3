"""Search over title, text and address, on both databases: with the index, without it, and with hostile words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import create_engine, event, text

from tests.helpers.crawling import add_target
from tests.helpers.postgres import PostgresServer
from webqueue import documents, migrations, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.migrations import search_index
from webqueue.queries import DocumentFilter, document_export, document_search
from webqueue.queries.document_search import Search

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = {
    "budget": ("Budget of the harbour", "The council adopted the budget for dredging the Harbour basin."),
    "gov": ("广东省人民政府公报", "关于进一步加强环境保护工作的通知。各市人民政府、省政府各部门。"),
    "rain": ("Wetter", 'Überschwemmung in der Straße: 100% aller Keller, file_name AND "NEAR(x)"'),
    "plain": ("Nothing special", "100 per cent, fileXname, and near x"),
}


def put(database: Database, name: str, title: str, body: str, *, hours: int = 0) -> None:
    with database.transaction() as session:
        documents.store(
            session,
            documents.DocumentDraft(f"http://example.org/{name}.html", title, body),
            target_code="news",
            job_id="job1",
            root_id="root1",
            now=T0 + timedelta(hours=hours),
        )


def found(database: Database, query: str, **more: object) -> list[str]:
    with database.reading() as session:
        page = queries.list_documents(session, DocumentFilter(q=query, **more), limit=100)  # type: ignore[arg-type]
    return [row.url.rpartition("/")[2].removesuffix(".html") for row in page.items]


@pytest.fixture
def filled(database: Database) -> Database:
    add_target(database, "news")
    for hours, (name, (title, body)) in enumerate(TEXTS.items()):
        put(database, name, title, body, hours=hours)
    return database


def without_index(database: Database) -> None:
    with database.engine.connect() as connection:
        if database.is_sqlite:
            for trigger in ("insert", "delete", "update"):
                connection.execute(text(f"DROP TRIGGER documents_fts_{trigger}"))
            connection.execute(text("DROP TABLE documents_fts"))
        else:
            connection.execute(text("DROP INDEX ix_documents_search"))
            connection.execute(text("DROP EXTENSION pg_trgm"))
        connection.commit()


class TestWords:
    @pytest.mark.parametrize("indexed", [True, False])
    def test_are_found_in_title_text_and_address(self, filled: Database, indexed: bool) -> None:
        if not indexed:
            without_index(filled)
        assert found(filled, "HARBOUR") == ["budget"]
        assert found(filled, "budget dredging") == ["budget"], "all of them, wherever"
        assert found(filled, "budget wetter") == []
        assert found(filled, "org/gov") == ["gov"]
        assert found(filled, "arbou") == ["budget"], "parts of words too: Chinese has no spaces"
        assert found(filled, "  ") == ["plain", "rain", "gov", "budget"]

    @pytest.mark.parametrize("indexed", [True, False])
    def test_of_chinese_are_found_at_any_length(self, filled: Database, indexed: bool) -> None:
        if not indexed:
            without_index(filled)
        for query in ("人民政府公报", "环境保护", "政府", "省", "人民政府 环境", "公报 保护工作"):
            assert found(filled, query) == ["gov"], query
        assert found(filled, "海关") == []

    def test_are_plain_whatever_they_look_like(self, filled: Database) -> None:
        assert found(filled, "100%") == ["rain"]
        assert found(filled, "e_n") == ["rain"]
        assert found(filled, '"near(x)"') == ["rain"]
        assert found(filled, 'AND "NEAR') == ["rain"]
        for hostile in (
            '"', "'", "*", "a*", "^title", "title:x", "NOT", "NOT OR AND", "(((", "-x +y", "{}", "\\", "\\%", "/", "//_",
            "%", "_", "a\x00b", "\x00", "abc\x00def", "\ud800\udfff", "😀😀😀", "x" * 200, "' OR 1=1 --", "\t\n abc \r",
            '""""', "NEAR(a b, 3)", "a" * 2 + "%" * 198, " ".join("abcdefghijklmnopqrstuvwxyz") * 3,
        ):  # fmt: skip
            found(filled, hostile)  # plain text, never an error
        with pytest.raises(InvalidInputError, match="has 10000 characters"):
            found(filled, "q" * 10_000)

    def test_of_other_alphabets_are_found_whatever_the_case_by_the_index(self, filled: Database) -> None:
        put(filled, "moscow", "Новости", "Правительство Москвы сообщает", hours=9)
        assert found(filled, "МОСКВЫ") == ["moscow"]


class TestTheIndex:
    def test_follows_every_change(self, filled: Database) -> None:
        put(filled, "budget", "Budget of the harbour", "Something else: quarrying.", hours=20)
        assert found(filled, "dredging") == [], "an old version is not searched"
        assert found(filled, "quarrying") == ["budget"]
        with filled.transaction() as session:
            documents.forget_documents(session, before=T0 + timedelta(hours=2), now=T0, limit=10)
        assert found(filled, "环境保护") == []
        assert found(filled, "quarrying") == ["budget"]

    def test_answers_with_the_other_filters_and_in_pages(self, filled: Database) -> None:
        for number in range(7):
            put(filled, f"page{number}", f"Ferry no. {number}", "Ferry timetable", hours=30 + number)
        assert found(filled, "ferry", since=T0 + timedelta(hours=35)) == ["page6", "page5"]
        assert found(filled, "ferry", target="other") == []
        seen: list[str] = []
        cursor = None
        while True:
            with filled.reading() as session:
                page = queries.list_documents(session, DocumentFilter(q="timetable"), cursor=cursor, limit=3)
            seen += [row.url[-6:-5] for row in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == list("6543210")

    def test_is_what_the_database_uses(self, filled: Database) -> None:
        statements: list[tuple[str, Any]] = []
        with filled.reading() as session:
            connection = session.connection()
            event.listen(
                connection, "before_cursor_execute", lambda *args: statements.append((args[2], args[3]))
            )
            queries.list_documents(session, DocumentFilter(q="dredging"))
            if filled.is_sqlite:
                statement, parameters = statements[-1]
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
                assert any("documents_fts VIRTUAL TABLE" in row[3] for row in plan), plan
                return
            (asked,) = (number for number, (sent, _) in enumerate(statements) if "ILIKE" in sent)
            assert "SET LOCAL enable_seqscan = off" in [sent for sent, _ in statements[:asked]]
            for sent, _ in statements[:asked]:
                if sent.startswith("SET LOCAL"):
                    connection.exec_driver_sql(sent)
            statement, parameters = statements[asked]
            rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).all()
            plan_text = "\n".join(row[0] for row in rows)
            assert plan_text.count("Bitmap Index Scan on ix_documents_search") == 3, plan_text
            connection.exec_driver_sql("SET LOCAL enable_seqscan TO DEFAULT")
            assert connection.exec_driver_sql("SHOW enable_seqscan").scalar() == "on"

    @pytest.mark.parametrize("few", [3_000, 1])
    def test_is_asked_once_for_all_pages_of_an_export_and_of_a_reader(
        self, filled: Database, monkeypatch: pytest.MonkeyPatch, few: int
    ) -> None:
        monkeypatch.setattr(document_search, "_FEW", few)
        monkeypatch.setattr(document_export, "_ROWS_AT_ONCE", 2)
        for number in range(7):
            put(filled, f"ferry{number}", "Ferry", "Ferry timetable", hours=30 + number)
        asked: list[str] = []

        def note(*args: Any) -> None:
            if "SET LOCAL enable_seqscan = off" in args[2]:
                asked.append(args[2])

        once = 0 if filled.is_sqlite else 1
        event.listen(filled.engine, "before_cursor_execute", note)
        try:
            assert len(list(document_export.jsonl_lines(filled, DocumentFilter(q="ferry")))) == 7
            assert len(asked) == once
            cursor: str | None = None
            for _ in range(4):
                with filled.reading() as session:
                    page = queries.list_documents(session, DocumentFilter(q="ferry"), cursor=cursor, limit=2)
                cursor = page.next_cursor
            assert cursor is None
            assert len(asked) == 2 * once, "a first page asks anew, the others do not"
        finally:
            event.remove(filled.engine, "before_cursor_execute", note)

    def test_of_a_frequent_word_answers_from_the_newest_on(
        self, filled: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(document_search, "_FEW", 1)
        for number in range(3):
            put(filled, f"ferry{number}", "Ferry", "Ferry timetable", hours=30 + number)
        assert found(filled, "ferry") == ["ferry2", "ferry1", "ferry0"]
        assert found(filled, "dredging") == ["budget"]

    def test_is_filled_with_the_documents_of_before(self, filled: Database) -> None:
        without_index(filled)
        assert migrations.upgrade(filled) is True, "an upgrade makes the index that is missing"
        assert migrations.upgrade(filled) is False
        assert found(filled, "dredging") == ["budget"]
        assert found(filled, "berschwemmung") == ["rain"]
        put(filled, "rain", "Wetter", "Sonne", hours=40)
        assert found(filled, "berschwemmung") == []

    def test_says_how_it_is(self, filled: Database) -> None:
        with filled.reading() as session:
            assert document_search.state(session) == document_search.SearchState(True, "")
        without_index(filled)
        with filled.reading() as session:
            state = document_search.state(session)
        assert not state.indexed
        assert ("FTS5" if filled.is_sqlite else "CREATE EXTENSION pg_trgm") in state.message


def test_short_words_reach_the_newest_documents_only_and_say_so(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled.reading() as session:
        assert document_search.reaches_all(session, Search.of("省"))
    monkeypatch.setattr(document_search, "SHORT_REACH", 2)
    assert found(filled, "省") == []
    assert found(filled, "人民政府") == ["gov"], "the index reaches all"
    assert found(filled, "100 %") == ["rain"]
    with filled.reading() as session:
        assert not document_search.reaches_all(session, Search.of("人民政府 省"))
        assert document_search.reaches_all(session, Search.of("人民政府"))


def test_snippets_show_the_first_match_marked(filled: Database) -> None:
    put(filled, "long", "Long", "a " * 500 + "the NEEDLE\n\n in " + "b " * 500 + "needle", hours=50)
    search = Search.of("needle in")
    with filled.reading() as session:
        (row,) = queries.list_documents(session, DocumentFilter(q="needle")).items
        pieces = document_search.snippets(session, search, [row.id])[row.id]
        assert document_search.snippets(session, Search.of("zebra"), [row.id]) == {}
    told = "".join(piece.text for piece in pieces)
    assert told.startswith("… a a ")
    assert told.endswith(" …")
    assert len(told) < 260
    assert [piece.text for piece in pieces if piece.hit] == ["NEEDLE", "in"]
    assert document_search.marked(Search.of(".*"), "a.*b")[1] == document_search.Piece(".*", hit=True)


class TestAnUpgrade:
    """Of a database that has documents already."""

    @pytest.fixture
    def old(self, empty_database_url: str, instance: Path) -> Iterator[Database]:
        database = Database(empty_database_url, instance_path=instance)
        with database.engine.connect() as connection:
            config = migrations._config()
            config.attributes["connection"] = connection
            command.upgrade(config, "0004")
            add_target_rows(connection)
            connection.commit()
        yield database
        database.close()

    def test_indexes_them_in_batches(self, old: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(search_index, "_BATCH", 2)
        assert migrations.upgrade(old) is True
        assert found(old, "harbour") == ["4", "3", "2", "1", "0"]
        assert found(old, "number 3") == ["3"]


def add_target_rows(connection: object) -> None:
    """Documents as the tables of revision 0004 have them."""
    at = "2026-01-01 00:00:00"
    execute = connection.execute  # type: ignore[attr-defined]
    execute(
        text(
            "INSERT INTO sites (code, name, base_url, host, adapter, timezone, min_gap_sec, obey_robots, http, created_at, "
            "changed_at) VALUES ('s', 's', 'http://e/', 'e', 'list', 'UTC', 0, :yes, '{}', :at, :at)"
        ),
        {"at": at, "yes": True},
    )
    columns = {
        "code": "news", "site_code": "s", "handler": "crawl", "params": "{}", "interval_sec": 1, "overlap": "skip",
        "catch_up": "one", "catch_up_limit": 1, "jitter_sec": 0, "track_checkpoint": True, "max_runtime_sec": 1,
        "retry_times": 0, "retry_wait_sec": 1, "enabled": True, "tags": "[]", "note": "", "owner": "", "created_at": at,
        "changed_at": at, "clean_runs": 0,
    }  # fmt: skip
    names = {
        row[0]
        for row in execute(text("SELECT * FROM targets")).cursor.description  # the columns that there are
    }
    row = {name: value for name, value in columns.items() if name in names}
    execute(
        text(f"INSERT INTO targets ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"), row
    )
    for number in range(5):
        document = {
            "target_code": "news", "url": f"http://e/{number}.html", "url_hash": f"{number:064}", "title": "Title",
            "text": f"Harbour, number {number}.", "first_seen_at": at, "last_seen_at": at, "changed_at": at, "state": "live",
            "version": 1, "content_hash": "", "content_type": "", "misses": 0, "first_job_id": "", "last_job_id": "",
            "last_root_id": "",
        }  # fmt: skip
        execute(
            text(
                f"INSERT INTO documents ({', '.join(document)}) VALUES ({', '.join(f':{name}' for name in document)})"
            ),
            document,
        )


@pytest.mark.postgresql
def test_a_role_that_may_not_make_the_extension_still_upgrades_and_searches(
    postgres_server: PostgresServer, instance: Path
) -> None:
    url = postgres_server.create_database(empty=True)
    name = url.rpartition("/")[2]
    admin = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    try:
        with admin.connect() as connection:
            connection.execute(text("CREATE ROLE limited LOGIN PASSWORD 'limited'"))
            connection.execute(text(f'REVOKE CREATE ON DATABASE "{name}" FROM PUBLIC'))
            connection.execute(text("GRANT ALL ON SCHEMA public TO limited"))
        limited = Database(
            admin.url.set(username="limited", password="limited").render_as_string(hide_password=False),
            instance_path=instance,
        )
        try:
            assert migrations.upgrade(limited) is True
            assert migrations.upgrade(limited) is False
            add_target(limited, "news")
            put(limited, "gov", *TEXTS["gov"])
            assert found(limited, "人民政府公报") == ["gov"]
            with limited.reading() as session:
                assert "CREATE EXTENSION pg_trgm" in document_search.state(session).message
            with admin.connect() as connection:
                connection.execute(text("CREATE EXTENSION pg_trgm"))
            assert migrations.upgrade(limited) is True, "what was missing is made now"
            with limited.reading() as session:
                assert document_search.state(session).indexed
            assert found(limited, "人民政府公报") == ["gov"]
        finally:
            limited.close()
    finally:
        with admin.connect() as connection:
            connection.execute(text("DROP OWNED BY limited CASCADE"))
            connection.execute(text("DROP ROLE limited"))
        admin.dispose()
        postgres_server.drop_database(url)
