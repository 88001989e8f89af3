"""Exports and messages that are still to be delivered."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.database import JSONData, Text
from webqueue.leases import ModelWithQueue
from webqueue.models.base import Base


class DeliveryStatus(StrEnum):
    QUEUED = "queued"
    DELIVERED = "delivered"


class Delivery(ModelWithQueue, Base):
    """One thing to deliver: queued → delivered; a failure stays queued with a later `retry_at`."""

    __tablename__ = "deliveries"
    __table_args__ = (Index("ix_deliveries_due", "retry_at"),)

    StatusChoices = DeliveryStatus
    INITIAL_STATE = DeliveryStatus.QUEUED
    ACTIVE_STATE = DeliveryStatus.QUEUED
    FINAL_STATES = (DeliveryStatus.DELIVERED,)
    warn_on_save_outside_runner = False

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(15), default=DeliveryStatus.QUEUED)
    retry_at: Mapped[datetime | None] = mapped_column()
    kind: Mapped[str] = mapped_column(String(32))
    # The same thing is never queued twice.
    dedupe_key: Mapped[str] = mapped_column(String(128), unique=True)
    payload: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    attempts: Mapped[int] = mapped_column(default=0)
    last_error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    delivered_at: Mapped[datetime | None]
