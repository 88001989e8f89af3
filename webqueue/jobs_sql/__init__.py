"""The few statements of the hot path, so that they can be made faster alone.

Every statement here names its status as a literal: neither database proves a partial index from a bound parameter.
"""

from __future__ import annotations

from webqueue.jobs_sql.heads import due_head, head, next_due, running_job
from webqueue.jobs_sql.keys import lock_due_keys, lock_keys, lock_leased_keys
from webqueue.jobs_sql.rows import insert_job, start_job, update_running

__all__ = [
    "due_head",
    "head",
    "insert_job",
    "lock_due_keys",
    "lock_keys",
    "lock_leased_keys",
    "next_due",
    "running_job",
    "start_job",
    "update_running",
]
