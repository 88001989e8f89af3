"""The queue protocol: `status`, `retry_at` and `modified_at` of a row, and who owns it (DESIGN section 4).

`retry_at` means *due at* for a waiting row, *leased until* for an active one; NULL is "not in the queue" and
`RETRY_AT_MAX` is "paused". A row is owned by whoever moved `retry_at` from the value that both had loaded: a
compare-and-swap in one UPDATE, which is atomic on SQLite and, under READ COMMITTED, on PostgreSQL. What the
states mean, and which follows which, is the model's business.
"""

from __future__ import annotations

from webqueue.leases.lease import Lease
from webqueue.leases.model import ClaimRefusedError, ModelWithQueue, NotInSessionError
from webqueue.leases.runner import RunCounts, run_due
from webqueue.leases.saving import inside_runner
from webqueue.leases.states import (
    ACTIVE_STATE_LEASE_SECONDS,
    RETRY_AT_MAX,
    DefaultStatusChoices,
    StatusEnum,
    extend_choices,
)

__all__ = [
    "ACTIVE_STATE_LEASE_SECONDS",
    "RETRY_AT_MAX",
    "ClaimRefusedError",
    "DefaultStatusChoices",
    "Lease",
    "ModelWithQueue",
    "NotInSessionError",
    "RunCounts",
    "StatusEnum",
    "extend_choices",
    "inside_runner",
    "run_due",
]
