"""Claiming keys for their heads, and taking over what a dead or silent worker held."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql, logs
from webqueue.job_verbs.hours import move_to_opening, open_for, opening
from webqueue.job_verbs.keys import paused_all, share_pause
from webqueue.job_verbs.settling import keep_gap_between_jobs, release, settle
from webqueue.job_verbs.types import LEASE_SECONDS, MAX_EXTENSIONS, MAX_RECOVERIES, Claimed, Lease, Life
from webqueue.jobs_sql import Head
from webqueue.models import Job, JobLog, JobStatus, RateKey, RateKeyStatus, Site, Target
from webqueue.politeness import causes
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.rate_key import RateGroup
from webqueue.politeness.reactions import interval_of, keep_gap, not_before, told_interval
from webqueue.sentences import stored

log = logs.get(__name__)
# A silent worker is believed to be at work at most this long past its job's time limit.
_LIMIT_GRACE: Final = timedelta(seconds=LEASE_SECONDS)
_PUT_OFF: Final = timedelta(seconds=60)
# How soon a claim looks again whether it can move jobs to the new key of their site.
_NEW_KEY_BUSY: Final = timedelta(seconds=1)


@dataclass
class _Round:
    """One claim: who, when, and what holds for all its keys."""

    session: Session
    worker_id: str
    now: datetime
    lease: timedelta
    life: Callable[[str], Life]
    may_start: bool

    @cached_property
    def groups(self) -> list[RateGroup]:
        return rate_groups(self.session)


def claim(
    session: Session,
    worker_id: str,
    *,
    limit: int,
    life: Callable[[str], Life],
    lease_sec: float = LEASE_SECONDS,
) -> list[Claimed]:
    """Lease up to `limit` due keys, the one due longest first, and take the head of each.

    Args:
        worker_id: who claims.
        limit: idle threads of the worker.
        life: what is known of another worker's process, for the keys whose lease has ended.
        lease_sec: how long the leases last, in seconds.
    """
    share_pause(session)
    now = clock.now(session)
    all_paused = paused_all(session)
    one_round = _Round(session, worker_id, now, timedelta(seconds=lease_sec), life, may_start=not all_paused)
    keys = jobs_sql.lock_due_keys(session, now, limit, leased_only=all_paused)
    claimed = [_claim_key(one_round, key) for key in keys]
    return [one for one in claimed if one is not None]


def free_dead(session: Session, worker_ids: Iterable[str]) -> list[str]:
    """Free at once everything that dead workers held; returns the ids of the jobs that were recovered (P5)."""
    now = clock.now(session)
    recovered = []
    for key in jobs_sql.lock_leased_keys(session, worker_ids):
        orphan = jobs_sql.running_job(session, key.key)
        if orphan is not None:
            recover(session, key, orphan, now)
            recovered.append(orphan.id)
        release(key)
        settle(session, key, now)
    return recovered


def earliest_due(session: Session) -> datetime | None:
    """When the next key may be claimed, or its lease ends; workers sleep no longer than until then."""
    return session.scalar(select(func.min(RateKey.retry_at)))


def recover(session: Session, key: RateKey, job: Job, now: datetime) -> None:
    """Take an orphaned job from its lost worker; the key is locked, and released by the caller.

    It goes back to its place in the line. The fourth orphaning fails it; one with a stop requested is cancelled
    (SEEDS C 5, C 12).
    """
    values: dict[str, Any] = {"leased_by": None, "modified_at": now}
    if job.stop_requested:
        values |= {"status": JobStatus.CANCELLED, "retry_at": None, "finished_at": now}
        note = stored("cancelled: a stop was requested, and its worker is gone")
    elif job.attempt_count >= MAX_RECOVERIES:
        note = stored("abandoned after %(count)s restart recoveries", count=MAX_RECOVERIES)
        values |= {"status": JobStatus.FAILED, "retry_at": None, "finished_at": now}
        values["error_msg"] = _appended(job.error_msg, note)
    else:
        attempt = job.attempt_count + 1
        note = stored(
            "restart_during_run (recovery attempt %(attempt)s/%(count)s)",
            attempt=attempt,
            count=MAX_RECOVERIES,
        )
        values |= {
            "status": JobStatus.QUEUED,
            "retry_at": job.due_at,
            "started_at": None,
            "attempt_count": attempt,
        }
        values["error_msg"] = _appended(job.error_msg, note)
    if not jobs_sql.update_running(session, job.seq, job.lease_token, values):
        raise AssertionError(f"job {job.id} changed although its key {key.key} is locked")
    session.add(JobLog(job_seq=job.seq, at=now, level="warning", message=note))
    # Nobody can ask the lost worker when its last request was: it may have been just now.
    keep_gap(
        key,
        now + timedelta(seconds=key.interval_sec),
        causes.AFTER_LOST_WORKER % {"interval": told_interval(key)},
    )
    keep_gap_between_jobs(session, key, now)
    log.warning(
        "job recovered", job=job.id, rate_key=key.key, lost_worker=job.leased_by, status=values["status"]
    )


def _claim_key(claim: _Round, key: RateKey) -> Claimed | None:
    orphan = jobs_sql.running_job(claim.session, key.key)
    if orphan is not None:
        if _extended(claim, key, orphan):
            return None
        recover(claim.session, key, orphan, claim.now)
    release(key)
    wait_until = not_before(key)
    if claim.may_start and key.paused_at is None and (wait_until is None or wait_until <= claim.now):
        while head := jobs_sql.due_head(claim.session, key.key, claim.now):
            site = _site_of(claim.session, head)
            new_name = site_key(site, claim.groups)
            if new_name == key.key:
                opens = opening(site, claim.now)
                if opens <= claim.now:
                    return _start(claim, key, head, site)
                # Closed: the next site of the key may be open.
                move_to_opening(claim.session, key.key, site.code, opens, claim.now)
                continue
            if not _moved(claim, key, site.code, new_name):
                key.retry_at = claim.now + _NEW_KEY_BUSY
                return None
    settle(claim.session, key, claim.now)
    return None


def _extended(claim: _Round, key: RateKey, orphan: Job) -> bool:
    """Whether the silent owner of an ended lease is alive and gets more time (P5)."""
    is_owner = key.status == RateKeyStatus.LEASED and key.lease_token == orphan.lease_token
    if (
        not is_owner  # it could neither renew nor finish
        or orphan.leased_by is None
        or key.extensions >= MAX_EXTENSIONS
        or claim.life(orphan.leased_by) is not Life.ALIVE
    ):
        return False
    now = claim.now
    target = claim.session.get_one(Target, orphan.target_code)
    limit = (orphan.started_at or now) + timedelta(seconds=target.max_runtime_sec) + _LIMIT_GRACE
    if _clock_jumped(claim, key):
        until = now + claim.lease
    elif now < limit:
        until = min(now + claim.lease, limit)
    else:
        return False
    if not jobs_sql.update_running(
        claim.session, orphan.seq, orphan.lease_token, {"retry_at": until, "modified_at": now}
    ):
        return False
    key.retry_at = until
    key.extensions += 1
    log.warning(
        "silent worker is alive; its lease is extended",
        job=orphan.id,
        rate_key=key.key,
        worker=orphan.leased_by,
    )
    return True


def _clock_jumped(claim: _Round, key: RateKey) -> bool:
    """Whether the lease ended so long ago that the clock must have been set forward.

    Somebody looks for ended leases every few seconds. Its living owner, whose own clock did not jump, still counts on
    the lease and the time limit that it knows: it gets one lease, in which it renews by the new time.
    """
    return key.extensions == 0 and key.retry_at is not None and claim.now - key.retry_at > claim.lease


def _site_of(session: Session, head: Head) -> Site:
    return session.scalars(
        select(Site).join(Job, Job.site_code == Site.code).where(Job.seq == head.seq)
    ).one()


def _moved(claim: _Round, key: RateKey, site_code: str, new_name: str) -> bool:
    """Move the site's jobs to the key that the site has now; False while another transaction holds that key.

    They were submitted while the site changed its key, or came back from a run that had kept the old one.
    """
    new = jobs_sql.try_lock_key(claim.session, new_name, claim.now)
    if new is None:
        return False
    jobs_sql.move_queued(claim.session, site_code, [key.key], new_name, claim.now)
    settle(claim.session, new, claim.now)
    return True


def _start(claim: _Round, key: RateKey, head: Head, site: Site) -> Claimed | None:
    session = claim.session
    # A job that came from another key brings that key's token along: none is ever given twice for one job.
    token = max(key.lease_token, head.token) + 1
    until = claim.now + claim.lease
    try:
        with session.begin_nested():
            started = jobs_sql.start_job(
                session, head.seq, token=token, worker_id=claim.worker_id, until=until, now=claim.now
            )
    except IntegrityError as error:
        # The unique index knows of a running job that this transaction cannot see: never start a second one.
        log.error(  # noqa: TRY400 - where it was raised tells nothing, and the key is locked meanwhile
            "key violates P1 and is put off", rate_key=key.key, worker=claim.worker_id, error=str(error.orig)
        )
        key.retry_at = claim.now + _PUT_OFF
        return None
    if not started:
        raise AssertionError(f"the head of {key.key} changed although the key is locked")
    job = session.get_one(Job, head.seq, populate_existing=True)
    target = session.get_one(Target, job.target_code)
    key.status = RateKeyStatus.LEASED
    key.lease_token = token
    key.leased_by = claim.worker_id
    key.retry_at = until
    in_force = interval_of(target)
    key.interval_sec, key.interval_cause = in_force.seconds, in_force.cause
    began = session.scalar(select(Job.began_at).where(Job.id == job.root_id)) or job.began_at
    lease = Lease(rate_key=key.key, job_seq=job.seq, job_id=job.id, token=token, worker_id=claim.worker_id)
    return Claimed(
        lease, job, site, target, key.last_request_at, began or claim.now, open_for(site, claim.now)
    )


def _appended(error_msg: str | None, note: str) -> str:
    return stored("%(before)s | %(what)s", before=error_msg, what=note) if error_msg else note
