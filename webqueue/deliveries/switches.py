"""Whether finished crawls are exported for retrieval: for the installation, and for single targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue.database import take_turn
from webqueue.errors import NotFoundError
from webqueue.models import AuditEntry, StoredSetting, Target

SETTING: Final = "rag_export"
INSTALLATION: Final = "installation"


@dataclass(frozen=True)
class Switches:
    """The switches as they stand.

    Attributes:
        installation: what holds for every target that has no switch of its own.
        targets: the switches of single targets.
    """

    installation: bool = False
    targets: Mapping[str, bool] = field(default_factory=dict)

    def is_on(self, target_code: str) -> bool:
        """Whether a target's documents are exported after its jobs."""
        return self.targets.get(target_code, self.installation)


def read(session: Session) -> Switches:
    """The switches; each job that ends reads them, so that a change holds at once."""
    return _parsed(StoredSetting.read(session, SETTING))


def switch(session: Session, target_code: str | None, on: bool | None, *, by: str, now: datetime) -> Switches:
    """Turn the export on or off, and write down who did.

    Args:
        target_code: of one target; None: of the installation.
        on: None: the target has no switch of its own any more.

    Raises:
        NotFoundError: there is no such target.
    """
    if target_code is not None and session.get(Target, target_code) is None:
        raise NotFoundError("target", target_code)
    take_turn(session, SETTING)
    before = read(session)
    after = _changed(before, target_code, on)
    if after == before:
        return before
    value: dict[str, Any] = {"installation": after.installation, "targets": dict(after.targets)}
    StoredSetting.put(session, SETTING, value, at=now, by=by)
    AuditEntry.record(
        session,
        at=now,
        by=by,
        action="changed",
        kind="rag_export",
        name=target_code or INSTALLATION,
        before={"on": _of(before, target_code)},
        after={"on": _of(after, target_code)},
    )
    return after


def _changed(before: Switches, target_code: str | None, on: bool | None) -> Switches:
    if target_code is None:
        return Switches(bool(on), before.targets)
    others = {code: value for code, value in before.targets.items() if code != target_code}
    return Switches(before.installation, others if on is None else {**others, target_code: on})


def _of(switches: Switches, target_code: str | None) -> bool | None:
    return switches.installation if target_code is None else switches.targets.get(target_code)


def _parsed(value: Any) -> Switches:
    if not isinstance(value, dict):
        return Switches()
    targets = value.get("targets")
    return Switches(bool(value.get("installation")), targets if isinstance(targets, dict) else {})
