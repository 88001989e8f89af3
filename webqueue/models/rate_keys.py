"""The unit of politeness: a row of its own, leased by the worker that runs its job."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.database import JSONData, Text
from webqueue.leases import ModelWithQueue
from webqueue.models.base import KEY_LENGTH, Base


class RateKeyStatus(StrEnum):
    IDLE = "idle"
    LEASED = "leased"


class RateKey(ModelWithQueue, Base):
    """At most one job runs in a rate key (DESIGN P1, section 5).

    `retry_at` is NULL (nothing to do), when the key may be claimed, or until when it is leased; only
    `webqueue.jobs.settle` and the verbs around it write it. It has no paused status: a pause is `paused_at`.
    """

    __tablename__ = "rate_keys"
    __table_args__ = (
        Index("ix_rate_keys_due", "retry_at", postgresql_where=text("retry_at IS NOT NULL")),
        Index("ix_rate_keys_leased_by", "leased_by"),
    )

    StatusChoices = RateKeyStatus
    INITIAL_STATE = RateKeyStatus.IDLE
    ACTIVE_STATE = RateKeyStatus.LEASED
    FINAL_STATES = ()
    OUT_OF_QUEUE_STATES = (RateKeyStatus.IDLE,)
    warn_on_save_outside_runner = False

    key: Mapped[str] = mapped_column(String(KEY_LENGTH), primary_key=True)
    status: Mapped[str] = mapped_column(String(15), default=RateKeyStatus.IDLE)
    retry_at: Mapped[datetime | None] = mapped_column(default=None)
    lease_token: Mapped[int] = mapped_column(BigInteger, default=0)
    leased_by: Mapped[str | None] = mapped_column(String(64))
    extensions: Mapped[int] = mapped_column(default=0)
    paused_at: Mapped[datetime | None]
    paused_by: Mapped[str | None] = mapped_column(String(128))
    paused_note: Mapped[str] = mapped_column(Text, default="")
    cooldown_until: Mapped[datetime | None]
    cooldown_cause: Mapped[str | None] = mapped_column(Text)
    gap_until: Mapped[datetime | None]
    gap_cause: Mapped[str | None] = mapped_column(Text)
    consecutive_blocks: Mapped[int] = mapped_column(default=0)
    # The request interval that was last in force: what an orphan's recovery waits, since nobody can ask its worker.
    interval_sec: Mapped[float] = mapped_column(default=0.0)
    # Why it is that long: `interval`, `learned` or `crawl_delay`.
    interval_cause: Mapped[str | None] = mapped_column(String(32))
    last_request_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class RateKeyNote(Base):
    """What people wrote about a key: apart from its row, which workers write, and also of a key that never ran."""

    __tablename__ = "rate_key_notes"

    key: Mapped[str] = mapped_column(String(KEY_LENGTH), primary_key=True)
    owner: Mapped[str] = mapped_column(Text, default="")
    note: Mapped[str] = mapped_column(Text, default="")


class KeyEvent(Base):
    """What happened to a key: blocks, cooldowns, pauses, lifts, stuck handlers."""

    __tablename__ = "key_events"
    __table_args__ = (Index("ix_key_events_key_id", "rate_key", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    rate_key: Mapped[str] = mapped_column(ForeignKey("rate_keys.key"))
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    by: Mapped[str] = mapped_column(String(128), default="")
    message: Mapped[str] = mapped_column(Text, default="")
    data: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    job_id: Mapped[str | None] = mapped_column(String(12))


class IntervalChange(Base):
    """Every change of a target's learned interval, with its cause."""

    __tablename__ = "interval_changes"
    __table_args__ = (Index("ix_interval_changes_target_id", "target_code", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target_code: Mapped[str] = mapped_column(ForeignKey("targets.code", ondelete="CASCADE"))
    at: Mapped[datetime]
    old_sec: Mapped[float]
    new_sec: Mapped[float]
    cause: Mapped[str] = mapped_column(Text)
    job_id: Mapped[str | None] = mapped_column(String(12))
