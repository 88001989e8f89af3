"""Users, passwords, and limited logins, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session
from werkzeug.security import check_password_hash

from webqueue import access, clock
from webqueue.access import Role, TooManyTriesError, login, sessions
from webqueue.access.login import TRIES_PER_ADDRESS, TRIES_PER_NAME, WINDOW
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, LoginAttempt, User, UserSession

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASSWORD = "eight letters or more"


def make(database: Database, name: str = "ann", role: str = Role.ADMIN, password: str = PASSWORD) -> User:
    return database.run(
        lambda s: access.create_user(s, access.new_user(name, password, role), by="tests", now=NOW)
    )


def log_in(
    database: Database, name: str, password: str, *, now: datetime = NOW, address: str = "192.0.2.1"
) -> User | None:
    return access.authenticate(database, name, password, now, address=address)


def begin(database: Database, user: User, now: datetime = NOW, agent: str = "curl/8") -> str | None:
    return database.run(lambda s: access.begin_session(s, user, address="192.0.2.1", agent=agent, now=now))


def whose(database: Database, key: str | None, now: datetime = NOW) -> str | None:
    with clock.replaced(lambda: now), database.reading() as session:
        found = access.find_session(session, key or "")
        return None if found is None else found.user.name


def test_right_name_and_password_log_in(database: Database) -> None:
    made = make(database)
    user = log_in(database, " ANN ", PASSWORD)
    assert user is not None
    assert (user.id, user.last_login_at) == (made.id, NOW)
    assert PASSWORD not in made.password_hash
    assert made.password_hash.startswith("scrypt:")


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "wrong password"), ("bob", PASSWORD), ("", ""), ("ann\x00", PASSWORD), ("\ud800", "\ud800")],
)
def test_anything_else_does_not(database: Database, name: str, password: str) -> None:
    make(database)
    assert log_in(database, name, password) is None


def test_a_disabled_user_cannot_log_in_and_sessions_end(database: Database) -> None:
    make(database)
    bob = make(database, "bob", Role.VIEWER)
    key = begin(database, bob)
    assert key is not None
    assert whose(database, key) == "bob"
    assert whose(database, "x") is None
    database.run(lambda s: access.disable_user(s, "bob", by="ann", now=NOW))
    assert log_in(database, "bob", PASSWORD) is None
    assert whose(database, key) is None
    assert begin(database, bob) is None, "he was found before he was shut out"
    database.run(lambda s: access.enable_user(s, "bob", by="ann", now=NOW))
    assert log_in(database, "bob", PASSWORD) is not None


def test_a_new_password_ends_the_sessions_and_the_old_password(database: Database) -> None:
    ann = make(database)
    key = begin(database, ann)
    assert key is not None
    database.run(
        lambda s: access.set_password(
            s, "ann", access.new_password("ann", "another good one"), by="ann", now=NOW
        )
    )
    assert whose(database, key) is None
    assert begin(database, ann) is None, "she logged in with the old password"
    assert log_in(database, "ann", PASSWORD) is None
    assert log_in(database, "ann", "another good one") is not None


def test_tries_of_a_name_are_limited_also_for_another_process(
    database: Database, open_database: Callable[[], Database]
) -> None:
    make(database)
    for number in range(TRIES_PER_NAME):
        assert log_in(database, "ann", "wrong", address=f"192.0.2.{number}") is None
    other = open_database()
    with pytest.raises(TooManyTriesError, match="Try again in 15 minutes"):
        log_in(other, "Ann", PASSWORD, address="198.51.100.1")
    with pytest.raises(TooManyTriesError):
        log_in(other, "ann", PASSWORD, now=NOW + WINDOW, address="198.51.100.1")
    # Refused tries did not count, so waiting helps.
    assert log_in(other, "ann", PASSWORD, now=NOW + WINDOW + timedelta(seconds=1)) is not None


def test_tries_from_an_address_are_limited_over_names(database: Database) -> None:
    make(database)
    tries = [
        LoginAttempt(at=NOW, name=f"name{number}", address="192.0.2.1")
        for number in range(TRIES_PER_ADDRESS - 1)
    ]
    database.run(lambda s: s.add_all(tries))
    assert log_in(database, "name", "wrong") is None
    with pytest.raises(TooManyTriesError):
        log_in(database, "ann", PASSWORD)
    assert log_in(database, "ann", PASSWORD, address="198.51.100.1") is not None


def test_a_login_forgives_earlier_mistakes_and_old_ones_are_removed(database: Database) -> None:
    make(database)
    for _ in range(TRIES_PER_NAME - 1):
        log_in(database, "ann", "wrong")
    assert log_in(database, "ann", PASSWORD) is not None
    log_in(database, "ann", "wrong")
    log_in(database, "bob", "wrong", now=NOW + 2 * WINDOW)
    with database.reading() as session:
        assert [row.name for row in session.scalars(select(LoginAttempt))] == ["bob"]


def test_parallel_tries_do_not_pass_the_limit(database: Database) -> None:
    make(database)
    looked_at: list[bool] = []

    def attempt() -> None:
        try:
            looked_at.append(log_in(database, "ann", "wrong") is None)
        except TooManyTriesError:
            looked_at.append(False)

    threads = [threading.Thread(target=attempt) for _ in range(TRIES_PER_NAME + 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert looked_at.count(True) == TRIES_PER_NAME
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(LoginAttempt)) == TRIES_PER_NAME


def test_an_unknown_name_costs_what_a_wrong_password_costs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the hash takes long enough to be told from outside: both work it out, and as thoroughly."""
    make(database)
    compared: list[str] = []

    def spying(stored: str, password: str) -> bool:
        compared.append(stored.partition("$")[0])
        return check_password_hash(stored, password)

    monkeypatch.setattr(login, "check_password_hash", spying)
    log_in(database, "ann", "wrong")
    log_in(database, "nobody else", "wrong")
    assert len(compared) == 2
    assert compared[0] == compared[1], "the method and its cost"


@pytest.mark.parametrize(
    ("name", "password", "role", "field", "message"),
    [
        ("", PASSWORD, "admin", "name", "empty"),
        ("a" * 65, PASSWORD, "admin", "name", "65 characters"),
        ("a b", PASSWORD, "admin", "name", "letters, digits"),
        ("<b>", PASSWORD, "admin", "name", "letters, digits"),
        ("ann", "short", "admin", "password", "needed are 8"),
        ("ann", "x" * 1025, "admin", "password", "allowed are 1024"),
        ("ann", "        ", "admin", "password", "repeated"),
        ("ann", "Password", "admin", "password", "first that are tried"),
        ("annabella", "Annabella", "admin", "password", "first that are tried"),
        ("ann", PASSWORD, "root", "role", "viewer, operator, admin"),
    ],
)
def test_what_is_not_taken_names_the_field(
    database: Database, name: str, password: str, role: str, field: str, message: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make(database, name, role, password)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert message in problem.message


def test_names_are_told_apart_in_one_form(database: Database) -> None:
    make(database, "王小明")
    make(database, "Ann")
    with pytest.raises(ConflictError, match="'ann' already"):
        make(database, "ＡＮＮ")


def test_the_last_administrator_stays(database: Database) -> None:
    make(database)
    make(database, "bob", Role.OPERATOR)
    with pytest.raises(ConflictError, match="last administrator"):
        database.run(lambda s: access.disable_user(s, "ann", by="ann", now=NOW))
    with pytest.raises(ConflictError, match="last administrator"):
        database.run(lambda s: access.set_role(s, "ann", Role.VIEWER, by="ann", now=NOW))
    database.run(lambda s: access.set_role(s, "bob", Role.ADMIN, by="ann", now=NOW))
    database.run(lambda s: access.disable_user(s, "ann", by="bob", now=NOW))
    with pytest.raises(ConflictError, match="last administrator"):
        database.run(lambda s: access.disable_user(s, "bob", by="bob", now=NOW))


def test_two_administrators_cannot_disable_each_other(database: Database) -> None:
    make(database)
    make(database, "bob")
    start = threading.Barrier(2)
    refused: list[str] = []

    def disable(name: str) -> None:
        start.wait()
        try:
            database.run(lambda s: access.disable_user(s, name, by="tests", now=NOW))
        except ConflictError:
            refused.append(name)

    threads = [threading.Thread(target=disable, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1


def test_what_does_not_exist_is_said(database: Database) -> None:
    with pytest.raises(NotFoundError, match="no user 'nobody'"):
        database.run(lambda s: access.disable_user(s, "nobody", by="tests", now=NOW))
    with pytest.raises(NotFoundError, match="no user 'nobody'"):
        database.run(lambda s: access.enable_user(s, "nobody", by="tests", now=NOW))
    with pytest.raises(NotFoundError, match="no user 'nobody'"):
        database.run(
            lambda s: access.set_password(
                s, "nobody", access.new_password("nobody", PASSWORD), by="tests", now=NOW
            )
        )


def test_every_change_is_in_the_audit_log_without_secrets(database: Database) -> None:
    make(database)
    make(database, "bob", Role.VIEWER)
    database.run(lambda s: access.set_role(s, "bob", Role.OPERATOR, by="ann", now=NOW))
    database.run(lambda s: access.set_role(s, "bob", Role.OPERATOR, by="ann", now=NOW))
    database.run(
        lambda s: access.set_password(
            s, "bob", access.new_password("bob", "another good one"), by="ann", now=NOW
        )
    )
    with database.reading() as session:
        entries = list(session.scalars(select(AuditEntry).order_by(AuditEntry.id)))
    assert [(entry.by, entry.action, entry.object_name) for entry in entries] == [
        ("tests", "created", "ann"),
        ("tests", "created", "bob"),
        ("ann", "changed", "bob"),
        ("ann", "password changed", "bob"),
    ]
    assert (entries[2].before, entries[2].after) == ({"role": "viewer"}, {"role": "operator"})
    assert entries[3].after is None


def test_no_writer_waits_while_a_password_is_checked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow hash runs between transactions: here another thread writes in the middle of it."""
    real = check_password_hash
    wrote = threading.Event()

    def slow(stored: str, password: str) -> bool:
        def write() -> None:
            database.run(lambda s: access.new_setup_link(s, NOW))
            wrote.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert wrote.wait(20), "a writer waited for the password check"
        writer.join()
        return real(stored, password)

    monkeypatch.setattr(login, "check_password_hash", slow)
    assert access.authenticate(database, "nobody", "not the password", NOW) is None


class TestSessions:
    def test_a_session_ends_alone_with_all_others_or_with_all(self, database: Database) -> None:
        ann, bob = make(database), make(database, "bob", Role.VIEWER)
        keys = [begin(database, ann) for _ in range(3)]
        of_bob = begin(database, bob)
        with clock.replaced(lambda: NOW), database.reading() as session:
            ids = {key: access.find_session(session, key or "").session_id for key in keys}  # type: ignore[union-attr]
            assert access.count_sessions(session, NOW) == {ann.id: 3, bob.id: 1}
        with pytest.raises(NotFoundError):
            database.run(lambda s: access.end_session(s, bob.id, ids[keys[0]], by="bob", now=NOW))
        database.run(lambda s: access.end_session(s, ann.id, ids[keys[0]], by="ann", now=NOW))
        assert [whose(database, key) for key in keys] == [None, "ann", "ann"]
        assert database.run(lambda s: access.end_sessions(s, "ann", but=ids[keys[2]], by="ann", now=NOW)) == 1
        assert [whose(database, key) for key in keys] == [None, None, "ann"]
        assert database.run(lambda s: access.end_sessions(s, "ann", by="bob", now=NOW)) == 1
        assert database.run(lambda s: access.end_sessions(s, "ann", by="bob", now=NOW)) == 0
        assert [whose(database, key) for key in (*keys, of_bob)] == [None, None, None, "bob"]
        with database.reading() as session:
            told = session.execute(
                select(AuditEntry.by, AuditEntry.object_name, AuditEntry.before)
                .where(AuditEntry.action == "sessions ended")
                .order_by(AuditEntry.id)
            ).all()
        assert [(row.by, row.object_name, row.before["sessions"]) for row in told] == [
            ("ann", "ann", 1),
            ("ann", "ann", 1),
            ("bob", "ann", 1),
        ]

    def test_it_lasts_while_it_is_used_and_its_use_is_written_once_a_minute(self, database: Database) -> None:
        key = begin(database, make(database))
        with database.reading() as session:
            with clock.replaced(lambda: NOW + timedelta(seconds=59)):
                found = access.find_session(session, key or "")
            assert found is not None
            assert not found.use_is_due
            with clock.replaced(lambda: NOW + timedelta(minutes=1)):
                due = access.find_session(session, key or "")
            assert due is not None
            assert due.use_is_due
        for at in (NOW + timedelta(days=20), NOW + timedelta(days=20, seconds=59)):
            database.run(lambda s, at=at: access.note_session(s, found.session_id, "192.0.2.9", at))  # type: ignore[misc]
        with database.reading() as session:
            (row,) = access.list_sessions(session, found.user.id, NOW + timedelta(days=49))
            assert (row.last_seen_at, row.address) == (NOW + timedelta(days=20), "192.0.2.9")
            assert access.list_sessions(session, found.user.id, NOW + timedelta(days=50)) == []
        assert whose(database, key, NOW + timedelta(days=49)) == "ann"
        assert whose(database, key, NOW + timedelta(days=50)) is None

    def test_its_time_is_the_databases_and_costs_no_statement(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = make(database)
        begun = {
            ago: database.run(
                lambda s, ago=ago: access.begin_session(  # type: ignore[misc]
                    s, user, address="192.0.2.1", agent="", now=clock.now(s) - timedelta(minutes=ago)
                )
            )
            for ago in (0, 2, 30 * 24 * 60 + 1)
        }
        # What the machine that asks believes.
        monkeypatch.setattr(clock, "local_now", lambda: datetime.now(UTC) + timedelta(days=40))
        statements: list[str] = []
        event.listen(database.engine, "before_cursor_execute", lambda *asked: statements.append(asked[2]))
        for ago, due in ((0, False), (2, True)):
            with database.reading() as session:
                session.connection()
                statements.clear()
                found = access.find_session(session, begun[ago] or "")
                assert found is not None
                assert found.use_is_due is due
            assert len(statements) == 1
        with database.reading() as session:
            assert access.find_session(session, begun[30 * 24 * 60 + 1] or "") is None

    def test_only_a_hash_is_stored_and_what_a_browser_says_is_cut(self, database: Database) -> None:
        key = begin(database, make(database), agent="evil\x00\n" + "x" * 1000)
        with database.reading() as session:
            (row,) = session.scalars(select(UserSession)).all()
        assert key is not None
        assert key not in f"{row.key_hash} {row.agent} {row.address}"
        assert row.agent == "evil??" + "x" * 249

    def test_there_is_an_end_to_how_many_there_are(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "MOST", 3)
        ann = make(database)
        keys = [begin(database, ann, NOW + timedelta(seconds=number)) for number in range(5)]
        assert [whose(database, key) for key in keys] == [None, None, "ann", "ann", "ann"]
        begin(database, make(database, "bob"), NOW + timedelta(days=31))
        with database.reading() as session:
            assert session.scalar(select(func.count()).select_from(UserSession)) == 1

    def test_another_role_holds_at_once(self, database: Database) -> None:
        make(database)
        key = begin(database, make(database, "bob", Role.ADMIN))
        database.run(lambda s: access.set_role(s, "bob", Role.VIEWER, by="ann", now=NOW))
        with clock.replaced(lambda: NOW), database.reading() as session:
            found = access.find_session(session, key or "")
        assert found is not None
        assert found.user.role == Role.VIEWER


def test_tokens_outlive_the_user_who_made_them_unless_they_are_ended_too(database: Database) -> None:
    texts: dict[str, str] = {}

    def add(session: Session) -> None:
        access.create_user(session, access.new_user("bob", PASSWORD, "admin"), by="tests", now=NOW)
        access.create_user(session, access.new_user("eve", PASSWORD, "admin"), by="tests", now=NOW)
        for name, by, ends in (
            ("ci", "bob", None),
            ("cron", "bob", NOW + timedelta(hours=1)),
            ("old", "bob", NOW + timedelta(minutes=1)),
            ("gone", "bob", None),
            ("eves", "eve", None),
        ):
            texts[name] = access.add_token(session, name, "viewer", ends, by=by, now=NOW)
        access.revoke_token(session, "gone", by="eve", now=NOW)

    database.run(add)
    later = NOW + timedelta(minutes=2)

    def working() -> list[str]:
        with database.reading() as session:
            return [name for name, token in texts.items() if access.bearer_of(session, token, later)]

    kept = database.run(lambda s: access.disable_user(s, "bob", by="eve", now=later))
    assert (kept, working()) == (["ci", "cron"], ["ci", "cron", "eves"])
    ended = database.run(lambda s: access.disable_user(s, "bob", by="eve", now=later, with_tokens=True))
    assert (ended, working()) == (["ci", "cron"], ["eves"])
    assert database.run(lambda s: access.disable_user(s, "bob", by="eve", now=later, with_tokens=True)) == []
    with database.reading() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.at == later)).all()
    assert [(one.action, one.object_name) for one in entries] == [
        ("disabled", "bob"),
        ("revoked", "ci"),
        ("revoked", "cron"),
    ]
