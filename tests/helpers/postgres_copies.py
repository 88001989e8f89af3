"""Databases of PostgreSQL for one test after another: a copy that was only written to is emptied and lent again.

Making and dropping a database costs more than most tests do; emptying one costs a tenth of it. A copy whose tables,
triggers or statistics were changed, or that has grown, is dropped.
"""

from __future__ import annotations

import secrets
from typing import Final

import psycopg

from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until

# What changes when a test does more than write rows: anything made, altered, dropped or analyzed.
_SHAPE: Final = """
SELECT concat_ws(' ',
  (SELECT count(*) || '/' || max(oid::bigint) FROM pg_class WHERE oid >= 16384),
  (SELECT count(*) || '/' || max(oid::bigint) FROM pg_constraint WHERE oid >= 16384),
  (SELECT count(*) || '/' || max(oid::bigint) FROM pg_trigger WHERE oid >= 16384),
  (SELECT count(*) || '/' || max(oid::bigint) FROM pg_proc WHERE oid >= 16384),
  (SELECT count(*) || '/' || max(oid::bigint) FROM pg_attrdef WHERE oid >= 16384),
  (SELECT count(*) || '/' || count(*) FILTER (WHERE attisdropped) FROM pg_attribute WHERE attrelid >= 16384),
  (SELECT count(*) FROM pg_index WHERE indexrelid >= 16384 AND NOT indisvalid),
  (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
  (SELECT string_agg(setconfig::text, ',') FROM pg_db_role_setting
    JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()))
"""
_SIZE: Final = "SELECT pg_database_size(current_database())"
_MAY_GROW_BYTES: Final = 2_000_000
_OTHERS: Final = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class PostgresCopies:
    """Copies of a server's template.

    Args:
        server: whose template is set; nobody writes to that any more.
        template: its name.
    """

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._free: list[str] = []
        with server.connect(template) as connection:
            self._shape = _one(connection, _SHAPE)
            self._size = int(_one(connection, _SIZE))
            self._reset = _reset_of(connection)

    def take(self) -> str:
        """The URL of a database that is as the template was, under a name of its own."""
        if not self._free:
            return self._server.create_database()
        # The name is new, so that whoever was left behind by the last test cannot come back.
        old, new = self._free.pop(), f"test_{secrets.token_hex(6)}"
        self._server.execute(f"ALTER DATABASE {old} RENAME TO {new}")
        return self._server.url(new)

    def give_back(self, url: str) -> None:
        """End the use of a database, with whoever is still connected to it."""
        name = url.rpartition("/")[2]
        if self._emptied(name):
            self._free.append(name)
        else:
            self._server.drop_database(url)

    def _emptied(self, name: str) -> bool:
        try:
            with self._server.connect(name) as connection:
                connection.execute(f"SELECT pg_terminate_backend(pid) {_OTHERS}".encode())
                wait_until(lambda: _one(connection, f"SELECT count(*) {_OTHERS}") == "0")
                if _one(connection, _SHAPE) != self._shape:
                    return False
                if int(_one(connection, _SIZE)) > self._size + _MAY_GROW_BYTES:
                    return False
                connection.execute(self._reset.encode())
        except psycopg.OperationalError:  # the test dropped it, or does not let anybody in
            return False
        return True


def _reset_of(connection: psycopg.Connection) -> str:
    """The statements that give every table its rows, and every sequence its number, of this database."""
    tables = [
        str(name)
        for (name,) in connection.execute(
            "SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
    ]
    # Without triggers: foreign keys hold between whole sets of rows, so their order does not matter.
    statements = ["BEGIN", "SET LOCAL session_replication_role = replica"]
    for table in tables:
        statements.append(f"DELETE FROM {table}")
        rows = _one(connection, f"SELECT coalesce(json_agg(t), '[]') FROM {table} t")
        if rows != "[]":
            statements.append(
                f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, {_quoted(rows)}::json)"
            )
    for name, value in connection.execute(
        "SELECT quote_ident(sequencename), last_value FROM pg_sequences WHERE schemaname = 'public'"
    ):
        statements.append(f"SELECT setval('{name}', {value or 1}, {'false' if value is None else 'true'})")
    return ";\n".join([*statements, "COMMIT"])


def _one(connection: psycopg.Connection, question: str) -> str:
    row = connection.execute(f"SELECT ({question})::text".encode()).fetchone()
    assert row is not None
    return str(row[0])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
