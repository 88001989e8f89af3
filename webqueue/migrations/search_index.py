"""The index behind the search in documents: FTS5 trigrams on SQLite, pg_trgm on PostgreSQL (docs/decisions/0009).

It is no part of the models: a database that cannot have it is searched without it, only slower.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from webqueue import logs

log = logs.get(__name__)

# The start of a text is searched, so that one document costs at most so much when it is stored.
SEARCHED_CHARACTERS: Final = 200_000
FTS_TABLE: Final = "documents_fts"
POSTGRESQL_INDEX: Final = "ix_documents_search"
_BATCH: Final = 500
_ROOM: Final = f"substr(%s.text, 1, {SEARCHED_CHARACTERS})"
# PostgreSQL: insufficient privilege; no such extension on this server (its files are not installed).
_NOT_TO_BE_HAD: Final = frozenset({"42501", "0A000", "58P01"})


def is_own(name: str | None, kind: str, _parents: object = None) -> bool:
    """Whether a table or index belongs to the models, for Alembic's comparison (`include_name`)."""
    if kind == "table":
        return not str(name).startswith(FTS_TABLE)
    return not (kind == "index" and name == POSTGRESQL_INDEX)


def exists(connection: Connection) -> bool:
    """Whether the index is there."""
    if connection.dialect.name == "sqlite":
        found = connection.execute(
            text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"), {"name": FTS_TABLE}
        )
    else:
        found = connection.execute(
            text(
                "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "WHERE c.relname = :name AND i.indisvalid AND pg_table_is_visible(c.oid)"
            ),
            {"name": POSTGRESQL_INDEX},
        )
    return found.first() is not None


def build(connection: Connection) -> bool:
    """Make the index and fill it from the documents that there are; whether it is there now.

    A database that cannot have it is left as it is, with a line in the log.
    """
    if exists(connection):
        return True
    return _build_sqlite(connection) if connection.dialect.name == "sqlite" else _build_postgresql(connection)


def _build_postgresql(connection: Connection) -> bool:
    try:
        # In a savepoint: the refusal must not take the whole migration with it.
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in _NOT_TO_BE_HAD:
            raise
        log.warning(
            "documents are searched without an index",
            reason=str(error.orig).strip(),
            advice="Let a superuser run CREATE EXTENSION pg_trgm in this database, then run webqueue db upgrade.",
        )
        return False
    connection.execute(
        text(
            f"CREATE INDEX IF NOT EXISTS {POSTGRESQL_INDEX} ON documents USING gin (title gin_trgm_ops, "
            f"url gin_trgm_ops, (left(text, {SEARCHED_CHARACTERS})) gin_trgm_ops)"
        )
    )
    return True


def _build_sqlite(connection: Connection) -> bool:
    # Contentless: the texts stand in `documents` already, and what is wanted of a hit is its number alone.
    try:
        connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE {FTS_TABLE} USING fts5(title, text, url, content='', tokenize='trigram')"
        )
    except DBAPIError as error:
        if "no such" not in str(error.orig):
            raise
        log.warning("documents are searched without an index", reason=f"this SQLite: {error.orig}")
        return False
    _fill_sqlite(connection)
    for statement in _TRIGGERS:
        connection.exec_driver_sql(statement)
    return True


def _fill_sqlite(connection: Connection) -> None:
    last = 0
    while True:
        ids = connection.exec_driver_sql(
            "SELECT id FROM documents WHERE id > ? ORDER BY id LIMIT ?", (last, _BATCH)
        ).all()
        if not ids:
            return
        newest = ids[-1][0]
        connection.exec_driver_sql(
            f"INSERT INTO {FTS_TABLE}(rowid, title, text, url) "  # noqa: S608 - a constant
            f"SELECT id, title, {_ROOM % 'documents'}, url FROM documents WHERE id > ? AND id <= ?",
            (last, newest),
        )
        last = newest
        log.info("documents indexed for the search", up_to=last)


def _delete_of(row: str) -> str:
    """A contentless table forgets a row when it is told what the row was."""
    return (
        f"INSERT INTO {FTS_TABLE}({FTS_TABLE}, rowid, title, text, url) "  # noqa: S608 - constants
        f"VALUES ('delete', {row}.id, {row}.title, {_ROOM % row}, {row}.url);"
    )


def _insert_of(row: str) -> str:
    return (
        f"INSERT INTO {FTS_TABLE}(rowid, title, text, url) "  # noqa: S608 - constants
        f"VALUES ({row}.id, {row}.title, {_ROOM % row}, {row}.url);"
    )


# Triggers and not the store's own statements: whatever changes a document changes the index in the same transaction.
_TRIGGERS: Final = (
    f"CREATE TRIGGER {FTS_TABLE}_insert AFTER INSERT ON documents BEGIN {_insert_of('new')} END",
    f"CREATE TRIGGER {FTS_TABLE}_delete AFTER DELETE ON documents BEGIN {_delete_of('old')} END",
    (
        f"CREATE TRIGGER {FTS_TABLE}_update AFTER UPDATE OF id, title, text, url ON documents "
        "WHEN old.title IS NOT new.title OR old.text IS NOT new.text OR old.url IS NOT new.url OR old.id IS NOT new.id "
        f"BEGIN {_delete_of('old')} {_insert_of('new')} END"
    ),
)
