"""Who made a token, as the audit log tells of those that there are"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("created_by", sa.String(length=128), nullable=True))
    tokens = sa.table("tokens", sa.column("name"), sa.column("created_by"))
    audit = sa.table(
        "audit", sa.column("by"), sa.column("action"), sa.column("object_kind"), sa.column("object_name")
    )
    maker = sa.select(audit.c.by).where(
        audit.c.object_kind == "token", audit.c.action == "created", audit.c.object_name == tokens.c.name
    )
    op.execute(tokens.update().values(created_by=maker.limit(1).scalar_subquery()))
