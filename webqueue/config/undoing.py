"""Taking back what was changed or deleted, from what the audit log kept of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.editing import pause_target, put_site_in
from webqueue.config.importing import TURN
from webqueue.config.many import Becoming, CheckedTarget, StoredTargets, check_targets, write_targets
from webqueue.config.masks import masked
from webqueue.config.problems import one_of_many
from webqueue.config.report import What
from webqueue.config.rows import same, site_data
from webqueue.config.store import Store
from webqueue.database import take_turn
from webqueue.errors import ConflictError, NotFoundError
from webqueue.models import AuditEntry, Site
from webqueue.sentences import say

CHANGED: Final = str(What.CHANGED)
DELETED: Final = "deleted"
# Sites first: a target that is brought back needs its site.
_KINDS: Final = ("site", "target")
# Of one transaction, which stays short: it compares and writes what was checked before.
MAX_UNDONE: Final = 2_500


@dataclass(frozen=True)
class Undoing:
    """What taking a change back does to the objects that it changed.

    Attributes:
        entries: of the objects that get back what they had.
        overtaken: the names of those that are left alone, because somebody has changed the same fields since, or because
            there is none of that name (changed ones), or one again (deleted ones).
        together: how many objects the same act changed; more than are meant here, where one of many is taken back alone.
        checked: of those targets, what they get back.
    """

    entries: tuple[AuditEntry, ...]
    overtaken: tuple[str, ...]
    together: int
    checked: Mapping[str, CheckedTarget]


def can_undo(action: str, kind: str) -> bool:
    """Whether a change of this sort can be taken back from the audit log."""
    return kind in _KINDS and action in {CHANGED, DELETED}


def prepare_undo(session: Session, entry_id: int, *, alone: bool = False) -> Undoing:
    """What `undo` would do. One act, as the form or the import that changed three hundred targets, is taken back as a whole.

    Args:
        session: reads only.
        entry_id: of any entry of the act in the audit log.
        alone: only what this entry tells of.

    Raises:
        NotFoundError: there is no such entry.
        ConflictError: what it tells cannot be taken back, or is more than `MAX_UNDONE` objects.
        InvalidInputError: a target cannot be as it was; the problem names it.
    """
    entry = session.get(AuditEntry, entry_id)
    if entry is None:
        raise NotFoundError("change", str(entry_id))
    if not can_undo(entry.action, entry.object_kind):
        raise ConflictError(say("Only changes and deletions of sites and targets can be taken back here."))
    act = _act(session, entry)
    if len(act) > MAX_UNDONE and not alone:
        raise ConflictError(
            say(
                "It changed %(count)s objects; at most %(most)s are taken back at once. Import the former file instead.",
                count=len(act),
                most=MAX_UNDONE,
            )
        )
    meant = [entry] if alone else act
    present = _Present.of(session, meant)
    possible, overtaken = _parted(meant, present.is_as_left_by)
    sites = {one.object_name: present.before(one) for one in _of_kind("site", possible)}
    checked = check_targets(present.targets, _becoming(possible), sites)
    return Undoing(possible, overtaken, len(act), checked)


def undo(session: Session, prepared: Undoing, *, by: str, now: datetime) -> Undoing:
    """Give every object of a change back what it had before; the whole or nothing.

    The audit log keeps no secret, so a secret that was changed stays as it is now.

    Args:
        session: a writing transaction, which only compares and writes: what was changed since it was prepared is looked
            at anew.
        by: who takes it back; it is a change like any other, and can itself be taken back.

    Raises:
        ConflictError: nothing is left to be taken back.
        InvalidInputError: an object cannot be as it was; the problem names it.
    """
    take_turn(session, TURN)
    # Keys are locked before targets: those of sites that come back are not known yet.
    several = any(one.object_kind == "site" for one in prepared.entries)
    present = _Present.of(session, prepared.entries, locked=not several)
    entries, overtaken = _parted(prepared.entries, lambda one: _is_as_prepared(one, prepared, present))
    if not entries:
        raise ConflictError(say("Nothing is left to be taken back: it was changed again since."))
    store = Store(session, by=by, now=now)
    for entry in _of_kind("site", entries):
        with one_of_many(entry.object_name):
            put_site_in(store, session, entry.object_name, present.before(entry))
    store.settle_sites()
    wanted = _becoming(entries)
    targets = StoredTargets.of(session, wanted, locked=True) if several else present.targets
    write_targets(store, targets, wanted, prepared.checked)
    for entry in _of_kind("target", entries):
        if entry.action == DELETED and _was_paused(session, entry):
            session.flush()
            pause_target(session, entry.object_name, by=by, now=now)
    return Undoing(entries, (*prepared.overtaken, *overtaken), prepared.together, prepared.checked)


def _parted(
    entries: Sequence[AuditEntry], possible: Callable[[AuditEntry], bool]
) -> tuple[tuple[AuditEntry, ...], tuple[str, ...]]:
    """Those that can be taken back, and the names of the others."""
    can = {one.id: possible(one) for one in entries}
    return tuple(one for one in entries if can[one.id]), tuple(
        one.object_name for one in entries if not can[one.id]
    )


def _is_as_prepared(entry: AuditEntry, prepared: Undoing, present: _Present) -> bool:
    """Whether it is still as the change left it; seen at once where it is as it was when that was asked."""
    checked = prepared.checked.get(entry.object_name) if entry.object_kind == "target" else None
    if checked is not None and same(checked.stored, present.data_of(entry)):
        return True
    return present.is_as_left_by(entry)


def _becoming(entries: Sequence[AuditEntry]) -> dict[str, Becoming]:
    """What becomes of the targets: what they have, with those fields that the entry tells as they were before it."""
    return {
        entry.object_name: functools.partial(_with, entry.before or {})
        for entry in _of_kind("target", entries)
    }


def _with(before: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**data, **before}


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
    """All that the same person changed by the same act, as its time tells, in the order in which to undo it."""
    found = session.scalars(
        select(AuditEntry).where(*entry.of_same_act(), AuditEntry.object_kind.in_(_KINDS))
    ).all()
    return sorted(found, key=lambda one: (_KINDS.index(one.object_kind), one.object_name))


@dataclass(frozen=True)
class _Present:
    """The objects of an act as they are now, read in a few statements."""

    sites: Mapping[str, Site]
    targets: StoredTargets

    @classmethod
    def of(cls, session: Session, act: Sequence[AuditEntry], *, locked: bool = False) -> _Present:
        sites = session.scalars(
            select(Site).where(Site.code.in_([one.object_name for one in _of_kind("site", act)]))
        )
        targets = StoredTargets.of(
            session, [one.object_name for one in _of_kind("target", act)], locked=locked
        )
        return cls({row.code: row for row in sites}, targets)

    def data_of(self, entry: AuditEntry) -> dict[str, Any]:
        """The object's fields; empty when there is none."""
        if entry.object_kind == "site":
            site = self.sites.get(entry.object_name)
            return {} if site is None else site_data(site)
        return self.targets.data(entry.object_name)

    def before(self, entry: AuditEntry) -> dict[str, Any]:
        """The object's fields, with those that the entry tells as they were before it."""
        return {**self.data_of(entry), **(entry.before or {})}

    def is_as_left_by(self, entry: AuditEntry) -> bool:
        """Whether nobody has changed it since."""
        data = self.data_of(entry)
        if entry.action == DELETED:
            return not data
        after = entry.after or {}
        shown = masked({name: data.get(name) for name in after})
        return bool(data) and all(same(shown[name], value) for name, value in after.items())
