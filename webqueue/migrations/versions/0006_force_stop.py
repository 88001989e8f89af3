"""Force stop of a running job, and the process group of one that runs in a process of its own"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    # Nullable, and added in place: a table of a million jobs is not copied.
    op.add_column("jobs", sa.Column("force_requested_at", types.UTCDateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("force_requested_by", sa.String(length=128), nullable=True))
    op.add_column("jobs", sa.Column("process_group", sa.BigInteger(), nullable=True))
