"""A backup of a running installation, and its restoration elsewhere: nothing lost, nothing crawled twice at once."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tests.conftest import Serve
from tests.helpers.installation import PATIENCE_SEC, Installation, file_of, site_yaml, target_yaml
from tests.helpers.postgres import PostgresServer
from tests.helpers.servers.news import NewsSite
from tests.helpers.waiting import wait_until
from webqueue import access, backup, clock, config, jobs
from webqueue import settings as webqueue_settings
from webqueue.backup import BackupError, postgresql_copy
from webqueue.backup.sqlite_copy import copy_sqlite
from webqueue.database import Database
from webqueue.documents import OriginalStore
from webqueue.models import Site, StoredSetting, UserSession
from webqueue.settings import Settings

PAGES, PER_PAGE = 4, 3


@pytest.fixture
def first(engine_name: str, database_url: str, instance: Path) -> Iterator[Installation]:
    """The installation that is backed up."""
    with Installation(instance, {"WEBQUEUE_DATABASE_URL": database_url}) as installed:
        yield installed


@pytest.fixture
def second(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """An empty place in which nothing was ever started."""
    folder = tmp_path / "second"
    if engine_name == "sqlite":
        with Installation(folder) as installed:
            yield installed
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database(empty=True)
    with Installation(folder, {"WEBQUEUE_DATABASE_URL": url}) as installed:
        yield installed
    server.drop_database(url)


def _log_in(session: Session) -> None:
    now = clock.now(session)
    ann = access.create_user(
        session, access.new_user("ann", "correct horse battery", "admin"), by="test", now=now
    )
    access.begin_session(session, ann, address="192.0.2.1", agent="curl", now=now)


@pytest.mark.slow
def test_the_copy_of_a_crawl_that_runs_goes_on_from_its_checkpoint(
    first: Installation, second: Installation, serve: Serve, tmp_path: Path
) -> None:
    site = NewsSite(pages=PAGES, per_page=PER_PAGE)
    server = serve(site, delay_sec=0.5)
    params = {"list_url": "news/index_{page}.html", "title_selector": "h1"}
    first.describe(
        file_of([site_yaml("news", server.url)], [target_yaml("news", "news", params, interval_sec=0.05)])
    )
    (first.instance / "webqueue.env").write_text(
        "WEBQUEUE_KEEP_JOBS=77\nWEBQUEUE_STORE_URL=/somewhere/else\n".replace(
            "/somewhere/else", str(first.instance / "store")
        )
    )
    first.database.run(_log_in)
    served = first.serve()
    job_id = served.run("news")
    second_page = "/news/index_2.html"
    wait_until(lambda: second_page in server.paths, timeout=PATIENCE_SEC, message="the second list page")
    server.delay_sec = 5  # so that it still runs, however slowly the command starts

    said = first.command("backup", str(tmp_path))
    assert (said.returncode, said.stderr) == (0, "")
    (archive,) = tmp_path.glob("webqueue-*.tar.gz")
    assert archive.stat().st_mode & 0o777 == 0o600, "it has secrets"
    server.delay_sec = 0
    assert first.wait_for_end(job_id).status == "done", "the original was not disturbed"
    served.kill()
    asked_before = len(server.requests)

    said = second.command("restore", str(archive))
    assert said.returncode == 0, said.stderr
    assert "1 jobs that ran then will go on" in said.stdout
    assert "Everything is paused" in said.stdout
    environment = (second.instance / "webqueue.env").read_text()
    assert "WEBQUEUE_KEEP_JOBS=77" in environment
    assert str(first.instance) not in environment, "the copy would write into the original's store"
    with first.database.reading() as one, second.database.reading() as other:
        secrets = [session.get_one(StoredSetting, "session_secret").value for session in (one, other)]
        logged_in = [
            session.scalar(select(func.count()).select_from(UserSession)) for session in (one, other)
        ]
    assert secrets[0] == secrets[1], "the forms of open pages stay valid"
    assert logged_in == [1, 0], "one that was ended since must not come back"

    copied = second.serve()
    wait_until(
        lambda: copied.ask("GET", "status").data["processes"],
        timeout=PATIENCE_SEC,
        message="the copy's worker",
    )
    assert second.job(job_id).status == "queued"
    assert len(server.requests) == asked_before, "nothing is asked for while it is paused"
    second.database.run(lambda session: jobs.resume_all(session, by="test"))
    job = second.wait_for_end(job_id)
    assert job.status == "done"
    assert job.last_completed_page >= PAGES
    asked = [request.path for request in server.requests[asked_before:]]
    assert "/news/index_1.html" not in asked, "its checkpoint is in the backup"
    assert 0 < len(asked) < PAGES * (PER_PAGE + 1)
    documents = second.documents()
    assert len(documents) == PAGES * PER_PAGE
    store = OriginalStore(str(second.instance / "store"))
    kept = [document.original for document in documents if document.original]
    assert kept, "originals are kept"
    assert all(store.get(key) for key in kept)


@pytest.fixture
def archive(database: Database, settings: Settings, tmp_path: Path) -> Path:
    """A backup of an instance with a kept page and a log of requests."""
    OriginalStore(settings.store).put(b"<p>kept</p>" * 1000)
    (settings.instance_path / "requests").mkdir()
    (settings.instance_path / "requests" / "2026-11-01.jsonl").write_text('{"ms": 1}\n')
    warc = settings.instance_path / "warc" / "news"
    warc.mkdir(parents=True)
    (warc / "news-1.warc.gz").write_bytes(b"full")
    (warc / "news-2.warc.gz.open").write_bytes(b"grows")
    return backup.back_up(database, settings, tmp_path / "one.tar.gz").path


def describe(database: Database, code: str) -> None:
    text = file_of([site_yaml(code, f"http://{code}.example.org")], [])
    database.run(
        lambda session: config.import_file(session, text, by="test", now=clock.now(session), dry_run=False)
    )


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewritten(archive: Path, change: Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]) -> Path:
    """The archive with other members."""
    with tarfile.open(archive) as tar:
        members = [(entry.name, tar.extractfile(entry).read()) for entry in tar]  # type: ignore[union-attr]
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in change(members):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive


@pytest.mark.parametrize("engine_name", ["sqlite"])
def test_every_file_of_the_instance_is_in_it(archive: Path, instance: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    loaded = webqueue_settings.load(instance_path=target)
    database = Database(loaded.url, instance_path=target)
    try:
        backup.restore(database, loaded, archive, force=False, paused=True, by="test")
    finally:
        database.close()
    names = {name for name in everything_in(instance) if name.startswith(("store", "requests", "warc"))}
    assert len(names) == 4
    there = everything_in(target)
    assert {name: there.get(name) for name in names} == {
        name: content for name, content in everything_in(instance).items() if name in names
    }
    assert not [name for name in there if ".part" in name or ".tmp" in name], "nothing is left of the work"


@pytest.mark.parametrize("engine_name", ["sqlite"])
class TestDamage:
    def refused(self, archive: Path, tmp_path: Path) -> str:
        target = tmp_path / "target"
        target.mkdir(exist_ok=True)
        loaded = webqueue_settings.load(instance_path=target)
        database = Database(loaded.url, instance_path=target)
        before = everything_in(target)
        try:
            with pytest.raises(BackupError) as refusal:
                backup.restore(database, loaded, archive, force=True, paused=True, by="test")
            assert everything_in(target) == before, "nothing was changed"
        finally:
            database.close()
        return str(refusal.value)

    def test_a_cut_archive_is_refused_wherever_it_was_cut(self, archive: Path, tmp_path: Path) -> None:
        whole = archive.read_bytes()
        for part in range(20):
            archive.write_bytes(whole[: len(whole) * part // 20])
            assert str(archive) in self.refused(archive, tmp_path)
        archive.write_bytes(whole[:-1])
        assert "cut" in self.refused(archive, tmp_path)

    def test_a_tar_that_was_cut_between_two_members_is_refused(self, archive: Path, tmp_path: Path) -> None:
        assert "has no manifest" in self.refused(rewritten(archive, lambda members: members[:-1]), tmp_path)
        whole = gzip.compress(b"nothing of the kind")
        archive.write_bytes(whole)
        self.refused(archive, tmp_path)

    def test_a_changed_member_is_refused(self, archive: Path, tmp_path: Path) -> None:
        def changed(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
            return [(name, b"!" + content[1:] if "store" in name else content) for name, content in members]

        assert "is not what manifest.json says" in self.refused(rewritten(archive, changed), tmp_path)

    @pytest.mark.parametrize("name", ["../out", "/etc/out", "instance/workers/x.lock", "store/../../out"])
    def test_a_member_that_leads_elsewhere_is_refused(self, archive: Path, tmp_path: Path, name: str) -> None:
        assert "no backup has" in self.refused(
            rewritten(archive, lambda members: [(name, b"x"), *members]), tmp_path
        )

    def test_a_backup_of_a_newer_version_is_refused(self, archive: Path, tmp_path: Path) -> None:
        def newer(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
            *others, (name, content) = members
            facts: dict[str, Any] = {**json.loads(content), "revision": "9999"}
            return [*others, (name, json.dumps(facts).encode())]

        assert "newer webqueue" in self.refused(rewritten(archive, newer), tmp_path)


class TestForce:
    def test_an_instance_that_has_something_is_replaced_only_when_told(
        self,
        database: Database,
        open_database: Callable[[], Database],
        settings: Settings,
        tmp_path: Path,
    ) -> None:
        describe(database, "one")
        archive = backup.back_up(database, settings, tmp_path / "one.tar.gz").path
        with pytest.raises(BackupError, match="is there already"):
            backup.back_up(database, settings, archive)
        describe(database, "two")

        def restore(*, force: bool) -> backup.Restored:
            return backup.restore(database, settings, archive, force=force, paused=False, by="test")

        with pytest.raises(BackupError, match="This instance is not empty: it has sites"):
            restore(force=False)
        other = open_database()
        with other.reading() as session:
            assert session.get(Site, "two") is not None
        # Its connection stays open in the pool, as those of a server do.
        with pytest.raises(BackupError, match="Stop webqueue"):
            restore(force=True)
        other.close()
        done = restore(force=True)
        with database.reading() as session:
            assert [site.code for site in session.scalars(select(Site))] == ["one"]
            assert not jobs.paused_all(session)
        if done.kept is not None:
            with closing(sqlite3.connect(done.kept)) as kept:
                assert kept.execute("SELECT count(*) FROM sites").fetchone() == (2,)
        assert (done.kept is not None) == database.is_sqlite


@pytest.mark.parametrize("engine_name", ["sqlite"])
def test_the_copy_is_one_state_while_others_write(instance: Path, tmp_path: Path, engine_name: str) -> None:
    source = instance / "busy.sqlite3"
    stop = threading.Event()
    written = 0
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE pairs (name TEXT PRIMARY KEY, value INTEGER)")
        connection.execute("CREATE TABLE weight (text TEXT)")
        connection.execute("INSERT INTO pairs VALUES ('a', 0)")
        # Several steps lie between the two rows.
        connection.executemany("INSERT INTO weight VALUES (?)", [("x" * 2_000_000,)] * 40)
        connection.execute("INSERT INTO pairs VALUES ('b', 0)")

    def write() -> None:
        nonlocal written
        with closing(sqlite3.connect(source, isolation_level=None, timeout=30)) as connection:
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("UPDATE pairs SET value = value + 1 WHERE name = 'a'")
                connection.execute("UPDATE pairs SET value = value + 1 WHERE name = 'b'")
                connection.execute("INSERT INTO weight VALUES (?)", ("y" * 20_000,))
                connection.execute("COMMIT")
                written += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: written > 20, timeout=PATIENCE_SEC)
        before = written
        copy_sqlite(source, tmp_path / "copy.sqlite3")
        during = written - before
    finally:
        stop.set()
        writer.join()
    assert during > 5, "writers were not held up"
    with closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as connection:
        values = dict(connection.execute("SELECT name, value FROM pairs"))
        (rows,) = connection.execute("SELECT count(*) FROM weight").fetchone()
    assert values["a"] == values["b"] == rows - 40
    assert values["a"] >= before


def test_a_missing_program_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgresql_copy, "_DEBIAN", tmp_path)
    with pytest.raises(BackupError, match="apt-get install postgresql-client"):
        postgresql_copy.program("pg_dump")
