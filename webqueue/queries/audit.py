"""The audit log: who changed what, from what, into what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.errors import NotFoundError
from webqueue.models import AuditEntry
from webqueue.queries.paging import Page, newest_first


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


def list_audit(
    session: Session,
    *,
    kind: str | None = None,
    name: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[AuditRow]:
    """Changes, newest first.

    Args:
        kind: only of objects of this kind (`target`, `user`, ...).
        name: only of the object of this name; needs `kind`, by whose index it is found.

    Raises:
        InvalidInputError: `cursor` or `limit`.
    """
    statement = select(AuditEntry)
    if kind is not None:
        statement = statement.where(AuditEntry.object_kind == kind)
        if name is not None:
            statement = statement.where(AuditEntry.object_name == name)
    rows, older, newer = newest_first(session, statement, AuditEntry.id, cursor=cursor, limit=limit)
    return Page(tuple(audit_row(row) for row in rows), older, newer)


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
