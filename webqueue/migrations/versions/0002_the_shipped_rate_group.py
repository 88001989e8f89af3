"""The shipped rate group: the sites behind the firewall of gd.gov.cn share a key (DESIGN section 6)"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# As it was when this migration was written; later versions of the code must not change what it does.
GROUP = {
    "position": 0,
    "key": "gd_gkmlpt_shared",
    "adapter": "gkmlpt",
    "host_suffix": "gd.gov.cn",
    "grow_interval": True,
    "cooldown_factor": 2.0,
}


def upgrade() -> None:
    groups = sa.table(
        "rate_groups",
        sa.column("position", sa.Integer),
        sa.column("key", sa.String),
        sa.column("adapter", sa.String),
        sa.column("host_suffix", sa.String),
        sa.column("grow_interval", sa.Boolean),
        sa.column("cooldown_factor", sa.Float),
    )
    already = sa.select(groups.c.key).where(
        groups.c.adapter == GROUP["adapter"], groups.c.host_suffix == GROUP["host_suffix"]
    )
    if op.get_bind().execute(already).first() is None:
        op.bulk_insert(groups, [GROUP])
