"""`settle`: the single place where a key's `retry_at` is worked out."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from webqueue import jobs_sql
from webqueue.database import request_wakeup
from webqueue.errors import NotFoundError
from webqueue.leases import RETRY_AT_MAX
from webqueue.models import RateKey, RateKeyStatus
from webqueue.politeness import causes
from webqueue.politeness.keys import rate_groups, shared_politeness
from webqueue.politeness.reactions import keep_gap, not_before


def settle(session: Session, key: RateKey, now: datetime, *, after_run: bool = False) -> None:
    """Work out when `key`, which the transaction has locked, may be claimed; then wake the workers.

    Leased: unchanged. No queued job: NULL. Paused: `RETRY_AT_MAX`. Else the latest of cooldown, gap and the due time
    of its head. After a run also not before now, so that a deep key goes to the back of the line (round robin). That
    is kept as a gap that has passed: what settles the key next, a submit say, must not put it in front again.
    """
    if after_run:
        keep_gap(key, now, causes.RUN_ENDED)
    if key.status == RateKeyStatus.LEASED:
        return
    due = jobs_sql.next_due(session, key.key)
    if due is None:
        key.retry_at = None
    elif key.paused_at is not None:
        key.retry_at = RETRY_AT_MAX
    else:
        key.retry_at = max(due, not_before(key) or due)
        request_wakeup(session)


def release(key: RateKey) -> None:
    """Take the lease off a locked key; its token stays, and only grows."""
    key.status = RateKeyStatus.IDLE
    key.leased_by = None
    key.extensions = 0


def keep_gap_between_jobs(session: Session, key: RateKey, now: datetime) -> None:
    """Keep the largest `min_gap_sec` of the key's sites after a run, however it ended."""
    gap = shared_politeness(session, key.key, rate_groups(session)).min_gap_sec
    if gap > 0:
        keep_gap(key, now + timedelta(seconds=gap), causes.BETWEEN_JOBS)


def lock_key(session: Session, name: str) -> RateKey:
    """Lock one key that must exist.

    Raises:
        NotFoundError: there is no such key.
    """
    keys = jobs_sql.lock_keys(session, [name])
    if name not in keys:
        raise NotFoundError("rate key", name)
    return keys[name]
