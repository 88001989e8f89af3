"""Owner and note of a rate key"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "rate_key_notes",
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("owner", types.Text(), nullable=False),
        sa.Column("note", types.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_rate_key_notes")),
    )
