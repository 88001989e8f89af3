"""The audit log by time, and by who and what in the order of time"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.drop_index("ix_audit_object", "audit")
    op.create_index("ix_audit_at", "audit", ["at", "id"])
    op.create_index("ix_audit_by", "audit", ["by", "at", "id"])
    op.create_index("ix_audit_kind", "audit", ["object_kind", "at", "id"])
    op.create_index("ix_audit_object", "audit", ["object_kind", "object_name", "at", "id"])
