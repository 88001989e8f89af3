"""The end of a run: final status, what follows, and the release of the key, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql
from webqueue.errors import LeaseLostError
from webqueue.job_verbs.follow_ups import Closing, close
from webqueue.job_verbs.settling import keep_gap_between_jobs, release, settle
from webqueue.job_verbs.types import Finished, Lease, Policy
from webqueue.models import Job, JobLog, JobStatus, RateKey, Site, Target
from webqueue.outcomes import Blocked, Ending
from webqueue.politeness import causes
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.reactions import keep_gap, note_event, told_interval
from webqueue.sentences import stored

# A handler that did not stop is given this long to end with its process before its key opens again (P9).
_UNSTOPPED_GAP: Final = timedelta(seconds=10)


def finish(
    session: Session,
    lease: Lease,
    ending: Ending,
    policy: Policy,
    *,
    last_request_at: datetime | None = None,
    evidence: Sequence[Mapping[str, Any]] = (),
) -> Finished:
    """Close a job with what its run came to.

    The token is checked on key and job, and `stop_requested` is read under the lock, before the status is chosen: a
    stop wins over every other outcome (P8). Retry, continuation, cooldown and release are part of the transaction.

    Args:
        last_request_at: end of the run's last request, for the gap to the next one (P11).
        evidence: the run's last responses, oldest first, as JSON; kept with a cooldown.

    Raises:
        LeaseLostError: the job is no longer this lease's; nothing was written.
    """
    charged = ending.rate_key if isinstance(ending, Blocked) else None
    job, keys, target, site = _lock(session, lease, charged)
    key = keys[lease.rate_key]
    now = clock.now(session)
    closing = close(
        session,
        Closing(
            job=job,
            key=key,
            target=target,
            site=site,
            keys=keys,
            policy=policy,
            now=now,
            evidence=evidence,
        ),
        ending,
    )
    _keep_gaps(session, key, now, last_request_at)
    values: dict[str, Any] = {
        "status": closing.status,
        "retry_at": None,
        "finished_at": now,
        "modified_at": now,
        "result": dict(closing.result),
        "error_msg": closing.error_msg if closing.error_msg is not None else job.error_msg,
        "attention": closing.attention,
    }
    if not jobs_sql.update_running(session, lease.job_seq, lease.token, values):
        raise LeaseLostError(lease.job_id)
    release(key)
    for one in keys.values():
        settle(session, one, now, after_run=one is key)
    return Finished(closing.status, closing.follow_up_id)


def hand_back(
    session: Session, lease: Lease, *, stopped: bool, last_request_at: datetime | None = None
) -> Finished:
    """Give a job back with its checkpoint at a clean stop; it costs no attempt (P9).

    Args:
        stopped: False when the handler is still running and ends with its process: its key is kept shut 10 s more.

    Raises:
        LeaseLostError: the job is no longer this lease's; nothing was written.
    """
    job, keys, _target, _site = _lock(session, lease)
    key = keys[lease.rate_key]
    now = clock.now(session)
    _keep_gaps(session, key, now, last_request_at)
    if not stopped:
        keep_gap(key, now + _UNSTOPPED_GAP, causes.NOT_STOPPED)
        note_event(session, key, "stuck", at=now, message=causes.HANDED_BACK, job_id=job.id)
    values: dict[str, Any] = {"leased_by": None, "modified_at": now}
    if job.stop_requested:
        values |= {"status": JobStatus.CANCELLED, "retry_at": None, "finished_at": now}
    else:
        values |= {"status": JobStatus.QUEUED, "retry_at": job.due_at, "started_at": None}
    if not jobs_sql.update_running(session, lease.job_seq, lease.token, values):
        raise LeaseLostError(lease.job_id)
    session.add(
        JobLog(
            job_seq=job.seq, at=now, level="info", message=stored("handed back at a clean stop of its worker")
        )
    )
    release(key)
    settle(session, key, now)
    return Finished(values["status"])


def _lock(
    session: Session, lease: Lease, charged: str | None = None
) -> tuple[Job, Mapping[str, RateKey], Target, Site]:
    """Lock the key, the one that a follow-up would get, and one that is charged for a block, sorted; then the job.

    The token is checked on key and job.
    """
    job = session.get(Job, lease.job_seq, populate_existing=True)
    if job is None:
        raise LeaseLostError(lease.job_id)
    site = session.get_one(Site, job.site_code, populate_existing=True)
    follow_up_key = site_key(site, rate_groups(session))
    names = {lease.rate_key, follow_up_key, charged or lease.rate_key}
    keys = jobs_sql.lock_keys(session, names, now=clock.now(session))
    key = keys[lease.rate_key]
    running = jobs_sql.running_job(session, lease.rate_key)
    if (
        key.lease_token != lease.token
        or key.leased_by != lease.worker_id
        or running is None
        or running.seq != lease.job_seq
        or running.lease_token != lease.token
    ):
        raise LeaseLostError(lease.job_id)
    return running, keys, session.get_one(Target, running.target_code, populate_existing=True), site


def _keep_gaps(session: Session, key: RateKey, now: datetime, last_request_at: datetime | None) -> None:
    if last_request_at is not None:
        # It comes from the worker's own clock; one that is fast must not shut the key for as long as it is ahead.
        last_request_at = min(last_request_at, now)
        if key.last_request_at is None or last_request_at > key.last_request_at:
            key.last_request_at = last_request_at
        until = last_request_at + timedelta(seconds=key.interval_sec)
        keep_gap(key, until, causes.AFTER_REQUEST % {"interval": told_interval(key)})
    keep_gap_between_jobs(session, key, now)
