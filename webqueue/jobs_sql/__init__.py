"""The few statements of the hot path, so that they can be made faster alone.

Every statement here names its status as a literal: neither database proves a partial index from a bound parameter.
"""

from __future__ import annotations

from webqueue.jobs_sql.heads import Head, due_head, head, next_due, running_job
from webqueue.jobs_sql.keys import lock_due_keys, lock_keys, lock_leased_keys, try_lock_key
from webqueue.jobs_sql.rows import (
    insert_job,
    move_queued,
    postpone,
    postpone_one,
    start_job,
    unpostpone,
    update_running,
)

__all__ = [
    "Head",
    "due_head",
    "head",
    "insert_job",
    "lock_due_keys",
    "lock_keys",
    "lock_leased_keys",
    "move_queued",
    "next_due",
    "postpone",
    "postpone_one",
    "running_job",
    "start_job",
    "try_lock_key",
    "unpostpone",
    "update_running",
]
