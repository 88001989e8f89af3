"""Search in documents, since when a document is gone, and what retention has forgotten"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types
from webqueue.migrations import search_index

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("documents", sa.Column("gone_at", types.UTCDateTime(timezone=True), nullable=True))
    gone = sa.text("state = 'gone'")
    op.create_index(
        "ix_documents_gone", "documents", ["id"], unique=False, sqlite_where=gone, postgresql_where=gone
    )
    op.create_index("ix_documents_found", "documents", ["target_code", "first_seen_at"], unique=False)
    op.create_index("ix_documents_seen", "documents", ["last_seen_at"], unique=False)
    op.create_table(
        "forgotten_documents",
        sa.Column("target_code", sa.String(length=64), nullable=False),
        sa.Column("url_hash", sa.String(length=64), nullable=False),
        sa.Column("forgotten_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["target_code"],
            ["targets.code"],
            name=op.f("fk_forgotten_documents_target_code"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("target_code", "url_hash", name=op.f("pk_forgotten_documents")),
    )
    search_index.build(op.get_bind())
