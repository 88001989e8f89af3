"""The processes that work on this database, as their heartbeats tell."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.database import Text
from webqueue.models.base import Base


class Process(Base):
    """One running process in one role (`worker` or `scheduler`); its id is random per start."""

    __tablename__ = "processes"
    __table_args__ = (Index("ix_processes_role", "role", "heartbeat_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(String(15))
    hostname: Mapped[str] = mapped_column(Text)
    pid: Mapped[int]
    threads: Mapped[int] = mapped_column(default=0)
    started_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]
