"""Indexes: the documents of a job, also those that a later one stored again; jobs that opening hours have put off"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("ix_document_versions_job", "document_versions", ["job_id", "document_id"], unique=False)
    put_off = sa.text("status = 'queued' AND due_before_hours IS NOT NULL")
    op.create_index(
        "ix_jobs_put_off",
        "jobs",
        ["rate_key", "due_before_hours"],
        unique=False,
        sqlite_where=put_off,
        postgresql_where=put_off,
    )
