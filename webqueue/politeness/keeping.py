"""Looking after the evidence of a machine: a summary row a key and day, compression, and deletion in the end."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from webqueue.models import RequestDay
from webqueue.models.visits import MACHINE_LENGTH
from webqueue.politeness.evidence import EvidenceLog
from webqueue.politeness.evidence_files import FOLDER, days_to_pack, first_kept, forget_before, pack
from webqueue.politeness.figures import KeyFigures, by_key

# A request that began before midnight may end, and be written down, after it.
_LATE: Final = timedelta(hours=1)
_LOCK: Final = ".keeping.lock"


def machine_of(instance: Path) -> str:
    """The name under which an instance's evidence is summarised: host name and folder."""
    return f"{socket.gethostname()}:{instance}"[-MACHINE_LENGTH:]


@contextmanager
def days_to_summarise(instance: Path, now: datetime) -> Iterator[list[date]]:
    """The days that are over and not compressed yet, for the one process of an instance that looks after them.

    The others get none, while its block runs. After the block, what is older than 13 months is deleted.

    Args:
        now: this machine's time; days are those of UTC.
    """
    folder = instance / FOLDER
    if not folder.is_dir():
        yield []
        return
    with _alone(folder) as alone:
        yield days_to_pack(folder, (now - _LATE).date()) if alone else []
        if alone:
            forget_before(folder, first_kept(now.date()))


def compress_day(instance: Path, day: date) -> None:
    """Compress the file of a day whose summary is stored."""
    pack(instance / FOLDER, day)


def figures_of(instance: Path, day: date) -> dict[str, KeyFigures]:
    """The figures of each key on a day, from this machine's file."""
    log = EvidenceLog(instance)
    figures = {}
    for key, lines in by_key(log.read(day)).items():
        figures[key] = KeyFigures()
        figures[key].add(lines)
    return figures


def store_day(session: Session, instance: Path, day: date, figures: dict[str, KeyFigures]) -> None:
    """Write the summary rows of a day anew."""
    machine = machine_of(instance)
    session.execute(delete(RequestDay).where(RequestDay.day == day, RequestDay.machine == machine))
    for key, one in figures.items():
        assert one.first_at is not None, "a key without a request has no figures"
        assert one.last_at is not None
        session.add(
            RequestDay(
                rate_key=key,
                day=day,
                machine=machine,
                requests=one.requests,
                bytes=one.bytes,
                jobs=len(one.jobs),
                statuses=dict(one.statuses),
                smallest_gap_sec=one.smallest_gap_sec,
                most_parallel=one.most_parallel,
                first_at=one.first_at,
                last_at=one.last_at,
            )
        )


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether no other process looks after the folder now."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
