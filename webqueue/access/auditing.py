"""The audit log, for changes that neither `config` nor this package makes."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import AuditEntry


def audit(
    session: Session,
    *,
    by: str,
    action: str,
    kind: str,
    name: str,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write one change down, in the transaction that makes it; the caller has masked the secrets.

    Args:
        by: the user's name, or `token:NAME`.
        action: `paused`, `lifted`, ...
        kind: of the object: `rate_key`, `job`, `setting`, ...
    """
    AuditEntry.record(
        session, at=clock.now(session), by=by, action=action, kind=kind, name=name, before=before, after=after
    )
