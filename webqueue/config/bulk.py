"""One change of many targets, as a whole or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from webqueue.config.editing import pause_target, resume_target
from webqueue.config.importing import TURN
from webqueue.config.many import Becoming, CheckedTarget, StoredTargets, check_targets, write_targets
from webqueue.config.report import What
from webqueue.config.store import Store
from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError, WebqueueError

BulkChange = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedChange:
    """A change of many targets, checked before the transaction that writes it."""

    change: BulkChange
    checked: Mapping[str, CheckedTarget]

    def becoming(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """All fields of a target that is changed."""
        return {**data, **self.change(data)}


@dataclass(frozen=True)
class Changed:
    """What came of a change of many targets.

    Attributes:
        changed: how many are not as before.
        gone: those that were deleted meanwhile.
    """

    changed: int
    gone: tuple[str, ...]


def prepare_change(session: Session, codes: Collection[str], change: BulkChange) -> PreparedChange:
    """Check a change of many targets, for `change_targets`.

    Args:
        session: reads only.
        codes: of the targets; one that is gone is left out.
        change: gets the fields of a target as the file has them, and gives those that change.

    Raises:
        InvalidInputError: a target cannot be so; the problem names those that cannot, where others can.
    """
    stored = StoredTargets.of(session, codes)
    prepared = PreparedChange(change, {})
    wanted: dict[str, Becoming] = dict.fromkeys(stored.rows, prepared.becoming)
    return PreparedChange(change, check_targets(stored, wanted))


def change_targets(session: Session, prepared: PreparedChange, *, by: str, now: datetime) -> Changed:
    """Change many targets, all or none.

    Args:
        session: a writing transaction.

    Raises:
        InvalidInputError: what has changed since it was prepared cannot be so; the problem names it.
    """
    take_turn(session, TURN)  # what is read now stays so
    stored = StoredTargets.of(session, prepared.checked.keys(), locked=True)
    wanted: dict[str, Becoming] = dict.fromkeys(stored.rows, prepared.becoming)
    store = Store(session, by=by, now=now)
    written = write_targets(store, stored, wanted, prepared.checked)
    return Changed(
        sum(change.what is not What.UNCHANGED for change in written),
        tuple(sorted(set(prepared.checked) - set(stored.rows))),
    )


def pause_targets(
    session: Session, codes: Collection[str], *, by: str, now: datetime
) -> dict[str, WebqueueError]:
    """Let some schedules rest, as `pause_target` does; of the other targets why not."""
    return _each(session, codes, functools.partial(pause_target, session, by=by, now=now))


def resume_targets(
    session: Session, codes: Collection[str], *, by: str, now: datetime
) -> dict[str, WebqueueError]:
    """Let some schedules go on, as `resume_target` does; of the other targets why not."""
    return _each(session, codes, functools.partial(resume_target, session, by=by, now=now))


def _each(session: Session, codes: Collection[str], act: Callable[[str], None]) -> dict[str, WebqueueError]:
    take_turn(session, TURN)  # several rows are locked: not crosswise with somebody who changes some
    refused: dict[str, WebqueueError] = {}
    for code in sorted(codes):
        try:
            act(code)
        except (InvalidInputError, NotFoundError) as error:
            refused[code] = error
    return refused


def with_tags(*tags: str) -> BulkChange:
    """The change that adds tags."""
    return lambda data: {"tags": [*data["tags"], *(tag for tag in tags if tag not in data["tags"])]}


def without_tags(*tags: str) -> BulkChange:
    """The change that removes tags."""
    return lambda data: {"tags": [one for one in data["tags"] if one not in tags]}
