"""An index by which the documents of a job are found, also those that a later job stored again"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("ix_document_versions_job", "document_versions", ["job_id", "document_id"], unique=False)
