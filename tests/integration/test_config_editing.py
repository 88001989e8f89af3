"""Putting and deleting single sites and targets, and pausing targets, on both databases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from webqueue import config, jobs
from webqueue.config import MASK, Change, What
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, Document, Site, Target

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SITE: dict[str, Any] = {"base_url": "http://www.example.org/", "timezone": "Asia/Shanghai", "cooldown_sec": 5}
TARGET: dict[str, Any] = {
    "site": "example",
    "handler": "python",
    "schedule": "0 3 * * *",
    "interval_sec": 2,
    "params": {"function": "os.path:join"},
}


def put_site(database: Database, data: Mapping[str, Any] = SITE, code: str = "example") -> Change:
    return database.run(lambda s: config.put_site(s, code, data, by="ann", now=NOW))


def put_target(
    database: Database, data: Mapping[str, Any] = TARGET, code: str = "news", now: datetime = NOW
) -> Change:
    return database.run(lambda s: config.put_target(s, code, data, by="ann", now=now))


def delete_site(database: Database, code: str = "example") -> None:
    database.run(lambda s: config.delete_site(s, code, by="ann", now=NOW))


def delete_target(database: Database, code: str = "news") -> None:
    database.run(lambda s: config.delete_target(s, code, by="ann", now=NOW))


def row(database: Database) -> Target:
    with database.reading() as session:
        return session.get_one(Target, "news")


def test_put_creates_and_then_replaces(database: Database) -> None:
    assert put_site(database).what is What.CREATED
    assert put_site(database).what is What.UNCHANGED
    assert put_target(database).what is What.CREATED
    change = put_target(database, {key: TARGET[key] for key in ("site", "handler", "params")})
    assert (change.what, set(change.fields)) == (What.CHANGED, {"schedule", "interval_sec"})
    # What was left out got its default, unlike in an import.
    assert (row(database).schedule, row(database).next_tick_at, row(database).interval_sec) == (
        None,
        None,
        10,
    )
    change = put_site(database, {"base_url": "http://www.example.org/"})
    assert set(change.fields) == {"timezone", "cooldown_sec"}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({**SITE, "base_url": "www.example.org"}, "base_url"),
        ({**SITE, "code": "other"}, "code"),
        ({**SITE, "http": {"headers": {"A": 5}}}, "http.headers.A"),
        ({**SITE, "http": {"headers": {"Cookie": MASK}}}, "http.headers.Cookie"),
        ({**SITE, "x": 1}, "x"),
        ({}, "base_url"),
    ],
)
def test_a_wrong_site_names_the_field(database: Database, data: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        put_site(database, data)
    assert [(problem.field, problem.line) for problem in caught.value.problems] == [(field, None)]


def test_a_wrong_code_is_refused(database: Database) -> None:
    for code in ("Example", "", "-a", "a" * 65, "a/b", "a\x00"):
        with pytest.raises(InvalidInputError) as caught:
            put_site(database, code=code)
        assert [problem.field for problem in caught.value.problems] == ["code"]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({**TARGET, "site": "other"}, "site"),
        ({**TARGET, "site": "a\x00"}, "site"),
        ({**TARGET, "site": 5}, "site"),
        ({**TARGET, "params": {"function": "nothing"}}, "params.function"),
        ({**TARGET, "schedule": "* * *"}, "schedule"),
        ({**TARGET, "retry": {"times": "2"}}, "retry.times"),
    ],
)
def test_a_wrong_target_names_the_field(database: Database, data: dict[str, Any], field: str) -> None:
    put_site(database)
    with pytest.raises(InvalidInputError) as caught:
        put_target(database, data)
    assert [problem.field for problem in caught.value.problems] == [field]


def test_a_mask_that_is_sent_back_keeps_the_secret(database: Database) -> None:
    http = {
        "headers": {"Authorization": "Bearer s3cret", "X-Sig": "k3y", "Accept": "text/html"},
        "proxy": "http://me:pw@proxy:1",
    }
    put_site(database, {**SITE, "http": http})
    with database.reading() as session:
        shown = config.masked(config.site_data(session.get_one(Site, "example")))
    assert shown["http"]["headers"] == {"Authorization": MASK, "X-Sig": MASK, "Accept": "text/html"}
    assert shown["http"]["proxy"] == f"http://{MASK}@proxy:1"
    assert put_site(database, shown).what is What.UNCHANGED
    shown["http"]["headers"]["Authorization"] = "Bearer new"
    put_site(database, shown)
    with database.reading() as session:
        stored = session.get_one(Site, "example").http
    assert stored["headers"] == {"Authorization": "Bearer new", "X-Sig": "k3y", "Accept": "text/html"}
    # A mask stands for the secret at the server where it was used, and at no other.
    elsewhere = {**shown, "base_url": "https://evil.example/"}
    with pytest.raises(InvalidInputError, match="another server") as caught:
        put_site(database, elsewhere)
    assert [problem.field for problem in caught.value.problems] == ["http.headers.X-Sig"]
    shown["http"]["proxy"] = f"http://{MASK}@elsewhere:1"
    with pytest.raises(InvalidInputError, match="masked"):
        put_site(database, shown)


def test_secrets_in_parameters_are_masked_too(database: Database) -> None:
    put_site(database)
    params = {"function": "os.path:join", "kwargs": {"api_key": "k3y", "pages": 3}}
    put_target(database, {**TARGET, "params": params})
    shown = config.masked(config.target_data(row(database)))
    assert shown["params"]["kwargs"] == {"api_key": MASK, "pages": 3}
    assert put_target(database, shown).what is What.UNCHANGED
    assert row(database).params == params


@pytest.mark.parametrize(
    ("kwargs", "shown"),
    [
        ({"headers": {"auth": {"token": "s3"}, "n": 1}}, {"headers": {"auth": {"token": MASK}, "n": 1}}),
        ({"headers": {"Referer": "http://me:pw@h/"}}, {"headers": {"Referer": f"http://{MASK}@h/"}}),
        ({"env": {"hosts": [{"password": "s3"}]}}, {"env": {"hosts": [{"password": MASK}]}}),
        ({"tokens": ["s3", "s4"]}, {"tokens": [MASK, MASK]}),
        ({"urls": ["http://me:pw@h/", "/x"]}, {"urls": [f"http://{MASK}@h/", "/x"]}),
    ],
)
def test_no_secret_is_too_deep_to_be_masked(
    database: Database, kwargs: dict[str, Any], shown: dict[str, Any]
) -> None:
    put_site(database)
    put_target(database, {**TARGET, "params": {"function": "os.path:join", "kwargs": kwargs}})
    data = config.masked(config.target_data(row(database)))
    assert data["params"]["kwargs"] == shown
    assert put_target(database, data).what is What.UNCHANGED


def test_an_item_of_a_list_has_its_secret_wherever_it_stands(database: Database) -> None:
    put_site(database)
    ann, bob = {"user": "ann", "password": "a"}, {"user": "bob", "password": "b"}
    params = {"function": "os.path:join", "kwargs": {"accounts": [ann, bob]}}
    put_target(database, {**TARGET, "params": params})
    data = config.masked(config.target_data(row(database)))
    new = {"user": "cid", "password": "c"}
    data["params"]["kwargs"]["accounts"] = [new, *data["params"]["kwargs"]["accounts"][::-1]]
    put_target(database, data)
    assert row(database).params["kwargs"]["accounts"] == [new, bob, ann]
    data["params"]["kwargs"]["accounts"] = [{"user": "dan", "password": MASK}]
    with pytest.raises(InvalidInputError, match="masked") as caught:
        put_target(database, data)
    assert [problem.field for problem in caught.value.problems] == ["params.kwargs.accounts[0].password"]


def test_delete_removes_a_site_with_its_targets(database: Database) -> None:
    put_site(database)
    put_target(database)
    delete_site(database)
    with database.reading() as session:
        assert session.get(Site, "example") is None
        assert session.get(Target, "news") is None
        last = list(session.scalars(select(AuditEntry).order_by(AuditEntry.id)))[-2:]
    assert [(entry.action, entry.object_kind, entry.object_name) for entry in last] == [
        ("deleted", "target", "news"),
        ("deleted", "site", "example"),
    ]
    assert last[0].before is not None
    assert last[0].before["schedule"] == "0 3 * * *"
    with pytest.raises(NotFoundError):
        delete_site(database)
    with pytest.raises(NotFoundError):
        delete_target(database)


def test_what_has_jobs_is_kept(database: Database) -> None:
    put_site(database)
    put_target(database)
    database.run(lambda s: jobs.submit(s, "news", source="manual"))
    with pytest.raises(ConflictError, match="1 jobs and 0 documents"):
        delete_site(database)
    with pytest.raises(ConflictError, match="1 jobs and 0 documents"):
        delete_target(database)
    assert row(database).code == "news"


def test_what_has_documents_is_kept(database: Database) -> None:
    put_site(database)
    put_target(database)
    document = Document(
        target_code="news",
        url="http://www.example.org/1",
        url_hash="1",
        first_seen_at=NOW,
        last_seen_at=NOW,
        changed_at=NOW,
        content_hash="1",
        first_job_id="1",
        last_job_id="1",
        last_root_id="1",
    )
    database.run(lambda s: s.add(document))
    with pytest.raises(ConflictError, match="0 jobs and 1 documents"):
        delete_site(database)
    with pytest.raises(ConflictError, match="0 jobs and 1 documents"):
        delete_target(database)


def test_a_target_moves_to_another_site_only_without_open_jobs(database: Database) -> None:
    put_site(database)
    put_site(database, {"base_url": "http://other.example/"}, "other")
    put_target(database)
    job = database.run(lambda s: jobs.submit(s, "news", source="manual"))
    with pytest.raises(ConflictError, match="Cancel them first"):
        put_target(database, {**TARGET, "site": "other"})
    database.run(lambda s: jobs.cancel(s, job.id, by="ann"))
    put_target(database, {**TARGET, "site": "other"})
    assert row(database).site_code == "other"
    assert row(database).next_tick_at == datetime(2026, 3, 2, 3, tzinfo=UTC)  # its zone is UTC now


def test_a_pause_is_not_caught_up(database: Database) -> None:
    put_site(database)
    put_target(database)
    for _ in range(2):
        database.run(lambda s: config.pause_target(s, "news", by="bob", now=NOW))
    assert (row(database).paused_at, row(database).paused_by) == (NOW, "bob")
    put_target(database, {**TARGET, "interval_sec": 3})
    assert row(database).paused_by == "bob"
    later = NOW + timedelta(days=3)
    for _ in range(2):
        database.run(lambda s: config.resume_target(s, "news", by="bob", now=later))
    assert (row(database).paused_at, row(database).ticks_from) == (None, later)
    assert row(database).next_tick_at == datetime(2026, 3, 4, 19, tzinfo=UTC)
    with database.reading() as session:
        actions = session.scalars(
            select(AuditEntry.action).where(AuditEntry.by == "bob").order_by(AuditEntry.id)
        )
        assert list(actions) == ["paused", "resumed"]
    with pytest.raises(NotFoundError):
        database.run(lambda s: config.pause_target(s, "other", by="bob", now=NOW))
