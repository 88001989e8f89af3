"""Dump and restoration of a PostgreSQL database, by PostgreSQL's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from webqueue.backup.archive import BackupError

_DEBIAN: Final = Path("/usr/lib/postgresql")


def dump(url: URL, target: Path, *, snapshot: str) -> None:
    """Write `pg_dump`'s own format, of the state that another transaction has exported.

    Raises:
        BackupError: pg_dump is missing, or failed; it says why.
    """
    _run(
        "pg_dump", url,
        ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}"],
    )  # fmt: skip


def load(url: URL, source: Path) -> None:
    """Replace what the database has by a dump, in one transaction: all of it, or nothing.

    Raises:
        BackupError: pg_restore is missing, or failed; it says why.
    """
    _run(
        "pg_restore", url,
        ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", str(source)],
    )  # fmt: skip


def program(name: str) -> str:
    """The program's path: what PATH finds, else the newest of Debian's folders.

    Raises:
        BackupError: it is not installed; it says what to install.
    """
    found = shutil.which(name)
    if found is None:
        folders = [folder for folder in _DEBIAN.glob("*") if (folder / "bin" / name).exists()]
        newest = max(folders, key=lambda folder: float(folder.name), default=None)
        found = str(newest / "bin" / name) if newest is not None else None
    if found is None:
        raise BackupError(
            f"The program {name} is not installed here. Install PostgreSQL's client programs, of the server's version "
            "or a later one (Debian: apt-get install postgresql-client)."
        )
    return found


def _run(name: str, url: URL, arguments: Sequence[str]) -> None:
    # Every user of the machine can read a command line: the password goes by the environment.
    address = URL.create(
        "postgresql", url.username, None, url.host, url.port, url.database, url.query
    ).render_as_string()
    environment = {**os.environ, **({"PGPASSWORD": url.password} if url.password else {})}
    done = subprocess.run(  # noqa: S603
        [program(name), f"--dbname={address}", "--no-password", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-500:]
        raise BackupError(f"{name} failed: {said or f'exit code {done.returncode}'}")
