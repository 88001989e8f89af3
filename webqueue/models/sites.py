"""What an operator describes: sites, their targets, and rate groups."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from webqueue.database import JSONData, Text
from webqueue.models.base import CODE_LENGTH, KEY_LENGTH, Base


class RateGroupRow(Base):
    """Hosts behind one firewall share a key: the first matching group of a site's adapter and host wins."""

    __tablename__ = "rate_groups"
    __table_args__ = (UniqueConstraint("adapter", "host_suffix"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(default=0)
    key: Mapped[str] = mapped_column(String(KEY_LENGTH))
    adapter: Mapped[str] = mapped_column(String(32))
    host_suffix: Mapped[str] = mapped_column(String(KEY_LENGTH))
    grow_interval: Mapped[bool] = mapped_column(default=True)
    cooldown_factor: Mapped[float] = mapped_column(default=2.0)


class Site(Base):
    """A web site: base URL, adapter, timezone, HTTP settings, politeness."""

    __tablename__ = "sites"

    code: Mapped[str] = mapped_column(String(CODE_LENGTH), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    base_url: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(String(KEY_LENGTH), index=True)
    adapter: Mapped[str] = mapped_column(String(32))
    timezone: Mapped[str] = mapped_column(String(64), default="UTC")
    rate_key: Mapped[str | None] = mapped_column(String(KEY_LENGTH))
    min_gap_sec: Mapped[float] = mapped_column(default=0.0)
    cooldown_sec: Mapped[int | None]
    allowed_hours: Mapped[str | None] = mapped_column(String(64))
    obey_robots: Mapped[bool] = mapped_column(default=True)
    http: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]

    targets: Mapped[list[Target]] = relationship(back_populates="site", order_by="Target.code")


class Target(Base):
    """One thing to run on a site: handler, parameters, schedule, interval, policies."""

    __tablename__ = "targets"
    __table_args__ = (Index("ix_targets_next_tick", "next_tick_at"), Index("ix_targets_fires", "fires_at"))

    code: Mapped[str] = mapped_column(String(CODE_LENGTH), primary_key=True)
    site_code: Mapped[str] = mapped_column(ForeignKey("sites.code"), index=True)
    handler: Mapped[str] = mapped_column(String(32))
    params: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    schedule: Mapped[str | None] = mapped_column(String(255))
    timezone: Mapped[str | None] = mapped_column(String(64))
    interval_sec: Mapped[float] = mapped_column(default=10.0)
    overlap: Mapped[str] = mapped_column(String(16), default="queue_one")
    catch_up: Mapped[str] = mapped_column(String(16), default="one")
    catch_up_limit: Mapped[int] = mapped_column(default=24)
    jitter_sec: Mapped[int] = mapped_column(default=0)
    start_at: Mapped[datetime | None]
    end_at: Mapped[datetime | None]
    track_checkpoint: Mapped[bool] = mapped_column(default=True)
    max_runtime_sec: Mapped[int] = mapped_column(default=14400)
    retry_times: Mapped[int] = mapped_column(default=2)
    retry_wait_sec: Mapped[int] = mapped_column(default=300)
    enabled: Mapped[bool] = mapped_column(default=True)
    tags: Mapped[list[str]] = mapped_column(JSONData, default=list)
    note: Mapped[str] = mapped_column(Text, default="")
    owner: Mapped[str] = mapped_column(Text, default="")

    # What operators and runs changed; the file of `import` never touches these.
    paused_at: Mapped[datetime | None]
    paused_by: Mapped[str | None] = mapped_column(String(128))
    learned_interval_sec: Mapped[float | None]
    clean_runs: Mapped[int] = mapped_column(default=0)
    # The next nominal tick, NULL without a schedule, and when it makes its job, after its jitter; both are written by
    # `config.ticks` and the scheduler alone. `ticks_from` is when the present schedule took effect.
    next_tick_at: Mapped[datetime | None]
    fires_at: Mapped[datetime | None]
    ticks_from: Mapped[datetime | None]
    schedule_error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]

    site: Mapped[Site] = relationship(back_populates="targets")
