"""Jobs by what made them"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index("ix_jobs_source_seq", "jobs", ["source", "seq"])
