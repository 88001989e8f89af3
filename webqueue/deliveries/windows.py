"""Queueing the export for retrieval behind a done job (SEEDS B).

A delivery covers the documents that changed in a window of time; the windows of a target follow each other without a
gap, so that what a failed job stored, or was stored while the export was off, goes out with the next done one. This
module is imported by the verbs, and so imports nothing that takes long.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue.deliveries import switches
from webqueue.deliveries.queue import enqueue
from webqueue.models import Job, StoredSetting

KIND: Final = "rag_export"


def queue_export(session: Session, job: Job, *, now: datetime) -> dict[str, Any] | None:
    """Queue the export that follows a done job, where it is switched on; in the transaction that closes the job.

    Returns:
        What the job's result tells of it; None when there is none.
    """
    if not switches.read(session).is_on(job.target_code):
        return None
    payload = {
        "job": job.id,
        "target": job.target_code,
        "since": _move_window(session, job.target_code, now),
        "until": now.isoformat(),
    }
    enqueue(session, KIND, f"{KIND}:{job.id}", payload, now=now)
    return {"status": "running", "target_code": job.target_code}


def _move_window(session: Session, target_code: str, now: datetime) -> str | None:
    """Let the target's next window begin now; where the present one begins, None for the beginning of time."""
    name = _name(target_code)
    row = session.get(StoredSetting, name, with_for_update=True)
    value = {"target": target_code, "until": now.isoformat()}
    if row is None:
        session.add(StoredSetting(name=name, value=value, changed_at=now))
        return None
    since: str = row.value["until"]
    row.value, row.changed_at = value, now
    return since


def give_back(session: Session, target_code: str, since: str | None) -> None:
    """Let the target's next window begin no later than one that was dropped, so that nothing of it is lost.

    Args:
        since: where the dropped window began; None: at the beginning of time.
    """
    row = session.get(StoredSetting, _name(target_code), with_for_update=True)
    if row is None:
        return
    if since is None:
        session.delete(row)
    elif datetime.fromisoformat(since) < datetime.fromisoformat(row.value["until"]):
        row.value = {**row.value, "until": since}


def _name(target_code: str) -> str:
    # A setting's name is shorter than a target's code may be.
    return f"{KIND}:{hashlib.sha256(target_code.encode()).hexdigest()[:40]}"
