"""The audit log: acts folded, filters, pages, and what it costs when it has grown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from tests.helpers.plans import recorded_reads, scans
from webqueue import queries
from webqueue.database import Database
from webqueue.models import AuditEntry
from webqueue.queries import AuditFilter

START = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 20_000


def entry(minute: float, by: str, action: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "at": START + timedelta(minutes=minute),
        "by": by,
        "action": action,
        "object_kind": kind,
        "object_name": name,
        "before": {"note": ""},
        "after": {"note": "x"},
    }


def add(database: Database, rows: list[dict[str, Any]]) -> None:
    database.run(lambda s: s.execute(insert(AuditEntry), rows))


@pytest.fixture
def log(database: Database) -> Database:
    """One act on two sites and three targets, between whose entries somebody else wrote; and others around it."""
    add(
        database,
        [
            entry(0, "ann", "created", "site", "example"),
            entry(5, "ann", "changed", "site", "example"),
            entry(5, "ann", "changed", "site", "other"),
            entry(6, "bob", "changed", "target", "news"),
            entry(5, "ann", "changed", "target", "news"),
            entry(5, "ann", "changed", "target", "law"),
            entry(5, "ann", "created", "target", "new"),
            entry(5, "ann", "changed", "target", "rare"),
            entry(5, "bob", "changed", "target", "law"),
            entry(7, "ann", "logged in", "user", "ann"),
        ],
    )
    return database


def acts(
    session: Session, filters: AuditFilter | None = None, **more: Any
) -> list[tuple[str, str, dict[str, int]]]:
    page = queries.list_acts(session, filters, **more)
    return [(act.entry.by, act.entry.action, dict(act.kinds)) for act in page.items]


def test_what_one_act_did_is_one_however_others_wrote_between(log: Database) -> None:
    with log.reading() as session:
        assert acts(session) == [
            ("ann", "logged in", {"user": 1}),
            ("bob", "changed", {"target": 1}),
            ("bob", "changed", {"target": 1}),
            ("ann", "changed", {"site": 2, "target": 3}),
            ("ann", "created", {"target": 1}),
            ("ann", "created", {"site": 1}),
        ]
        act = queries.list_acts(session, shown=2).items[3]
        assert (act.count, [one.name for one in act.first]) == (5, ["example", "other"])
        each = queries.list_audit(session, AuditFilter(act=act.entry.id)).items
        assert [one.name for one in each] == ["rare", "law", "news", "other", "example"]
        assert queries.list_audit(session, AuditFilter(act=10**6)).items == ()


def test_filters_count_what_matches(log: Database) -> None:
    def minute(number: int) -> datetime:
        return START + timedelta(minutes=number)

    with log.reading() as session:
        assert acts(session, AuditFilter(kind="target", by="ann")) == [
            ("ann", "changed", {"target": 3}),
            ("ann", "created", {"target": 1}),
        ]
        assert acts(session, AuditFilter(name="news")) == [
            ("bob", "changed", {"target": 1}),
            ("ann", "changed", {"target": 1}),
        ]
        assert acts(session, AuditFilter(kind="user", name="ann")) == [("ann", "logged in", {"user": 1})]
        assert acts(session, AuditFilter(action="created", since=minute(1))) == [
            ("ann", "created", {"target": 1})
        ]
        assert [one[1] for one in acts(session, AuditFilter(until=minute(5)))] == ["created"]
        assert acts(session, AuditFilter(since=minute(6), until=minute(7))) == [
            ("bob", "changed", {"target": 1})
        ]


@pytest.mark.parametrize("filters", [AuditFilter(), AuditFilter(by="ann"), AuditFilter(kind="target")])
def test_pages_go_there_and_back_and_split_no_act(log: Database, filters: AuditFilter) -> None:
    with log.reading() as session:
        whole = [act.entry.id for act in queries.list_acts(session, filters).items]
        pages = list(_pages(session, filters))
        assert [number for page in pages for number in page] == whole
        cursor = f"+{whole[-1]}"
        back = queries.list_acts(session, filters, cursor=cursor, limit=2)
        assert [act.entry.id for act in back.items] == whole[-3:-1]
        assert back.next_cursor is not None
        first = queries.list_acts(session, filters, cursor=f"+{whole[1]}", limit=2)
        assert [act.entry.id for act in first.items] == whole[:1]
        assert first.previous_cursor is None


def _pages(session: Session, filters: AuditFilter) -> Iterator[list[int]]:
    cursor: str | None = None
    while True:
        page = queries.list_acts(session, filters, cursor=cursor, limit=2)
        yield [act.entry.id for act in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return


@pytest.fixture
def grown(database: Database) -> Database:
    """Logins and edits of years, imports of hundreds, a person and a kind that are seldom."""
    rows = []
    for number in range(MANY):
        if number % 1_000 < 600:  # an import
            rows.append(entry(number // 1_000 * 1_000, "ann", "changed", "target", f"target_{number % 600}"))
        else:
            rows.append(entry(number, "bob", "logged in", "user", "bob"))
    rows[50] = entry(0.5, "eve", "revoked", "token", "grabber")
    for start in range(0, MANY, 1_000):
        add(database, rows[start : start + 1_000])
    return database


@pytest.mark.parametrize("analyzed", [True, False], ids=["analyzed", "unanalyzed"])
def test_no_page_walks_the_whole_log(grown: Database, analyzed: bool) -> None:
    if analyzed:
        grown.run(lambda s: s.execute(text("ANALYZE")))
    late = START + timedelta(minutes=MANY - 500)
    with recorded_reads(grown) as sent, grown.reading() as session:
        first = queries.list_acts(session)
        assert first.next_cursor is not None
        queries.list_acts(session, cursor=first.next_cursor)
        queries.list_acts(session, cursor="10")
        for filters in (
            AuditFilter(by="eve"),
            AuditFilter(kind="token"),
            AuditFilter(kind="target", name="target_7"),
            AuditFilter(name="grabber"),
            AuditFilter(since=late),
            AuditFilter(until=START + timedelta(minutes=1)),
        ):
            assert queries.list_acts(session, filters).items
    with grown.engine.connect() as connection:
        wrong = [part for one in sent for part in scans(connection, one, frozenset({"audit"}))]
        connection.rollback()
    # The whole list is read in the order of an index, as far as the page goes.
    assert set(wrong) <= {"SCAN audit USING INDEX ix_audit_at"}, "\n".join(wrong)
    times = [act.entry.at for act in first.items]
    assert all(later >= earlier for later, earlier in pairwise(times))
