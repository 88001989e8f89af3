"""The audit log: who changed what, from what, into what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Exists, Select, false, func, literal, select, tuple_
from sqlalchemy.orm import Session, aliased

from webqueue.errors import NotFoundError
from webqueue.models import AuditEntry
from webqueue.queries.numbers import is_number
from webqueue.queries.paging import Page, checked_limit, cursor_number

KINDS: Final = (
    "site",
    "target",
    "rate_group",
    "user",
    "token",
    "rate_key",
    "job",
    "setting",
    "rag_export",
    "installation",
)


@dataclass(frozen=True)
class AuditRow:
    """One change; of a changed object `before` and `after` have only what changed, secrets masked."""

    id: int
    at: datetime
    by: str
    action: str
    kind: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def fields(self) -> list[tuple[str, Any, Any]]:
        """Each field that is told, with its value before and after; None where there was, or is, none.

        Of a field that holds others (`params`, `http`) of a changed object only those that changed, as `params.list_url`.
        """
        before, after = self.before or {}, self.after or {}
        told: list[tuple[str, Any, Any]] = []
        for name in dict.fromkeys([*before, *after]):
            old, new = before.get(name), after.get(name)
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                inner = dict.fromkeys([*old, *new])
                parts = [(f"{name}.{one}", old.get(one), new.get(one)) for one in inner]
                told += [part for part in parts if part[1] != part[2]] or [(name, old, new)]
            else:
                told.append((name, old, new))
        return told


@dataclass(frozen=True)
class AuditFilter:
    """Which changes are asked for.

    Attributes:
        by: who did it.
        kind: of the object (`target`, `user`, ...).
        name: of the object.
        action: what was done to it.
        since: not before.
        until: before this time.
        act: the number of an entry: only what the same act did.
    """

    by: str | None = None
    kind: str | None = None
    name: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    act: int | None = None


@dataclass(frozen=True)
class AuditAct:
    """What one act did to one object or to many.

    Attributes:
        entry: the last of its entries; when it is the only one, it tells everything.
        kinds: how many objects of each kind it changed.
        first: some of its entries, in the order in which they were written; none of an act with a single one.
    """

    entry: AuditRow
    kinds: Mapping[str, int]
    first: tuple[AuditRow, ...] = ()

    @property
    def count(self) -> int:
        """How many objects it changed."""
        return sum(self.kinds.values())


def list_acts(
    session: Session,
    filters: AuditFilter | None = None,
    *,
    cursor: str | None = None,
    limit: int = 50,
    shown: int = 10,
) -> Page[AuditAct]:
    """Changes, newest first; what one act did to many objects is one of them. Of each act only what matches is counted.

    Args:
        shown: how many entries of an act of many are given with it.

    Raises:
        InvalidInputError: `cursor` or `limit`.
    """
    filters = filters or AuditFilter()
    statement = _filtered(session, filters).where(~_others(filters, lambda other: other.id > AuditEntry.id))
    rows, older, newer = _newest_first(session, statement, cursor=cursor, limit=limit)
    many = _of_many(session, rows, filters)
    acts = [
        _act(session, row, filters, shown)
        if row.id in many
        else AuditAct(audit_row(row), {row.object_kind: 1})
        for row in rows
    ]
    return Page(tuple(acts), older, newer)


def list_audit(
    session: Session, filters: AuditFilter | None = None, *, cursor: str | None = None, limit: int = 50
) -> Page[AuditRow]:
    """Changes, newest first, each by itself.

    Raises:
        InvalidInputError: `cursor` or `limit`.
    """
    statement = _filtered(session, filters or AuditFilter())
    rows, older, newer = _newest_first(session, statement, cursor=cursor, limit=limit)
    return Page(tuple(audit_row(row) for row in rows), older, newer)


def _filtered(session: Session, filters: AuditFilter) -> Select[AuditEntry]:
    statement = select(AuditEntry).where(*_on_object(AuditEntry, filters))
    if filters.by is not None:
        statement = statement.where(AuditEntry.by == filters.by)
    if filters.action is not None:
        statement = statement.where(AuditEntry.action == filters.action)
    if filters.since is not None:
        statement = statement.where(AuditEntry.at >= filters.since)
    if filters.until is not None:
        statement = statement.where(AuditEntry.at < filters.until)
    if filters.act is not None:
        entry = session.get(AuditEntry, filters.act) if is_number(filters.act) else None
        statement = statement.where(*(entry.of_same_act() if entry is not None else (false(),)))
    return statement


def _on_object(entry: type[AuditEntry], filters: AuditFilter) -> Iterator[ColumnElement[bool]]:
    """The part of a filter that entries of one act may differ in."""
    if filters.kind is not None:
        yield entry.object_kind == filters.kind
    elif filters.name is not None:
        yield entry.object_kind.in_(KINDS)  # the index begins with it
    if filters.name is not None:
        yield entry.object_name == filters.name


def _newest_first(
    session: Session, statement: Select[AuditEntry], *, cursor: str | None, limit: int
) -> tuple[list[AuditEntry], str | None, str | None]:
    """One page by time, newest first; the cursors of the older and of the newer page.

    All entries of an act have one time, so that they stand together, also where others wrote between them.
    """
    limit, newer = checked_limit(limit), bool(cursor and cursor.startswith("+"))
    place = tuple_(AuditEntry.at, AuditEntry.id)
    if cursor:
        edge = _place_of(session, cursor_number(cursor.removeprefix("+")))
        if edge is None:  # before everything
            return [], None, None
        statement = statement.where(place > edge if newer else place < edge)
    order = (
        (AuditEntry.at.asc(), AuditEntry.id.asc()) if newer else (AuditEntry.at.desc(), AuditEntry.id.desc())
    )
    found = list(session.scalars(statement.order_by(*order).limit(limit + 1)))
    more, rows = len(found) > limit, found[:limit]
    if newer:
        rows.reverse()
    if not rows:
        return [], None, None
    return (
        rows,
        str(rows[-1].id) if newer or more else None,
        f"+{rows[0].id}" if (more if newer else bool(cursor)) else None,
    )


def _place_of(session: Session, number: int) -> Any:
    """Where an entry stands in the list: its time and number."""
    at_or_before = select(AuditEntry.at, AuditEntry.id).where(AuditEntry.id <= number)
    found = session.execute(at_or_before.order_by(AuditEntry.id.desc()).limit(1)).one_or_none()
    if found is None:
        return None
    at, entry = found
    return tuple_(literal(at, AuditEntry.at.type), literal(entry))


def _others(filters: AuditFilter, than_this: Callable[[type[AuditEntry]], ColumnElement[bool]]) -> Exists:
    """Whether the act of an entry has others that match; found by the index of their common time."""
    other = aliased(AuditEntry)
    of_act = (other.at == AuditEntry.at, other.by == AuditEntry.by, other.action == AuditEntry.action)
    return select(1).where(*of_act, than_this(other), *_on_object(other, filters)).exists()


def _of_many(session: Session, rows: Sequence[AuditEntry], filters: AuditFilter) -> set[int]:
    """Which of the last entries of acts are not the only ones."""
    last = select(AuditEntry.id).where(AuditEntry.id.in_([row.id for row in rows]))
    return set(session.scalars(last.where(_others(filters, lambda other: other.id < AuditEntry.id))))


def _act(session: Session, row: AuditEntry, filters: AuditFilter, shown: int) -> AuditAct:
    of_act = (*row.of_same_act(), *_on_object(AuditEntry, filters))
    counted = select(AuditEntry.object_kind, func.count()).where(*of_act).group_by(AuditEntry.object_kind)
    first = session.scalars(select(AuditEntry).where(*of_act).order_by(AuditEntry.id).limit(shown))
    kinds = dict(session.execute(counted.order_by(AuditEntry.object_kind)).all())
    return AuditAct(audit_row(row), kinds, tuple(audit_row(one) for one in first))


def get_audit(session: Session, entry_id: int) -> AuditRow:
    """One change. Raises NotFoundError."""
    entry = session.get(AuditEntry, entry_id)
    if entry is None:
        raise NotFoundError("change", str(entry_id))
    return audit_row(entry)


def audit_row(entry: AuditEntry) -> AuditRow:
    """A change as pages show it."""
    return AuditRow(
        entry.id,
        entry.at,
        entry.by,
        entry.action,
        entry.object_kind,
        entry.object_name,
        entry.before,
        entry.after,
    )
