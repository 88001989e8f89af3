"""Taking back what was changed or deleted, from what the audit log kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.editing import pause_target, put_site_in, put_target
from webqueue.config.importing import TURN
from webqueue.config.masks import masked
from webqueue.config.problems import one_of_many
from webqueue.config.report import What
from webqueue.config.rows import same, site_data, target_data
from webqueue.config.store import Store
from webqueue.database import take_turn
from webqueue.errors import ConflictError, NotFoundError
from webqueue.models import AuditEntry, Site, Target
from webqueue.sentences import say

CHANGED: Final = str(What.CHANGED)
DELETED: Final = "deleted"
# Sites first: a target that is brought back needs its site.
_KINDS: Final = ("site", "target")
# A transaction stays short: each object is checked and written as an edit is, in some three milliseconds.
MAX_UNDONE: Final = 1_000
# Entries of one transaction stand close together; so far around one of them the others are looked for.
_NEAR: Final = 20_000


@dataclass(frozen=True)
class Undoing:
    """What taking a change back does to the objects that it changed.

    Attributes:
        entries: of the objects that get back what they had.
        overtaken: the names of those that are left alone, because somebody has changed the same fields since, or because
            there is none of that name (changed ones), or one again (deleted ones).
    """

    entries: tuple[AuditEntry, ...]
    overtaken: tuple[str, ...]


def can_undo(action: str, kind: str) -> bool:
    """Whether a change of this sort can be taken back from the audit log."""
    return kind in _KINDS and action in {CHANGED, DELETED}


def prepare_undo(session: Session, entry_id: int) -> Undoing:
    """What `undo` would do. One act, as the form or the import that changed three hundred targets, is taken back as a whole.

    Args:
        session: reads only.
        entry_id: of any entry of the act in the audit log.

    Raises:
        NotFoundError: there is no such entry.
        ConflictError: what it tells cannot be taken back, or is more than `MAX_UNDONE` objects.
    """
    entry = session.get(AuditEntry, entry_id)
    if entry is None:
        raise NotFoundError("change", str(entry_id))
    if not can_undo(entry.action, entry.object_kind):
        raise ConflictError(say("Only changes and deletions of sites and targets can be taken back here."))
    act = _act(session, entry)
    if len(act) > MAX_UNDONE:
        raise ConflictError(
            say(
                "It changed %(count)s objects; at most %(most)s are taken back at once. Import the former file instead.",
                count=len(act),
                most=MAX_UNDONE,
            )
        )
    present = _Present.of(session, act)
    possible, overtaken = [], []
    for one in act:
        if present.is_as_left_by(one):
            possible.append(one)
        else:
            overtaken.append(one.object_name)
    return Undoing(tuple(possible), tuple(overtaken))


def undo(session: Session, entry_id: int, *, by: str, now: datetime) -> Undoing:
    """Give every object of a change back what it had before; the whole or nothing.

    The audit log keeps no secret, so a secret that was changed stays as it is now.

    Args:
        session: a writing transaction.
        entry_id: of any entry of the act in the audit log.
        by: who takes it back; it is a change like any other, and can itself be taken back.

    Raises:
        NotFoundError, ConflictError: as `prepare_undo`; also when nothing is left to be taken back.
        InvalidInputError: an object cannot be as it was; the problem names it.
    """
    take_turn(session, TURN)
    undoing = prepare_undo(session, entry_id)
    if not undoing.entries:
        raise ConflictError(say("Nothing is left to be taken back: it was changed again since."))
    present = _Present.of(session, undoing.entries)
    store = Store(session, by=by, now=now)
    for entry in _of_kind("site", undoing.entries):
        with one_of_many(entry.object_name):
            put_site_in(store, session, entry.object_name, present.before(entry))
    store.settle_sites()
    for entry in _of_kind("target", undoing.entries):
        with one_of_many(entry.object_name):
            put_target(session, entry.object_name, present.before(entry), by=by, now=now)
        if entry.action == DELETED and _was_paused(session, entry):
            pause_target(session, entry.object_name, by=by, now=now)
    return undoing


def _of_kind(kind: str, entries: Sequence[AuditEntry]) -> list[AuditEntry]:
    return [entry for entry in entries if entry.object_kind == kind]


def _was_paused(session: Session, deletion: AuditEntry) -> bool:
    """Whether the schedule of a target rested when it was deleted; what it had does not tell, as no file does."""
    last = select(AuditEntry.action).where(
        AuditEntry.object_kind == "target",
        AuditEntry.object_name == deletion.object_name,
        AuditEntry.id < deletion.id,
        AuditEntry.action.in_(("paused", "resumed", DELETED)),
    )
    return session.scalar(last.order_by(AuditEntry.id.desc()).limit(1)) == "paused"


def _act(session: Session, entry: AuditEntry) -> Sequence[AuditEntry]:
    """All that the same person changed in the same transaction, as its time tells, in the order in which to undo it."""
    found = session.scalars(
        select(AuditEntry).where(
            AuditEntry.id.between(entry.id - _NEAR, entry.id + _NEAR),
            AuditEntry.at == entry.at,
            AuditEntry.by == entry.by,
            AuditEntry.action == entry.action,
            AuditEntry.object_kind.in_(_KINDS),
        )
    ).all()
    return sorted(found, key=lambda one: (_KINDS.index(one.object_kind), one.object_name))


@dataclass(frozen=True)
class _Present:
    """The objects of an act as they are now, read in two statements."""

    sites: Mapping[str, Site]
    targets: Mapping[str, Target]

    @classmethod
    def of(cls, session: Session, act: Sequence[AuditEntry]) -> _Present:
        names = {kind: [one.object_name for one in _of_kind(kind, act)] for kind in _KINDS}
        sites = session.scalars(select(Site).where(Site.code.in_(names["site"])))
        targets = session.scalars(select(Target).where(Target.code.in_(names["target"])))
        return cls({row.code: row for row in sites}, {row.code: row for row in targets})

    def data_of(self, entry: AuditEntry) -> dict[str, Any]:
        """The object's fields; empty when there is none."""
        if entry.object_kind == "site":
            site = self.sites.get(entry.object_name)
            return {} if site is None else site_data(site)
        target = self.targets.get(entry.object_name)
        return {} if target is None else target_data(target)

    def before(self, entry: AuditEntry) -> dict[str, Any]:
        """The object's fields, with those that the entry tells as they were before it."""
        return {**self.data_of(entry), **(entry.before or {})}

    def is_as_left_by(self, entry: AuditEntry) -> bool:
        """Whether nobody has changed it since."""
        data = self.data_of(entry)
        if entry.action == DELETED:
            return not data
        shown = masked(data)
        return bool(data) and all(same(shown.get(name), value) for name, value in (entry.after or {}).items())
