"""Making a backup while everything runs."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, func, inspect, select, text
from sqlalchemy.orm import Session

import webqueue
from webqueue import clock, migrations
from webqueue.backup.archive import (
    POSTGRESQL_MEMBER,
    SQLITE_MEMBER,
    ArchiveWriter,
    BackupError,
    Manifest,
)
from webqueue.backup.files import add_files
from webqueue.backup.postgresql_copy import dump
from webqueue.backup.sqlite_copy import copy_sqlite
from webqueue.database import Database
from webqueue.disk import sync_folder
from webqueue.models import Base
from webqueue.settings import Settings


@dataclass(frozen=True)
class Made:
    """A backup that is there.

    Attributes:
        bytes: size of the archive.
    """

    path: Path
    bytes: int
    manifest: Manifest


def back_up(database: Database, settings: Settings, target: Path) -> Made:
    """Write one archive with the database, the originals and kept pages, the evidence, and the settings file.

    The database is one state of one moment, with everything that lives in it: jobs, logs, documents, users, tokens and
    the secret of the sessions. The archive is therefore as secret as the instance, and readable by its owner alone.

    Args:
        target: a file that does not exist yet, or a folder, in which the file is named by its time.

    Raises:
        BackupError: the database has no tables, there is such a file already, or a needed program is missing.
        OSError: it cannot be written; nothing is left there.
    """
    if not migrations.has_tables(database):
        url = database.url.render_as_string(hide_password=True)
        raise BackupError(
            f"There is no installation in {url}. Set WEBQUEUE_DATABASE_URL to the one that is meant."
        )
    with database.reading() as session:
        now = clock.now(session)
    path = _path(target, now)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with (
            _scratch(path.parent) as scratch,
            # Before anything is in it, only its owner may read it: it has everybody's secrets.
            os.fdopen(
                os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
            ) as file,
        ):
            archive = ArchiveWriter(file)
            copy = scratch / (SQLITE_MEMBER if database.is_sqlite else POSTGRESQL_MEMBER)
            revision, counts = _copy(database, copy)
            with copy.open("rb") as stream:
                archive.add(copy.name, copy.stat().st_size, stream)
            add_files(archive, settings)
            manifest = Manifest(
                version=webqueue.__version__,
                made_at=now.isoformat(),
                engine="sqlite" if database.is_sqlite else "postgresql",
                revision=revision,
                counts=counts,
                files=archive.files,
            )
            archive.finish(manifest)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        sync_folder(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)
    return Made(path, path.stat().st_size, manifest)


def _path(target: Path, now: datetime) -> Path:
    path = target / f"webqueue-{now:%Y%m%dT%H%M%SZ}.tar.gz" if target.is_dir() else target
    if path.exists():
        raise BackupError(f"{path} is there already. Name another file, or a folder.")
    if not path.parent.is_dir():
        raise BackupError(f"There is no folder {path.parent}.")
    return path


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    # Beside the archive, where there has to be room anyway.
    scratch = Path(tempfile.mkdtemp(prefix=".webqueue-backup-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)


def _copy(database: Database, target: Path) -> tuple[str, Mapping[str, int]]:
    """Copy the database; the revision of its tables, and their rows, of the same moment."""
    if not database.is_sqlite:
        with database.reading() as session:
            # pg_dump may take longer than a transaction may usually be idle.
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            snapshot: str = session.scalars(text("SELECT pg_export_snapshot()")).one()
            facts = _facts(session)
            dump(database.url, target, snapshot=snapshot)
            return facts
    try:
        copy_sqlite(Path(str(database.url.database)), target)
    except sqlite3.Error as error:
        raise BackupError(f"The database cannot be copied: {error}") from error
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(f"file:{target}?mode=ro", uri=True))
    try:
        with Session(engine) as session:
            return _facts(session)
    finally:
        engine.dispose()


def _facts(session: Session) -> tuple[str, Mapping[str, int]]:
    revision = MigrationContext.configure(session.connection()).get_current_revision()
    # A backup before the upgrade has the tables of the version before.
    there = set(inspect(session.connection()).get_table_names())
    counts = {
        table.name: session.scalar(select(func.count()).select_from(table)) or 0
        for table in Base.metadata.sorted_tables
        if table.name in there
    }
    return str(revision), counts
