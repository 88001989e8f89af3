"""Dump and restoration of a PostgreSQL database, by PostgreSQL's own programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from sqlalchemy import URL

from webqueue.backup.archive import BackupError
from webqueue.migrations.search_index import POSTGRESQL_INDEX
from webqueue.models import Base
from webqueue.models.base import PAUSED_ALL

_DEBIAN: Final = Path("/usr/lib/postgresql")
_PROGRAMS: Final = ("pg_restore", "psql")
# A line of `pg_restore --list`: numbers, kind, schema, name, owner.
_ENTRY: Final = re.compile(r"\d+; \d+ \d+ (?P<kind>[A-Z ]+?) (?P<schema>\S+) (?P<name>\S+)( |$)")
# They are the server's, or belong to whoever made the database, and are there already; the index that needs an
# extension is built anew by the upgrade, which knows what to do without the extension.
_NOT_LOADED: Final = re.compile(
    r"\d+; \d+ \d+ ((COMMENT - )?(EXTENSION|SCHEMA) (- )?\S+"
    rf"|(INDEX|COMMENT) \S+ (INDEX )?{POSTGRESQL_INDEX})( |$)"
)
_WAS_PAUSED: Final = "was paused: true"
_LOCK_TIMEOUT: Final = "30s"


def dump(url: URL, target: Path, *, snapshot: str) -> None:
    """Write `pg_dump`'s own format, of the state that another transaction has exported.

    Raises:
        BackupError: pg_dump is missing, or failed; it says why.
    """
    _run(
        ["pg_dump", _address(url), "--no-password", "--format=custom", "--no-owner", "--no-privileges",
         f"--snapshot={snapshot}", f"--file={target}"],
        url,
    )  # fmt: skip


def check_programs() -> None:
    """Refuse to begin a restoration that cannot end.

    Raises:
        BackupError: a program is not installed; it says what to install.
    """
    for name in _PROGRAMS:
        program(name)


def load(url: URL, source: Path, *, by: str) -> bool:
    """Replace webqueue's tables by those of a dump, paused, in one transaction: all of it, or nothing.

    The tables that are there are dropped first, also those that the dump does not know; `pg_restore --clean` would drop
    what the dump has, and fail on what a newer version has made on top of it.

    Args:
        by: who pauses everything.

    Returns:
        Whether everything was paused in the dump.

    Raises:
        BackupError: a program is missing, or failed; it says why. Nothing was changed.
    """
    lines = _run(["pg_restore", "--list", str(source)], url).splitlines()
    entries = [found for line in lines if (found := _ENTRY.match(line))]
    settings = [one["schema"] for one in entries if one["kind"] == "TABLE" and one["name"] == "settings"]
    if len(settings) != 1:
        raise BackupError("The dump in the archive does not have the tables of one webqueue.")
    with tempfile.NamedTemporaryFile("w", dir=source.parent, suffix=".list") as chosen:
        chosen.writelines(f"{line}\n" for line in lines if not _NOT_LOADED.match(line))
        chosen.flush()
        said = _load(
            url,
            ["--no-owner", "--no-privileges", f"--use-list={chosen.name}", "--file=-", str(source)],
            before=_dropping(entries, settings[0]),
            after=_pausing(settings[0], by),
        )
    return _WAS_PAUSED in said.splitlines()


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


def _dropping(entries: Sequence[re.Match[str]], schema: str) -> str:
    """Drops webqueue's tables, the dump's, and those that refer to them, as a newer version's may.

    Nothing is dropped by CASCADE: a view of somebody else on these tables makes the restoration fail, not vanish. Tables
    of others beside them stay.
    """
    known = sorted({*Base.metadata.tables, "alembic_version"})
    names = [(schema, name) for name in known]
    names += [(one["schema"], one["name"]) for one in entries if one["kind"] == "TABLE"]
    sequences = [(one["schema"], one["name"]) for one in entries if one["kind"] == "SEQUENCE"]
    return f"""
BEGIN;
SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}';
SET LOCAL client_min_messages = warning;
DO $drop$
DECLARE doomed text;
BEGIN
  WITH RECURSIVE tables(id) AS (
    SELECT to_regclass(name)::oid FROM unnest(ARRAY[{_literals(names)}]) name
    UNION
    SELECT conrelid FROM pg_constraint JOIN tables ON confrelid = id WHERE contype = 'f'
  )
  SELECT string_agg(id::regclass::text, ', ') INTO doomed FROM tables WHERE id IS NOT NULL;
  IF doomed IS NOT NULL THEN
    EXECUTE 'DROP TABLE ' || doomed;
  END IF;
  FOR doomed IN SELECT to_regclass(name)::text FROM unnest(ARRAY[{_literals(sequences)}]::text[]) name LOOP
    IF doomed IS NOT NULL THEN
      EXECUTE 'DROP SEQUENCE ' || doomed;
    END IF;
  END LOOP;
END $drop$;
"""  # noqa: S608 - quoted


def _pausing(schema: str, by: str) -> str:
    """Pauses everything, after saying whether it was; the last of the transaction."""
    table = f"{_identifier(schema)}.settings"
    return f"""
SELECT {_literal(_WAS_PAUSED.removesuffix("true"))} || value::text FROM {table} WHERE name = {_literal(PAUSED_ALL)};
INSERT INTO {table} (name, value, changed_at, changed_by)
  VALUES ({_literal(PAUSED_ALL)}, 'true', now(), {_literal(by)})
  ON CONFLICT (name) DO UPDATE SET value = 'true';
COMMIT;
"""  # noqa: S608 - quoted


def _identifier(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _literal(value: str) -> str:
    return "'{}'".format(value.replace("'", "''"))


def _literals(names: Sequence[tuple[str, str]]) -> str:
    return ", ".join(_literal(f"{_identifier(schema)}.{_identifier(name)}") for schema, name in names)


def _load(url: URL, arguments: Sequence[str], *, before: str, after: str) -> str:
    """Send what pg_restore writes through one psql, between `before` and `after`; what psql said.

    `after`, which commits, is sent only when pg_restore has succeeded: a cut stream is rolled back.
    """
    reader = [program("pg_restore"), *arguments]
    writer = [program("psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--no-password",
              "--set=ON_ERROR_STOP=1", _address(url), "--file=-"]  # fmt: skip
    with (
        tempfile.TemporaryFile() as read_errors,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        with (
            subprocess.Popen(  # noqa: S603
                reader, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=read_errors
            ) as restoring,
            subprocess.Popen(  # noqa: S603
                writer, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=_environment(url)
            ) as loading,
        ):
            try:
                _feed(restoring, loading, before, after)
            except BrokenPipeError:
                pass  # psql has ended; it says why
            except BaseException:
                loading.kill()
                raise
            finally:
                restoring.kill()
        if loading.returncode != 0:
            raise _failed("psql", _text(errors), loading.returncode)
        if restoring.returncode != 0:
            raise _failed("pg_restore", _text(read_errors), restoring.returncode)
        return _text(output)


def _feed(
    restoring: subprocess.Popen[bytes], loading: subprocess.Popen[bytes], before: str, after: str
) -> None:
    assert restoring.stdout is not None
    assert loading.stdin is not None
    with loading.stdin as stream:
        stream.write(before.encode())
        shutil.copyfileobj(restoring.stdout, stream)
        if restoring.wait() == 0:
            stream.write(after.encode())
    loading.wait()


def _address(url: URL) -> str:
    # Every user of the machine can read a command line: the password goes by the environment.
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    return f"--dbname={shown.render_as_string()}"


def _environment(url: URL) -> dict[str, str]:
    return {**os.environ, **({"PGPASSWORD": url.password} if url.password else {})}


def _run(command: Sequence[str], url: URL) -> str:
    done = subprocess.run(  # noqa: S603
        [program(command[0]), *command[1:]],
        env=_environment(url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise _failed(command[0], done.stderr, done.returncode)
    return done.stdout


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _failed(name: str, said: str, code: int) -> BackupError:
    return BackupError(f"{name} failed: {' '.join(said.split())[-500:] or f'exit code {code}'}")
