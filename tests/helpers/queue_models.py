"""Models for the tests of the queue protocol: the pair of the default states, two states, and an idle key."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from enum import StrEnum
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ForeignKey, String, inspect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from webqueue import clock
from webqueue.database import Database
from webqueue.leases import DefaultStatusChoices, Lease, ModelWithQueue, StatusEnum, run_due

M = TypeVar("M", bound="QueueBase")


class QueueBase(DeclarativeBase):
    """Tables beside webqueue's own."""


class Crawl(ModelWithQueue, QueueBase):
    """The default states and columns; the parent of snapshots."""

    __tablename__ = "test_crawls"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(100), default="")
    note: Mapped[str | None] = mapped_column(String(100), default=None)
    snapshots: Mapped[list[Snapshot]] = relationship(back_populates="crawl")


class Snapshot(ModelWithQueue, QueueBase):
    """The default states with groups of its own: a snapshot that has started is not run again."""

    __tablename__ = "test_snapshots"

    RUNNABLE_STATES = (DefaultStatusChoices.QUEUED, DefaultStatusChoices.STARTED)
    OPEN_STATES = (DefaultStatusChoices.QUEUED, DefaultStatusChoices.STARTED)

    id: Mapped[int] = mapped_column(primary_key=True)
    crawl_id: Mapped[int] = mapped_column(ForeignKey("test_crawls.id"))
    crawl: Mapped[Crawl] = relationship(back_populates="snapshots")
    status: Mapped[str] = ModelWithQueue.StatusField(choices=DefaultStatusChoices)
    retry_at: Mapped[datetime | None] = ModelWithQueue.RetryAtField()


class Binary(ModelWithQueue, QueueBase):
    """Two states: queued until it is installed."""

    __tablename__ = "test_binaries"

    class StatusChoices(StatusEnum):
        QUEUED = "queued"
        INSTALLED = "installed"

    INITIAL_STATE = StatusChoices.QUEUED
    ACTIVE_STATE = StatusChoices.QUEUED
    FINAL_STATES = (StatusChoices.INSTALLED,)
    warn_on_save_outside_runner = False

    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str] = ModelWithQueue.StatusField(choices=StatusChoices.choices, max_length=16)


class KeyStatus(StrEnum):
    IDLE = "idle"
    LEASED = "leased"


class Key(ModelWithQueue, QueueBase):
    """No paused state, none that is final, and idle without a due time, as a rate key is."""

    __tablename__ = "test_keys"

    StatusChoices = KeyStatus
    INITIAL_STATE = KeyStatus.IDLE
    ACTIVE_STATE = KeyStatus.LEASED
    FINAL_STATES = ()
    OUT_OF_QUEUE_STATES = (KeyStatus.IDLE,)

    key: Mapped[str] = mapped_column(String(50), primary_key=True)
    retry_at: Mapped[datetime | None] = ModelWithQueue.RetryAtField(default=None, index=False)


class Errand(ModelWithQueue, QueueBase):
    """Refuses to be claimed row by row, as a job does."""

    __tablename__ = "test_errands"

    id: Mapped[int] = mapped_column(primary_key=True)

    @classmethod
    def claim_refusal(cls) -> str | None:
        return "An errand is claimed through its key."


def create_tables(database: Database) -> Database:
    """Add the tables of these models to a test's database."""
    QueueBase.metadata.create_all(database.engine)
    return database


def now_of(database: Database) -> datetime:
    """The database's time."""
    with database.reading() as session:
        return clock.now(session)


def ago(database: Database, seconds: float) -> datetime:
    """A time before the database's, or after it if `seconds` is negative."""
    return now_of(database) - timedelta(seconds=seconds)


def insert(database: Database, row: M) -> M:
    """Store a row; what is returned is detached, with everything loaded."""
    with database.transaction() as session:
        session.add(row)
        session.flush()
        session.refresh(row)
    return row


def load(database: Database, row: M) -> M:
    """A second copy of a stored row, as another worker would have it; `row` may be new, with only its key."""
    identity = inspect(row).identity or row.__mapper__.primary_key_from_instance(row)
    with database.reading() as session:
        return session.get_one(type(row), identity)


def change(database: Database, row: ModelWithQueue, **fields: Any) -> None:
    """Write fields of a row behind everybody's back."""
    assert isinstance(row, QueueBase)
    other = load(database, row)
    with database.transaction() as session:
        session.add(other)
        assert other.safe_update(fields)


def claim_in_process(
    url: str, instance_path: Path, crawl_id: int, barrier: Barrier, answers: SimpleQueue[bool]
) -> None:
    """What a worker process does: load the row, wait until all have it, claim it, tell."""
    database = Database(url, instance_path=instance_path)
    try:
        with database.reading() as session:
            crawl = session.get_one(Crawl, crawl_id)
        barrier.wait(timeout=60)
        with database.transaction() as session:
            session.add(crawl)
            claimed = crawl.claim_processing_lock()
        answers.put(claimed)
    finally:
        database.close()


def run_for_ever(url: str, instance_path: Path, lock_seconds: float, started: Event) -> None:
    """A runner whose handler does not end by itself: it tells that it started, and waits to be killed."""
    database = Database(url, instance_path=instance_path)

    def handle(_crawl: Crawl, _lease: Lease) -> None:
        started.set()
        threading.Event().wait()

    run_due(Crawl, handle, database=database, lock_seconds=lock_seconds)
