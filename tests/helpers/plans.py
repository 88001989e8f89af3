"""How a database goes about the statements that the verbs really send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, event

from webqueue.database import Database

# A plan may look at this many rows in vain before it counts as a scan: as many as run at once in the test's tables.
LOOKED_AT_IN_VAIN = 60


@dataclass(frozen=True)
class Sent:
    """A statement, and the parameters it was sent with."""

    text: str
    parameters: Any

    def __str__(self) -> str:
        return " ".join(self.text.split())


@contextmanager
def recorded(database: Database) -> Iterator[list[Sent]]:
    """Everything that writers send to the database while the block runs."""
    with _recorded(database.write_engine, database._heartbeat_write_engine) as sent:
        yield sent


@contextmanager
def recorded_reads(database: Database) -> Iterator[list[Sent]]:
    """Everything that readers send to the database while the block runs."""
    with _recorded(database.read_engine) as sent:
        yield sent


@contextmanager
def _recorded(*engines: Engine) -> Iterator[list[Sent]]:
    sent: list[Sent] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if statement.split(maxsplit=1)[0] in {"SELECT", "INSERT", "UPDATE", "DELETE"}:
            sent.append(Sent(statement, parameters))

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


_STEPS_A_CALL = 100


class Work:
    """How many steps SQLite's machine made, rounded to hundreds: as many each time, whatever else the computer does."""

    steps = 0


@contextmanager
def counted(database: Database) -> Iterator[Work]:
    """Count what SQLite does for the readers of the database while the block runs."""
    work, seen = Work(), set[Any]()

    def count() -> int:
        work.steps += _STEPS_A_CALL
        return 0

    def watch(connection: Any, _record: object, _proxy: object) -> None:
        connection.set_progress_handler(count, _STEPS_A_CALL)
        seen.add(connection)

    event.listen(database.engine, "checkout", watch)
    try:
        yield work
    finally:
        event.remove(database.engine, "checkout", watch)
        for connection in seen:
            connection.set_progress_handler(None, 0)


def scans(connection: Connection, sent: Sent, tables: frozenset[str]) -> list[str]:
    """The parts of the statement's plan that walk one of the tables, in words; none is what one wants."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sent.text}", sent.parameters).all()
        details = [str(row.detail) for row in rows]
        return [detail for detail in details if _walks(detail, tables) or _sorts_jobs(detail, details)]
    # It is really run, so that the rows it looked at are counted; the caller rolls back.
    plan = connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, FORMAT JSON) {sent.text}", sent.parameters
    ).scalar_one()[0]["Plan"]
    return [_words(node) for node in _nodes(plan) if node.get("Relation Name") in tables and _is_scan(node)]


def _walks(detail: str, tables: frozenset[str]) -> bool:
    """A scan that uses an index, too, walks the whole of it."""
    words = detail.split()
    return words[0] == "SCAN" and words[1] in tables


def _sorts_jobs(detail: str, details: list[str]) -> bool:
    """Whether jobs are sorted that an index has in order: then all jobs of a key are read for one."""
    return detail.startswith("USE TEMP B-TREE") and any(" jobs " in f"{other} " for other in details)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from _nodes(part)


def _is_scan(node: dict[str, Any]) -> bool:
    if node["Node Type"] == "ModifyTable":
        return False
    in_vain: int = node.get("Rows Removed by Filter", 0)
    return bool(node["Node Type"] == "Seq Scan") or in_vain > LOOKED_AT_IN_VAIN


def _words(node: dict[str, Any]) -> str:
    told = ("Node Type", "Relation Name", "Index Name", "Index Cond", "Filter", "Rows Removed by Filter")
    return ", ".join(str(node[name]) for name in told if name in node)
