"""robots.txt kept over jobs, summaries of requests, due times moved by opening hours, causes of intervals"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "robots_files",
        sa.Column("origin", sa.String(length=300), nullable=False),
        sa.Column("body", types.Text(), nullable=True),
        sa.Column("unreachable", types.Text(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("fetched_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("origin", name=op.f("pk_robots_files")),
    )
    op.create_table(
        "request_days",
        sa.Column("rate_key", sa.String(length=255), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("machine", sa.String(length=255), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("statuses", types.JSONData(), nullable=False),
        sa.Column("smallest_gap_sec", sa.Double(), nullable=True),
        sa.Column("most_parallel", sa.Integer(), nullable=False),
        sa.Column("first_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("last_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("rate_key", "day", "machine", name=op.f("pk_request_days")),
    )
    with op.batch_alter_table("request_days", schema=None) as batch_op:
        batch_op.create_index("ix_request_days_day", ["day"], unique=False)
    # Nullable, and added in place: a table of a million jobs is not copied.
    op.add_column("jobs", sa.Column("due_before_hours", types.UTCDateTime(timezone=True), nullable=True))
    op.add_column("rate_keys", sa.Column("interval_cause", sa.String(length=32), nullable=True))
