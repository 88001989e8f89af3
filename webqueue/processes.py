"""The processes that work on this database, as their heartbeats tell (for the overview and for `/readyz`)."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import Process, StoredSetting

# The name of a stored setting: of each worker that takes nothing because a disk is low, and how the disk stands.
LOW_DISK: Final = "disk_low:"
# A process that was silent for so long is shown no more. Its leases are another matter (DESIGN P5).
FORGET_AFTER: Final = timedelta(hours=1)


def beat(session: Session, process_id: str, *, role: str, threads: int = 0) -> None:
    """Note that this process lives; the first beat enters it.

    Args:
        process_id: random per start.
        role: `worker` or `scheduler`.
        threads: the worker threads it has.
    """
    now = clock.now(session)
    row = session.get(Process, process_id)
    if row is None:
        row = Process(
            id=process_id, role=role, hostname=socket.gethostname(), pid=os.getpid(), started_at=now
        )
        session.add(row)
    row.threads = threads
    row.heartbeat_at = now


def note_low_disk(session: Session, process_id: str, words: str | None) -> None:
    """Note that a worker takes nothing because a disk of its machine is low; None: it has room again."""
    name = LOW_DISK + process_id
    row = session.get(StoredSetting, name)
    if row is None and words is not None:
        session.add(StoredSetting(name=name, value=words, changed_at=clock.now(session)))
    elif row is not None and row.value != words:
        row.value, row.changed_at = words, clock.now(session)


def leave(session: Session, process_id: str) -> None:
    """Note that this process ended in order."""
    session.execute(delete(StoredSetting).where(StoredSetting.name == LOW_DISK + process_id))
    session.execute(delete(Process).where(Process.id == process_id))


def forget_silent(session: Session) -> None:
    """Drop the rows of processes that have been silent for an hour, and what they noted of their disks."""
    silent = session.scalars(
        delete(Process).where(Process.heartbeat_at < clock.now(session) - FORGET_AFTER).returning(Process.id)
    ).all()
    if silent:
        names = [LOW_DISK + process_id for process_id in silent]
        session.execute(delete(StoredSetting).where(StoredSetting.name.in_(names)))
