"""What is kept of visits to servers: their robots.txt for a day, and a summary of each key's requests a day."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import BigInteger, Date, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.database import JSONData, Text
from webqueue.models.base import KEY_LENGTH, Base

ORIGIN_LENGTH = 300
MACHINE_LENGTH = 255


class RobotsFile(Base):
    """The robots.txt of one scheme, host and port, for every process.

    `body` None: there is none, everything is allowed. `unreachable` says why it could not be had, which forbids
    everything until `expires_at` (RFC 9309 §2.3.1.4).
    """

    __tablename__ = "robots_files"

    origin: Mapped[str] = mapped_column(String(ORIGIN_LENGTH), primary_key=True)
    body: Mapped[str | None] = mapped_column(Text)
    unreachable: Mapped[str | None] = mapped_column(Text)
    status: Mapped[int | None]
    fetched_at: Mapped[dt.datetime]
    expires_at: Mapped[dt.datetime]


class RequestDay(Base):
    """The requests that one machine made in one key on one day (UTC): what stays when the evidence file is gone.

    Gaps and parallelism are those within the machine's own file.
    """

    __tablename__ = "request_days"
    __table_args__ = (Index("ix_request_days_day", "day"),)

    rate_key: Mapped[str] = mapped_column(String(KEY_LENGTH), primary_key=True)
    day: Mapped[dt.date] = mapped_column(Date, primary_key=True)
    machine: Mapped[str] = mapped_column(String(MACHINE_LENGTH), primary_key=True)
    requests: Mapped[int]
    bytes: Mapped[int] = mapped_column(BigInteger)
    jobs: Mapped[int]
    statuses: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    smallest_gap_sec: Mapped[float | None]
    most_parallel: Mapped[int]
    first_at: Mapped[dt.datetime]
    last_at: Mapped[dt.datetime]
