"""Changes and deletions of sites and targets are taken back from the audit log, as a whole, and never over later ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.helpers.admin import add_site, add_target
from tests.helpers.plans import recorded
from webqueue import clock, config, jobs
from webqueue.config import MASK, undoing
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, Site, Target

FEW = 12
SECRET = {"X-Api-Key": "hush"}


@pytest.fixture
def example(database: Database) -> Database:
    """A site with three targets, two of them scheduled."""

    def add(session: Session) -> None:
        add_site(session, "example", "http://www.example.org/", http={"headers": SECRET})
        add_target(session, "news", "example", schedule="0 3 * * *", tags=["daily"])
        add_target(session, "archive", "example", schedule="0 5 * * 0")
        add_target(session, "rare", "example")

    database.run(add)
    return database


def last_entry(database: Database) -> int:
    with database.reading() as session:
        return session.scalars(select(AuditEntry.id).order_by(AuditEntry.id.desc()).limit(1)).one()


def prepared(database: Database, entry: int, *, alone: bool = False) -> config.Undoing:
    with database.reading() as session:
        return config.prepare_undo(session, entry, alone=alone)


def undo(database: Database, entry: int, *, alone: bool = False) -> config.Undoing:
    return act(database, prepared(database, entry, alone=alone))


def act(database: Database, prepared: config.Undoing) -> config.Undoing:
    return database.run(lambda s: config.undo(s, prepared, by="ann", now=clock.now(s)))


def schedules(database: Database) -> dict[str, str | None]:
    with database.reading() as session:
        return {row.code: row.schedule for row in session.execute(select(Target.code, Target.schedule))}


def set_schedule(database: Database, schedule: str | None, *codes: str) -> int:
    with database.reading() as session:
        change = config.prepare_change(session, codes, lambda _: {"schedule": schedule})
    database.run(lambda s: config.change_targets(s, change, by="bob", now=clock.now(s)))
    return last_entry(database)


def put(database: Database, code: str, **fields: Any) -> int:
    """Change some fields of a target, and leave the others."""

    def change(session: Session) -> None:
        data = {**config.target_data(session.get_one(Target, code)), **fields}
        config.put_target(session, code, data, by="bob", now=clock.now(session))

    database.run(change)
    return last_entry(database)


def test_a_change_of_many_is_taken_back_as_a_whole(example: Database) -> None:
    before = schedules(example)
    entry = set_schedule(example, "15 4 * * *", "news", "archive", "rare")
    assert set(schedules(example).values()) == {"15 4 * * *"}
    undone = undo(example, entry)
    assert [one.object_name for one in undone.entries] == ["archive", "news", "rare"]
    assert schedules(example) == before
    with example.reading() as session:
        assert session.get_one(Target, "rare").next_tick_at is None
        assert session.get_one(Target, "news").next_tick_at is not None


def test_the_rate_keys_of_several_sites_are_locked_at_once(
    example: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
sites:
  - {code: example, base_url: "http://www.example.org/", rate_key: %(key)s}
  - {code: other, base_url: "http://other.example.org/", rate_key: %(key)s}
"""
    for key in ("one", "two"):
        example.run(functools.partial(_import, text % {"key": key}))
    locked: list[list[str]] = []
    monkeypatch.setattr(jobs, "rekey_sites", lambda _session, sites: locked.append(list(sites)))
    undone = undo(example, last_entry(example))
    assert len(undone.entries) == 2
    assert locked == [["example", "other"]], (
        "one site after the other would lock them in another order than others do"
    )
    with example.reading() as session:
        assert set(session.scalars(select(Site.rate_key))) == {"one"}


def _import(text: str, session: Session) -> None:
    config.import_file(session, text, by="bob", now=clock.now(session))


def test_taking_back_can_itself_be_taken_back(example: Database) -> None:
    undo(example, set_schedule(example, "15 4 * * *", "news", "archive"))
    undo(example, last_entry(example))
    assert schedules(example) == {"news": "15 4 * * *", "archive": "15 4 * * *", "rare": None}


def test_what_was_changed_again_since_is_left_and_named(example: Database) -> None:
    entry = set_schedule(example, "15 4 * * *", "news", "archive")
    put(example, "news", schedule="0 6 * * *")
    put(example, "archive", note="another field")
    undone = undo(example, entry)
    assert undone.overtaken == ("news",)
    assert schedules(example) == {"news": "0 6 * * *", "archive": "0 5 * * 0", "rare": None}
    with example.reading() as session:
        assert session.get_one(Target, "archive").note == "another field"
    with pytest.raises(ConflictError, match="Nothing is left"):
        undo(example, entry)


def test_what_changes_between_the_looking_and_the_writing_is_left_and_named(example: Database) -> None:
    entry = set_schedule(example, "15 4 * * *", "news", "archive", "rare")
    asked = prepared(example, entry)
    put(example, "news", schedule="0 6 * * *")
    put(example, "archive", owner="Ann")
    undone = act(example, asked)
    assert undone.overtaken == ("news",)
    assert schedules(example) == {"news": "0 6 * * *", "archive": "0 5 * * 0", "rare": None}
    with example.reading() as session:
        assert session.get_one(Target, "archive").owner == "Ann", "what was changed meanwhile stays"
    with pytest.raises(ConflictError, match="Nothing is left"):
        act(example, asked)  # pressed twice


def test_one_object_of_many_is_taken_back_alone(example: Database) -> None:
    entry = set_schedule(example, "15 4 * * *", "archive", "news", "rare")  # the last entry: rare
    asked = prepared(example, entry, alone=True)
    assert (asked.together, [one.object_name for one in asked.entries]) == (3, ["rare"])
    act(example, asked)
    assert schedules(example) == {"news": "15 4 * * *", "archive": "15 4 * * *", "rare": None}
    undone = undo(example, entry)
    assert undone.overtaken == ("rare",)
    assert schedules(example) == {"news": "0 3 * * *", "archive": "0 5 * * 0", "rare": None}


def test_a_change_of_many_leaves_out_what_is_gone_and_checks_anew_what_has_changed(example: Database) -> None:
    with example.reading() as session:
        change = config.prepare_change(
            session, ["news", "archive", "rare"], lambda data: {"tags": [*data["tags"], "new"]}
        )
    put(example, "news", tags=["other"], note="edited meanwhile")
    example.run(lambda s: config.delete_target(s, "rare", by="bob", now=clock.now(s)))
    came = example.run(lambda s: config.change_targets(s, change, by="bob", now=clock.now(s)))
    assert (came.changed, came.gone) == (2, ("rare",))
    with example.reading() as session:
        news = session.get_one(Target, "news")
        assert (news.tags, news.note) == (["other", "new"], "edited meanwhile")
        assert session.get_one(Target, "archive").tags == ["new"]


def test_a_change_that_some_cannot_take_names_them_and_one_that_none_can_names_the_value(
    example: Database,
) -> None:
    put(example, "news", tags=[f"tag{number}" for number in range(50)])
    for change, said in (
        (lambda data: {"tags": [*data["tags"], "one more"]}, "has more than 50 entries (news)"),
        (lambda _: {"schedule": "0 99 * * *"}, "99"),
    ):
        with example.reading() as session, pytest.raises(InvalidInputError) as caught:
            config.prepare_change(session, ["news", "archive", "rare"], change)
        [problem] = caught.value.problems
        assert said in problem.message
        assert ("(news" in problem.message) == ("(news" in said)


def test_the_transaction_that_writes_many_is_a_few_statements(example: Database) -> None:
    def add(session: Session) -> None:
        for number in range(60):
            add_target(session, f"more_{number:02}", "example", schedule=f"{number} 3 * * *")

    example.run(add)
    codes = [f"more_{number:02}" for number in range(60)]
    with example.reading() as session:
        change = config.prepare_change(session, codes, lambda _: {"schedule": "15 4 * * *"})
    with recorded(example) as sent:
        example.run(lambda s: config.change_targets(s, change, by="bob", now=clock.now(s)))
    assert len(sent) < FEW, [str(one) for one in sent]
    undoing = prepared(example, last_entry(example))
    with recorded(example) as sent:
        assert len(act(example, undoing).entries) == 60
    assert len(sent) < FEW, [str(one) for one in sent]


def test_another_act_of_the_same_person_stays(example: Database) -> None:
    first = put(example, "news", note="first")
    put(example, "archive", note="second")
    undo(example, first)
    with example.reading() as session:
        notes = {row.code: row.note for row in session.scalars(select(Target))}
    assert notes == {"news": "", "archive": "second", "rare": ""}


def test_a_deleted_site_comes_back_with_its_targets(database: Database) -> None:
    def add(session: Session) -> None:
        add_site(session, "example", "http://www.example.org/", name="Example")
        add_target(session, "news", "example", schedule="0 3 * * *", tags=["daily"], owner="Ann")

    database.run(add)
    database.run(lambda s: config.delete_site(s, "example", by="bob", now=clock.now(s)))
    undone = undo(database, last_entry(database))
    assert [(one.object_kind, one.object_name) for one in undone.entries] == [
        ("site", "example"),
        ("target", "news"),
    ]
    with database.reading() as session:
        assert session.get_one(Site, "example").name == "Example"
        target = session.get_one(Target, "news")
    assert (target.schedule, target.tags, target.owner) == ("0 3 * * *", ["daily"], "Ann")
    assert target.next_tick_at is not None


@pytest.mark.parametrize(("acts", "paused_by"), [(["pause"], "ann"), (["pause", "resume"], None)])
def test_a_deleted_target_whose_schedule_rested_comes_back_so(
    example: Database, acts: list[str], paused_by: str | None
) -> None:
    for act in acts:
        verb = config.pause_target if act == "pause" else config.resume_target
        example.run(functools.partial(_on_news, verb))
    for _ in range(2):  # what comes back paused is paused also when that is taken back again
        example.run(functools.partial(_on_news, config.delete_target))
        undo(example, last_entry(example))
        with example.reading() as session:
            assert session.get_one(Target, "news").paused_by == paused_by


def _on_news(verb: Callable[..., None], session: Session) -> None:
    verb(session, "news", by="bob", now=clock.now(session))


def test_a_secret_is_not_kept_so_it_stays_as_it_is_now(example: Database) -> None:
    def change(session: Session) -> None:
        data = {**config.site_data(session.get_one(Site, "example")), "name": "New name"}
        data["http"] = {**data["http"], "headers": {"X-Api-Key": "new"}}
        config.put_site(session, "example", data, by="bob", now=clock.now(session))

    example.run(change)
    undo(example, last_entry(example))
    with example.reading() as session:
        site = session.get_one(Site, "example")
    assert site.name != "New name"
    assert site.http["headers"] == {"X-Api-Key": "new"}


def test_a_deleted_object_with_a_secret_is_refused_with_the_reason_and_nothing_comes_back(
    example: Database,
) -> None:
    example.run(lambda s: config.delete_site(s, "example", by="bob", now=clock.now(s)))
    with pytest.raises(InvalidInputError) as caught:
        undo(example, last_entry(example))
    assert "nothing is stored that the mask stands for" in caught.value.problems[0].message
    assert "example" in caught.value.problems[0].message
    with example.reading() as session:
        assert session.scalars(select(Target.code)).all() == []
        deleted = session.scalars(
            select(AuditEntry.before).where(AuditEntry.action == "deleted", AuditEntry.object_kind == "site")
        ).one()
    assert deleted is not None
    assert deleted["http"]["headers"] == {"X-Api-Key": MASK}


def test_one_object_that_cannot_be_as_it_was_keeps_all_as_they_are(example: Database) -> None:
    entry = set_schedule(example, "15 4 * * *", "news", "archive")

    def spoil(session: Session) -> None:
        session.execute(
            update(AuditEntry)
            .where(AuditEntry.object_name == "news", AuditEntry.action == "changed")
            .values(before={"schedule": "0 99 * * *"})
        )

    example.run(spoil)
    with pytest.raises(InvalidInputError, match="news"):
        undo(example, entry)
    assert schedules(example) == {"news": "15 4 * * *", "archive": "15 4 * * *", "rare": None}


def test_what_cannot_be_taken_back_says_so(example: Database) -> None:
    with pytest.raises(ConflictError, match="Only changes and deletions"):
        undo(example, last_entry(example))  # it was created
    with pytest.raises(NotFoundError):
        undo(example, 10_000_000)


def test_more_than_a_short_transaction_takes_is_refused(
    example: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = set_schedule(example, "15 4 * * *", "news", "archive", "rare")
    monkeypatch.setattr(undoing, "MAX_UNDONE", 2)
    with pytest.raises(ConflictError, match="It changed 3 objects; at most 2 are taken back at once"):
        undo(example, entry)
    assert set(schedules(example).values()) == {"15 4 * * *"}
