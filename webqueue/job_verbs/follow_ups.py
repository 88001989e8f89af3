"""What follows an outcome: status, cooldown, growth of the interval, retry, continuation (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue import jobs_sql
from webqueue.deliveries.windows import queue_export
from webqueue.job_verbs.submitting import follow_up
from webqueue.job_verbs.types import Policy
from webqueue.models import Job, JobSource, JobStatus, RateKey, Site, Target
from webqueue.outcomes import Blocked, Cancelled, Done, Ending, Failed, OutOfHours, OutOfTime
from webqueue.politeness.cooldown import cooldown_seconds, result_has_host_cooldown
from webqueue.politeness.keys import (
    cooldown_factor_of_key,
    rate_groups,
    reaction_of_group,
    shared_politeness,
    site_key,
)
from webqueue.politeness.reactions import cool_down, grow_interval, note_clean_run
from webqueue.sentences import stored

_LONGEST_RETRY_WAIT: Final = timedelta(days=30)


@dataclass(frozen=True)
class Closing:
    """A job that is being closed: its locked rows, and what was decided so far.

    `keys` are all that are locked, by name: the job's, the one of a follow-up, and that of a host that blocked.
    `evidence` are the run's last responses, kept with the cooldown that they cause.
    """

    job: Job
    key: RateKey
    target: Target
    site: Site
    keys: Mapping[str, RateKey]
    policy: Policy
    now: datetime
    evidence: Sequence[Mapping[str, Any]] = ()
    status: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    error_msg: str | None = None
    attention: str | None = None
    follow_up_id: str | None = None

    @property
    def may_be_followed(self) -> bool:
        """A cancelled job starts nothing, and neither does a trial (P8, SEEDS B)."""
        return not self.job.stop_requested and self.job.source != JobSource.TRY


def close(session: Session, closing: Closing, ending: Ending) -> Closing:
    """Decide what `ending` makes of the job; the key reacts to a block even when a stop wins.

    What a stopped job is, is decided here alone (P8): cancelled, and neither failed nor worth a look.
    """
    match ending:
        case Done():
            decided = _done(session, closing, ending)
        case Blocked():
            decided = _blocked(session, closing, ending)
        case Failed():
            decided = _failed(session, closing, ending)
        case OutOfTime():
            decided = _out_of_time(session, closing, ending)
        case OutOfHours():
            decided = _out_of_hours(session, closing, ending)
        case Cancelled():
            decided = replace(closing, status=JobStatus.CANCELLED, result=ending.result)
    if closing.job.stop_requested:
        return replace(decided, status=JobStatus.CANCELLED, error_msg=None, attention=None)
    return _exported(session, decided)


def _exported(session: Session, decided: Closing) -> Closing:
    """Queue the export for retrieval behind a done job; the key is free while it runs."""
    if decided.status != JobStatus.DONE or decided.job.source == JobSource.TRY:
        return decided
    told = queue_export(session, decided.job, now=decided.now)
    return decided if told is None else replace(decided, result={**decided.result, "rag_export": told})


def _done(session: Session, closing: Closing, ending: Done) -> Closing:
    result = dict(ending.result)
    if result_has_host_cooldown(result):
        # A crawler that met a block and went on: the key cools down, the job stays done (DESIGN section 6).
        _seconds, adjustment = _cool_down(session, closing, stored("host_cooldown in the result"), None)
        result |= adjustment
    elif closing.job.source != JobSource.TRY:
        note_clean_run(session, closing.key, closing.target, now=closing.now, job_id=closing.job.id)
    return replace(closing, status=JobStatus.DONE, result=result, attention=ending.attention)


def _failed(session: Session, closing: Closing, ending: Failed) -> Closing:
    result = dict(ending.result)
    if result_has_host_cooldown(result) or result_has_host_cooldown(ending.error):
        _seconds, adjustment = _cool_down(session, closing, stored("host_cooldown in the error"), None)
        result |= adjustment
    decided = replace(closing, status=JobStatus.FAILED, result=result, error_msg=ending.error)
    job, target = closing.job, closing.target
    if not closing.may_be_followed or job.failure_retry_count >= target.retry_times:
        return decided
    # Twice as long each time; it is due later and holds up nobody.
    due = closing.now + _retry_wait(target.retry_wait_sec, job.failure_retry_count)
    again = _follow_up(
        session,
        closing,
        JobSource.RETRY,
        due_at=due,
        # Both are counted on, so that failures between blocks do not give a blocked chain new attempts.
        cooldown_retry_count=job.cooldown_retry_count,
        failure_retry_count=job.failure_retry_count + 1,
    )
    result["retry"] = {
        "job_id": again.id,
        "attempt": again.failure_retry_count,
        "times": target.retry_times,
        "due_at": due.isoformat(),
        "resume_from_page": again.last_completed_page,
    }
    return replace(decided, result=result, follow_up_id=again.id)


def _retry_wait(first_sec: int, retries: int) -> timedelta:
    """`first_sec`, doubled with each retry, up to 30 days: further doublings would soon pass the end of the calendar."""
    longest = max(first_sec, int(_LONGEST_RETRY_WAIT.total_seconds()))
    return timedelta(seconds=min(longest, first_sec * 2**retries))


def _blocked(session: Session, closing: Closing, ending: Blocked) -> Closing:
    job = closing.job
    if ending.checkpoint is not None and ending.checkpoint.page > job.last_completed_page:
        job = _with_checkpoint(session, closing, ending)
    seconds, adjustment = _cool_down(session, closing, ending.reason, ending.retry_after)
    if ending.rate_key is not None and ending.rate_key != closing.key.key:
        # A redirect led to the host of another key: that one answered, and must not be asked by its own jobs either.
        _cool_down_key(session, closing, closing.keys[ending.rate_key], ending.reason, ending.retry_after)
        adjustment["charged_rate_key"] = ending.rate_key
    result = {"reason": ending.reason, **ending.result, **adjustment}
    decided = replace(closing, status=JobStatus.FAILED, result=result, error_msg="cooldown_abort")
    if not closing.may_be_followed:
        return decided
    most = closing.policy.cooldown_auto_retry_max
    if job.cooldown_retry_count >= most:
        result["auto_retry"] = {
            "status": "max_reached",
            "cooldown_retry_count": job.cooldown_retry_count,
            "max_retries": most,
        }
        return replace(decided, result=result, error_msg="cooldown_abort; auto_retry_max_reached")
    again = _follow_up(
        session,
        closing,
        JobSource.RETRY,
        cooldown_retry_count=job.cooldown_retry_count + 1,
        failure_retry_count=job.failure_retry_count,
    )
    result["auto_retry"] = {
        "status": "queued",
        "job_id": again.id,
        "resume_from_page": again.last_completed_page,
        "cooldown_retry_count": again.cooldown_retry_count,
        "max_retries": most,
        "delay_sec": seconds,
    }
    return replace(
        decided, result=result, error_msg=f"cooldown_abort; auto_retry_job={again.id}", follow_up_id=again.id
    )


def _out_of_hours(session: Session, closing: Closing, ending: OutOfHours) -> Closing:
    """Continued in any case: a run that began shortly before the end may not have completed a page."""
    job, site = closing.job, closing.site
    hours = {"hours": site.allowed_hours, "zone": site.timezone}
    if not closing.may_be_followed:
        # A trial; a stop that was requested makes it cancelled anyway.
        error = stored("stopped at the end of the allowed hours %(hours)s (%(zone)s)", **hours)
        return replace(closing, status=JobStatus.FAILED, result=dict(ending.result), error_msg=error)
    kept = not _advanced(job)
    again = _follow_up(
        session,
        closing,
        JobSource.CONTINUE,
        cooldown_retry_count=job.cooldown_retry_count if kept else 0,
        failure_retry_count=job.failure_retry_count if kept else 0,
    )
    why = stored("allowed hours %(hours)s (%(zone)s)", **hours)
    result = {**ending.result, "continued_by": again.id, "stopped_because": why}
    return replace(closing, status=JobStatus.DONE, result=result, follow_up_id=again.id)


def _advanced(job: Job) -> bool:
    return (
        job.checkpoint_at is not None and job.started_at is not None and job.checkpoint_at >= job.started_at
    )


def _out_of_time(session: Session, closing: Closing, ending: OutOfTime) -> Closing:
    job = closing.job
    if not _advanced(job) or not closing.may_be_followed:
        error = stored(
            "stopped at its time limit of %(seconds)s s without completing a page; raise max_runtime_sec, or look why it is "
            "slow",
            seconds=ending.max_runtime_sec,
        )
        return replace(closing, status=JobStatus.FAILED, result=dict(ending.result), error_msg=error)
    again = _follow_up(session, closing, JobSource.CONTINUE, cooldown_retry_count=0, failure_retry_count=0)
    limit = stored("time limit of %(seconds)s s", seconds=ending.max_runtime_sec)
    result = {**ending.result, "continued_by": again.id, "stopped_because": limit}
    return replace(closing, status=JobStatus.DONE, result=result, follow_up_id=again.id)


def _follow_up(session: Session, closing: Closing, source: str, **more: Any) -> Job:
    key = closing.keys[site_key(closing.site, rate_groups(session))]
    return follow_up(
        session, closing.job, closing.target, key.key, source=source, by=f"job {closing.job.id}", **more
    )


def _with_checkpoint(session: Session, closing: Closing, ending: Blocked) -> Job:
    """The job with the checkpoint that the handler returned along with the block."""
    assert ending.checkpoint is not None
    values = {"last_completed_page": ending.checkpoint.page, "checkpoint": dict(ending.checkpoint.data)}
    jobs_sql.update_running(session, closing.job.seq, closing.job.lease_token, values)
    session.refresh(closing.job)
    return closing.job


def _cool_down(
    session: Session, closing: Closing, cause: str, retry_after: int | None
) -> tuple[int, dict[str, Any]]:
    """Let the key cool down and the interval grow; the seconds, and what the result tells of it."""
    seconds = _cool_down_key(session, closing, closing.key, cause, retry_after)
    _factor, grows = reaction_of_group(closing.site, rate_groups(session))
    if not grows:
        return seconds, {}
    grown = grow_interval(session, closing.target, now=closing.now, cause=cause, job_id=closing.job.id)
    return seconds, {"cooldown_interval_adjustment": grown}


def _cool_down_key(
    session: Session, closing: Closing, key: RateKey, cause: str, retry_after: int | None
) -> int:
    groups = rate_groups(session)
    key.consecutive_blocks += 1
    if key is closing.key:
        factor, _grows = reaction_of_group(closing.site, groups)
    else:
        factor = cooldown_factor_of_key(key.key, groups)
    shared = shared_politeness(session, key.key, groups).cooldown_sec
    seconds = cooldown_seconds(
        base_sec=closing.policy.host_cooldown_delay_sec if shared is None else shared,
        retry_after=retry_after,
        consecutive_blocks=key.consecutive_blocks,
        factor=factor,
    )
    cool_down(
        session,
        key,
        now=closing.now,
        seconds=seconds,
        cause=cause,
        job_id=closing.job.id,
        retry_after=retry_after,
        responses=closing.evidence,
    )
    return seconds
