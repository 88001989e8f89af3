"""Restoring a backup into an instance that is empty, or is to be replaced."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import delete, inspect, select, text
from sqlalchemy.orm import Session

from webqueue import clock, jobs, migrations
from webqueue.backup.archive import POSTGRESQL_MEMBER, SQLITE_MEMBER, BackupError, Manifest, reading, verify
from webqueue.backup.files import REPLACED, put_file
from webqueue.backup.postgresql_copy import check_programs, load
from webqueue.backup.sqlite_copy import check_sqlite, put_database_aside
from webqueue.database import Database
from webqueue.models import AuditEntry, Document, Job, Process, RateKey, Site, Token, User, UserSession
from webqueue.settings import Settings

# An instance that has none of these has nothing to lose.
_WORTH_KEEPING: Final = (Site, User, Token, Job, Document)


@dataclass(frozen=True)
class Restored:
    """What was restored.

    Attributes:
        recovered: jobs that ran in the backup, and went back to their place in the line.
        paused: whether everything is paused.
        kept: the database that was there before, under its new name; None when there was none.
    """

    manifest: Manifest
    recovered: int
    paused: bool
    kept: Path | None


def restore(
    database: Database, settings: Settings, archive: Path, *, force: bool, paused: bool, by: str
) -> Restored:
    """Put an archive in the place of this instance's data; the archive is checked as a whole first.

    Args:
        database: opened with the settings' URL, whatever it has; no other process may use it. On SQLite it is closed
            here, and has to be opened anew.
        force: replace what the instance has. On SQLite the old file stays beside the new one, as other files do that
            are replaced.
        paused: pause everything, so that the copy and the original do not crawl at once.
        by: who does it.

    Raises:
        BackupError: the archive is damaged or does not fit, the instance is not empty, or somebody uses it, and nothing
            was changed; or the database is restored, and not all files could be written.
    """
    manifest = verify(archive)
    _check_fits(database, manifest)
    if not force and (found := _what_is_there(database)):
        raise BackupError(
            f"This instance is not empty: it has {found}. Choose another WEBQUEUE_INSTANCE_PATH, or say --force to "
            "replace it."
        )
    settings.instance_path.mkdir(parents=True, exist_ok=True)
    if database.is_sqlite:
        return _restore_sqlite(database, settings, archive, manifest, paused=paused, by=by)
    return _restore_postgresql(database, settings, archive, manifest, paused=paused, by=by)


def _restore_sqlite(
    database: Database, settings: Settings, archive: Path, manifest: Manifest, *, paused: bool, by: str
) -> Restored:
    file = Path(str(database.url.database))
    database.close()
    with _extracted(archive, SQLITE_MEMBER, file.parent) as staged:
        with closing(sqlite3.connect(staged)) as connection:
            check_sqlite(connection, staged)
        # Upgraded and quietened before it gets its name: a server that starts at once finds it paused.
        copy = Database(
            f"sqlite:///{staged}", instance_path=staged.parent, synchronous=settings.sqlite_synchronous
        )
        try:
            migrations.upgrade(copy)
            recovered = copy.run(lambda session: _quieten(session, archive, paused=paused, by=by))
            replaced = copy.run(_ending)
        finally:
            copy.close()
        with closing(sqlite3.connect(staged)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        # First what may be refused. The files come last, so that the database is away for the shortest time.
        kept = put_database_aside(file, replaced)
        staged.rename(file)
        _put_files(archive, settings, replaced)
    return Restored(manifest, recovered, paused, kept)


def _restore_postgresql(
    database: Database, settings: Settings, archive: Path, manifest: Manifest, *, paused: bool, by: str
) -> Restored:
    check_programs()
    # The lock keeps a server that starts meanwhile from upgrading half of it.
    with (
        _extracted(archive, POSTGRESQL_MEMBER, settings.instance_path) as staged,
        migrations.one_at_a_time(database),
    ):
        _check_alone(database)
        # Whatever happens from here on, the copy is paused until the last step has said otherwise.
        was_paused = load(database.url, staged, by=by)
        replaced = database.run(_ending)
        _put_files(archive, settings, replaced)
        migrations.upgrade_alone(database)
        recovered = database.run(
            lambda session: _quieten(session, archive, paused=paused, by=by, resume=not was_paused)
        )
    # What its connections know of the tables is of the dropped ones.
    database.close()
    return Restored(manifest, recovered, paused, None)


def _check_alone(database: Database) -> None:
    """Refuse a PostgreSQL database that somebody else uses; to be asked under the lock of the migrations."""
    with database.reading() as session:
        others = session.scalar(
            text(
                # Of other roles the kind is hidden from who is no superuser; the server's own workers have no role.
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND coalesce(backend_type, 'client backend') = 'client backend' AND usesysid IS NOT NULL"
                " AND pid <> pg_backend_pid()"
                " AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                " AND classid = 0 AND objid = :lock AND objsubid = 1)"
            ),
            {"lock": migrations.ADVISORY_LOCK},
        )
    if others:
        raise BackupError(
            f"Others are connected to this database (connections: {others}). Stop webqueue on every machine first."
        )


def _ending(session: Session) -> str:
    # Of the restoration, to the microsecond: what two restorations of one archive keep has two names.
    return f"{REPLACED}{clock.now(session):%Y%m%dT%H%M%S.%fZ}"


def _check_fits(database: Database, manifest: Manifest) -> None:
    engine = "sqlite" if database.is_sqlite else "postgresql"
    if manifest.engine != engine:
        raise BackupError(
            f"The backup is of a {manifest.engine} database, and WEBQUEUE_DATABASE_URL names a {engine} one."
        )
    if not migrations.knows(manifest.revision):
        raise BackupError(
            f"The backup was written by a newer webqueue ({manifest.version}, tables {manifest.revision}). Install "
            "that version first."
        )


def _what_is_there(database: Database) -> str:
    """What would be lost, in words; "" when nothing is."""
    with database.reading() as session:
        tables = set(inspect(session.connection()).get_table_names())
        for model in _WORTH_KEEPING:
            if model.__tablename__ in tables and session.scalar(select(1).select_from(model).limit(1)):
                return str(model.__tablename__).replace("_", " ")
    return ""


def _quieten(session: Session, archive: Path, *, paused: bool, by: str, resume: bool = False) -> int:
    """Free what workers of the original hold in the copy, and pause it; how many jobs were running.

    Args:
        resume: unless `paused`, take away the pause under which it was loaded.
    """
    if paused:
        jobs.pause_all(session, by=by)
    elif resume:
        jobs.resume_all(session, by=by)
    holders = set(session.scalars(select(RateKey.leased_by).where(RateKey.leased_by.is_not(None)).distinct()))
    recovered = jobs.free_dead(session, [holder for holder in holders if holder is not None])
    session.execute(delete(Process))
    # Also those that were ended since the backup was made.
    session.execute(delete(UserSession))
    AuditEntry.record(
        session,
        at=clock.now(session),
        by=by,
        action="restored",
        kind="installation",
        name=archive.name,
        before=None,
        after={"paused": paused},
    )
    return len(recovered)


@contextmanager
def _extracted(archive: Path, member: str, folder: Path) -> Iterator[Path]:
    """The database of the archive as a file, beside where it is to be."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".webqueue-restore-", dir=folder))
    try:
        target = scratch / member
        with reading(archive) as members:
            for name, stream in members:
                if name == member:
                    with target.open("xb") as file:
                        shutil.copyfileobj(stream, file)
                    break
        if not target.exists():
            raise BackupError(f"{archive} has no {member}.")
        yield target
    finally:
        shutil.rmtree(scratch)


def _put_files(archive: Path, settings: Settings, replaced: str) -> None:
    try:
        with reading(archive) as members:
            for name, stream in members:
                if "/" in name:
                    put_file(settings, name, stream, replaced=replaced)
    except OSError as error:
        raise BackupError(
            f"The database is restored, but not all files are: {error}. Mend that, and restore again with --force. "
            f"What was here is kept under names with {replaced}."
        ) from error
