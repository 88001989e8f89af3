"""Tokens, links that work once, and roles, on both databases."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from webqueue import access
from webqueue.access import Action, LinkRefusedError, Role, allows
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import StoredSetting, Token, User

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASSWORD = "eight letters or more"


def add(
    database: Database, name: str = "ci", role: str = "viewer", expires_at: datetime | None = None
) -> str:
    return database.run(lambda s: access.add_token(s, name, role, expires_at, by="ann", now=NOW))


def role_of(database: Database, token: str, now: datetime = NOW) -> Role | None:
    with database.reading() as session:
        bearer = access.bearer_of(session, token, now)
        return None if bearer is None else bearer.role


def use_setup(database: Database, token: str, name: str) -> User:
    return database.run(
        lambda s: access.use_setup_link(s, token, access.new_user(name, PASSWORD, "admin"), NOW)
    )


def use_login(database: Database, token: str) -> User:
    return database.run(lambda s: access.use_login_link(s, token, NOW))


def test_a_token_has_its_role_and_is_stored_as_a_hash(database: Database) -> None:
    token = add(database, role="operator")
    assert token.startswith("wq_")
    assert len(token) > 40
    assert role_of(database, token) is Role.OPERATOR
    for other in ("", "wq_", token[:-1], token + "a", token.lower(), "\ud800", "\x00"):
        assert role_of(database, other) is None
    with database.reading() as session:
        (row,) = session.scalars(select(Token))
    assert token not in repr(vars(row))


def test_expired_and_revoked_tokens_are_none(database: Database) -> None:
    token = add(database, expires_at=NOW + timedelta(hours=1))
    assert role_of(database, token, NOW + timedelta(minutes=59)) is Role.VIEWER
    assert role_of(database, token, NOW + timedelta(hours=1)) is None
    database.run(lambda s: access.revoke_token(s, "ci", by="ann", now=NOW))
    database.run(lambda s: access.revoke_token(s, "ci", by="ann", now=NOW))
    assert role_of(database, token) is None
    with pytest.raises(NotFoundError, match="no token 'other'"):
        database.run(lambda s: access.revoke_token(s, "other", by="ann", now=NOW))
    with pytest.raises(ConflictError, match="choose another name"):
        add(database)


@pytest.mark.parametrize(
    ("name", "role", "expires_at", "field"),
    [("", "viewer", None, "name"), ("a\nb", "viewer", None, "name"), ("x" * 65, "viewer", None, "name"),
     ("ci", "owner", None, "role"), ("ci", "viewer", NOW, "expires_at")],
)  # fmt: skip
def test_what_is_not_taken_names_the_field(
    database: Database, name: str, role: str, expires_at: datetime | None, field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        add(database, name, role, expires_at)
    assert [problem.field for problem in caught.value.problems] == [field]


def test_use_is_noted_at_most_once_a_minute(database: Database) -> None:
    token = add(database)

    def use(now: datetime) -> tuple[bool, datetime | None]:
        with database.reading() as session:
            bearer = access.bearer_of(session, token, now)
        assert bearer is not None
        database.run(lambda s: access.note_use(s, bearer.token_id, now))
        with database.reading() as session:
            (row,) = access.list_tokens(session)
        return bearer.use_is_due, row.last_used_at

    assert use(NOW) == (True, NOW)
    assert use(NOW + timedelta(seconds=59)) == (False, NOW)
    later = NOW + timedelta(seconds=60)
    assert use(later) == (True, later)


def test_the_setup_link_makes_one_administrator(database: Database) -> None:
    old = database.run(lambda s: access.new_setup_link(s, NOW))
    token = database.run(lambda s: access.new_setup_link(s, NOW))
    with database.reading() as session:
        assert access.setup_link_works(session, token, NOW)
        assert not access.setup_link_works(session, old, NOW)
        assert not access.setup_link_works(session, token, NOW + timedelta(hours=24))
        assert not access.setup_link_works(session, "", NOW)
        stored = session.get_one(StoredSetting, "setup_link")
    assert token not in repr(stored.value)
    for wrong in (old, "", "\ud800"):
        with pytest.raises(LinkRefusedError):
            use_setup(database, wrong, "ann")
    with pytest.raises(InvalidInputError):
        database.run(lambda s: access.use_setup_link(s, token, access.new_user("ann", "short", "admin"), NOW))
    user = database.run(
        lambda s: access.use_setup_link(s, token, access.new_user("ann", PASSWORD, "admin"), NOW)
    )
    assert user.role == Role.ADMIN
    with pytest.raises(LinkRefusedError, match="used already"):
        database.run(
            lambda s: access.use_setup_link(s, token, access.new_user("eve", PASSWORD, "admin"), NOW)
        )
    again = database.run(lambda s: access.new_setup_link(s, NOW))
    with pytest.raises(LinkRefusedError):
        database.run(
            lambda s: access.use_setup_link(s, again, access.new_user("eve", PASSWORD, "admin"), NOW)
        )


def test_two_at_once_use_the_setup_link_once(database: Database) -> None:
    token = database.run(lambda s: access.new_setup_link(s, NOW))
    start = threading.Barrier(4)
    made: list[str] = []
    refused: list[str] = []

    def use(name: str) -> None:
        start.wait()
        try:
            made.append(
                database.run(
                    lambda s: access.use_setup_link(s, token, access.new_user(name, PASSWORD, "admin"), NOW)
                ).name
            )
        except LinkRefusedError:
            refused.append(name)

    threads = [threading.Thread(target=use, args=(f"user{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 3)
    with database.reading() as session:
        assert [user.name for user in access.list_users(session)] == made


def test_a_login_link_logs_in_once(database: Database) -> None:
    user = database.run(
        lambda s: access.create_user(s, access.new_user("ann", PASSWORD, "admin"), by="tests", now=NOW)
    )
    first = database.run(lambda s: access.new_login_link(s, user, NOW, valid_for=timedelta(minutes=1)))
    second = database.run(lambda s: access.new_login_link(s, user, NOW))
    assert database.run(lambda s: access.use_login_link(s, second, NOW)).id == user.id
    for used in (second, "", "\ud800"):
        with pytest.raises(LinkRefusedError):
            use_login(database, used)
    with pytest.raises(LinkRefusedError):
        database.run(lambda s: access.use_login_link(s, first, NOW + timedelta(minutes=1)))
    third = database.run(lambda s: access.new_login_link(s, user, NOW + timedelta(minutes=2)))
    with database.reading() as session:
        links = list(
            session.scalars(select(StoredSetting).where(StoredSetting.name.startswith("login_link:")))
        )
    assert len(links) == 1  # the expired one is gone
    database.run(
        lambda s: access.create_user(s, access.new_user("bob", PASSWORD, "admin"), by="tests", now=NOW)
    )
    database.run(lambda s: access.disable_user(s, "ann", by="bob", now=NOW))
    with pytest.raises(LinkRefusedError):
        database.run(lambda s: access.use_login_link(s, third, NOW + timedelta(minutes=3)))


READING = {Action.READ}
OPERATING = READING | {Action.RUN, Action.CANCEL, Action.RETRY, Action.FRONT, Action.PAUSE, Action.LIFT}


@pytest.mark.parametrize(
    ("role", "allowed"),
    [("viewer", READING), ("operator", OPERATING), ("admin", set(Action)), ("", set()), ("root", set())],
)
def test_roles(role: str, allowed: set[Action]) -> None:
    assert {action for action in Action if allows(role, action)} == allowed
