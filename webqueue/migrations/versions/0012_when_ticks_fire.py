"""When the next tick of a target makes its job: after its jitter"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("targets", sa.Column("fires_at", types.UTCDateTime(timezone=True), nullable=True))
    # Without the jitter, which only the scheduler can work out: it does, when it finds a tick here before its time.
    op.execute("UPDATE targets SET fires_at = next_tick_at")
    op.create_index("ix_targets_fires", "targets", ["fires_at"])
