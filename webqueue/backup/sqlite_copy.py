"""A copy of a SQLite database in use, by SQLite's own backup."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from webqueue.backup.archive import BackupError

# 16 MiB a step at pages of 4 KiB; between two steps others get the disk.
_PAGES_A_STEP: Final = 4096
_BETWEEN_STEPS_SEC: Final = 0.002


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy one state of the database, while others write.

    The read transaction around it is what holds the state: without one, SQLite begins anew whenever another process
    commits between two steps, and under steady writes never ends. Writers are not held up (write-ahead log).

    Raises:
        BackupError: the database is damaged.
    """
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, isolation_level=None)) as old,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        old.execute("PRAGMA busy_timeout = 60000")
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_master").fetchone()
        old.backup(copy, pages=_PAGES_A_STEP, sleep=_BETWEEN_STEPS_SEC)
        old.execute("ROLLBACK")
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        check_sqlite(copy, source)


def check_sqlite(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged database.

    Raises:
        BackupError: it says what SQLite found first.
    """
    try:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise BackupError(f"The database {path} is damaged: {said}")


def put_database_aside(path: Path, ending: str) -> Path | None:
    """Rename the database that is there, for which nobody may use it; its new path, None when there is none.

    Args:
        ending: is appended to its name.

    Raises:
        BackupError: another process has it open, or there is a file of the new name. Nothing was changed.
    """
    if not path.exists():
        return None
    aside = path.with_name(path.name + ending)
    if aside.exists():
        raise BackupError(
            f"{aside} is there already, and would be replaced. Move it elsewhere, and restore again."
        )
    with closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as connection:
        try:
            # SQLite leaves the write-ahead log only when nobody else has the file open; and then it is one file.
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            raise BackupError(
                f"The database {path} is in use: {error}. Stop webqueue in this instance first."
            ) from None
        except sqlite3.DatabaseError:
            tables = 1  # damaged: it is kept as it is, beside the restored one
    if not tables:  # made by opening it
        path.unlink()
        return None
    for of_sqlite in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + of_sqlite)
        if part.exists():
            part.rename(aside.with_name(aside.name + of_sqlite))
    return aside
