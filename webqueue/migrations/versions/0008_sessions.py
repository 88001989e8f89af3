"""Where users are logged in, a row a browser. Whoever was logged in before has to do it again"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "user_sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_sessions_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_sessions")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_user_sessions_key_hash")),
    )
    with op.batch_alter_table("user_sessions", schema=None) as batch_op:
        batch_op.create_index("ix_user_sessions_user", ["user_id", "last_seen_at"], unique=False)
    # In place, which SQLite can since 3.35.
    op.drop_column("users", "session_key")
