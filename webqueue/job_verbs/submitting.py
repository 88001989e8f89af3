"""Putting jobs into the table: submit, retry by hand, and ticks that made no job."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Integer, Select, func, literal, literal_column, select, tuple_
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql, settings
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.job_verbs.hours import opening
from webqueue.job_verbs.settling import settle
from webqueue.job_verbs.types import Submitted
from webqueue.jobs_sql.heads import QUEUED
from webqueue.models import Job, JobSource, JobStatus, RateKey, Site, Target
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.sentences import Sentence, say

# Runs by hand and through the API name the equal job that stands; ticks follow `overlap`, the rest never deduplicate.
_DEDUPLICATED: Final = frozenset({JobSource.MANUAL, JobSource.API})
_COUNTED: Final = 1_000
_LAST_PAGE: Final = 1_000_000


def submit(
    session: Session,
    target_code: str,
    *,
    source: str = JobSource.MANUAL,
    by: str = "",
    force: bool = False,
    from_page: int = 0,
    tick: datetime | None = None,
    new_id: str | None = None,
) -> Submitted:
    """Queue a run of a target; accepted when the transaction commits (P2).

    Args:
        source: one of `JobSource`.
        by: the user, token or tick that asked.
        force: do not stop at known pages.
        from_page: first list page to fetch, 0 = the first.
        tick: the nominal time of the tick that makes this job.
        new_id: the id that the job gets (see `new_job_id`), when the transaction may be tried again.

    Raises:
        NotFoundError: there is no such target.
        InvalidInputError: `from_page` is out of range.
        ConflictError: the target runs a command, and commands are off.
    """
    if not 0 <= from_page <= _LAST_PAGE:
        raise InvalidInputError.of(
            "from_page",
            say(
                "must be between 0 and %(last_page)s, not %(from_page)s",
                last_page=f"{_LAST_PAGE:,}",
                from_page=from_page,
            ),
        )
    target, key = lock_key_of_target(session, target_code)
    if accepted := _accepted_before(session, new_id):
        return accepted
    if source != JobSource.SCHEDULE:  # nobody is there whom a refusal would reach: the job itself tells it
        _refuse_what_is_off(target)
    if source in _DEDUPLICATED:
        equal = _equal_job(session, target_code, force=force, from_page=from_page)
        if equal is not None:
            return Submitted(equal.id, equal.seq, equal.rate_key, True, place_in_line(session, equal))
    job = add_job(
        session,
        target,
        key.key,
        source=source,
        by=by,
        force=force,
        from_page=from_page,
        tick=tick,
        new_id=new_id,
    )
    if job is None:
        assert tick is not None, "a job without a tick is always inserted"
        standing = _job_of_tick(session, target_code, tick)
        assert standing is not None, "the job of the tick was just seen"
        return Submitted(standing.id, standing.seq, standing.rate_key, True, place_in_line(session, standing))
    settle(session, key, job.enqueued_at)
    return Submitted(job.id, job.seq, key.key, False, place_in_line(session, job))


def retry(session: Session, job_id: str, *, by: str, new_id: str | None = None) -> Submitted:
    """Run a failed or cancelled job again, from its checkpoint, as a `manual` job of the same chain; a trial as a trial.

    Args:
        by: the user or token that asked.
        new_id: the id that the new job gets, as for `submit`.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it has not failed and was not cancelled, or it runs a command and commands are off.
    """
    old = find_job(session, job_id)
    if old.status not in {JobStatus.FAILED, JobStatus.CANCELLED}:
        raise ConflictError(
            say(
                "Job #%(seq)s is %(status)s: only a failed or cancelled job can be retried. To run "
                "%(target_code)s once more, run the target.",
                seq=old.seq,
                status=Sentence(old.status),
                target_code=old.target_code,
            )
        )
    target, key = lock_key_of_target(session, old.target_code)
    if accepted := _accepted_before(session, new_id):
        return accepted
    _refuse_what_is_off(target)
    # Whoever tried a target does not expect that the next one stores documents.
    source = JobSource.TRY if old.source == JobSource.TRY else JobSource.MANUAL
    if source is JobSource.MANUAL:
        equal = _equal_job(session, old.target_code, force=old.force, from_page=resume_page(old))
        if equal is not None:
            return Submitted(equal.id, equal.seq, equal.rate_key, True, place_in_line(session, equal))
    job = follow_up(session, old, target, key.key, source=source, by=by, new_id=new_id)
    settle(session, key, job.enqueued_at)
    return Submitted(job.id, job.seq, key.key, False, place_in_line(session, job))


def skip_tick(session: Session, target_code: str, tick: datetime, reason: str) -> str | None:
    """Leave a visible `skipped` row for a tick that made no job (P7); None when the tick has a row already."""
    added = skip_ticks(session, target_code, {tick: reason})
    return added[0] if added else None


def skip_ticks(session: Session, target_code: str, reasons: Mapping[datetime, str]) -> list[str]:
    """`skip_tick` for many ticks, under one lock.

    Args:
        reasons: by tick; the rows get their numbers in this order.

    Returns:
        The ids of the rows that were added; a tick that has a row already keeps it.
    """
    if not reasons:
        return []
    target, key = lock_key_of_target(session, target_code)
    added = [
        add_job(session, target, key.key, source=JobSource.SCHEDULE, by="schedule", tick=tick, skipped=reason)
        for tick, reason in reasons.items()
    ]
    return [job.id for job in added if job is not None]


def _refuse_what_is_off(target: Target) -> None:
    if target.handler == "command" and (refusal := settings.commands_refusal()) is not None:
        raise ConflictError(
            say("Target %(code)s was not queued. %(refusal)s", code=repr(target.code), refusal=refusal)
        )


def new_job_id() -> str:
    """An id for a job that is still to be submitted.

    To be made outside the transaction: when the answer to its COMMIT gets lost and it is tried again, `submit` and
    `retry` find by it what they have done already, and do it once (P2).
    """
    return secrets.token_hex(6)


def find_job(session: Session, job_id: str) -> Job:
    """The job with this id, as it is now.

    Raises:
        NotFoundError: there is none.
    """
    statement = select(Job).where(Job.id == job_id).execution_options(populate_existing=True)
    job = session.scalars(statement).first()
    if job is None:
        raise NotFoundError("job", job_id)
    return job


def lock_key_of_target(session: Session, target_code: str) -> tuple[Target, RateKey]:
    """The target, and the key its site has now, locked.

    The key is worked out again under the lock: while this transaction waited for it, the site may have got another.
    """
    site = _site_of(session, target_code)
    while True:
        name = site_key(site, rate_groups(session))
        key = jobs_sql.lock_keys(session, [name], now=clock.now(session))[name]
        site = _site_of(session, target_code)
        if site_key(site, rate_groups(session)) == name:
            target = session.get(Target, target_code, populate_existing=True)
            if target is None:
                raise NotFoundError("target", target_code)
            return target, key


def lock_keys_of_targets(session: Session, target_codes: Iterable[str]) -> None:
    """Lock the keys of several targets, sorted, before jobs of all of them are submitted in one transaction.

    Raises:
        NotFoundError: one of the targets does not exist.
    """
    groups = rate_groups(session)
    names = {site_key(_site_of(session, code), groups) for code in target_codes}
    jobs_sql.lock_keys(session, names, now=clock.now(session))


def _site_of(session: Session, target_code: str) -> Site:
    statement = select(Site).join(Target).where(Target.code == target_code)
    site = session.scalars(statement.execution_options(populate_existing=True)).first()
    if site is None:
        raise NotFoundError("target", target_code)
    return site


def _equal_job(session: Session, target_code: str, *, force: bool, from_page: int) -> Job | None:
    """The open job with the same target, force and start page; trials are not runs."""
    return session.scalars(
        select(Job)
        .where(
            Job.target_code == target_code,
            Job.finished_at.is_(None),
            Job.force == force,
            Job.from_page == from_page,
            Job.source != JobSource.TRY,
            # One that is being cancelled will not do the work that is asked for now.
            Job.stop_requested.is_(False),
        )
        # No order: with one, PostgreSQL may read and sort all open jobs of a target to find its first.
        .limit(1)
    ).first()


def _accepted_before(session: Session, new_id: str | None) -> Submitted | None:
    """What a transaction with the same id has done. It held the key's lock, so it is over by now."""
    if new_id is None:
        return None
    job = session.scalars(select(Job).where(Job.id == new_id)).first()
    if job is None:
        return None
    return Submitted(job.id, job.seq, job.rate_key, False, place_in_line(session, job))


def _job_of_tick(session: Session, target_code: str, tick: datetime) -> Job | None:
    return session.scalars(select(Job).where(Job.target_code == target_code, Job.tick == tick)).first()


def add_job(
    session: Session,
    target: Target,
    key: str,
    *,
    source: str,
    by: str = "",
    force: bool = False,
    from_page: int = 0,
    tick: datetime | None = None,
    skipped: str | None = None,
    new_id: str | None = None,
    **more: Any,
) -> Job | None:
    """Insert a job of `target` whose `key` is locked; None when its tick has made one already."""
    # Taken after the key is locked, so that due times grow in the order in which jobs are accepted.
    now = clock.now(session)
    values: dict[str, Any] = {
        "site_code": target.site_code,
        "target_code": target.code,
        "rate_key": key,
        "source": source,
        "created_by": by,
        "status": JobStatus.QUEUED if skipped is None else JobStatus.SKIPPED,
        "force": force,
        "from_page": from_page,
        "tick": tick,
        "due_at": now,
        "enqueued_at": now,
        "modified_at": now,
        "error_msg": skipped,
        "finished_at": None if skipped is None else now,
        **more,
    }
    if skipped is None:
        due = values["due_at"]
        values["due_at"] = opening(session.get_one(Site, target.site_code), max(due, now))
        if values["due_at"] > max(due, now):
            values["due_before_hours"] = due
        else:
            values["due_at"] = due
    values["retry_at"] = values["due_at"] if skipped is None else None
    job_id = new_id or new_job_id()
    while True:
        seq = jobs_sql.insert_job(session, {"root_id": job_id, **values, "id": job_id})
        if seq is not None:
            return session.get_one(Job, seq)
        if tick is not None and _job_of_tick(session, target.code, tick) is not None:
            return None
        # Else the id exists: 48 random bits repeat themselves some day.
        job_id = new_job_id()


def follow_up(
    session: Session, old: Job, target: Target, key: str, *, source: str, by: str = "", **more: Any
) -> Job:
    """Insert the job that goes on where `old` stopped: same force, its checkpoint, its chain."""
    job = add_job(
        session,
        target,
        key,
        source=source,
        by=by,
        force=old.force,
        from_page=resume_page(old),
        root_id=old.root_id,
        retry_of=old.id,
        last_completed_page=old.last_completed_page,
        checkpoint=old.checkpoint,
        **more,
    )
    assert job is not None, "a job without a tick is always inserted"
    return job


def resume_page(job: Job) -> int:
    """The first list page that a job going on after `job` fetches."""
    return job.last_completed_page + 1 if job.last_completed_page > 0 else job.from_page


def place_in_line(session: Session, job: Job) -> int:
    """1 for the job that its key runs next, 0 for one that does not wait; counted up to 1,000."""
    if job.status != JobStatus.QUEUED:
        return 0
    ahead: Select[int] = (
        select(literal_column("1", Integer))
        .where(
            Job.rate_key == job.rate_key,
            QUEUED,
            # One comparison of rows, so that the index is read from its start to this job and no further.
            tuple_(Job.retry_at, Job.seq)
            < tuple_(literal(job.retry_at, Job.retry_at.type), literal(job.seq, Job.seq.type)),
        )
        .limit(_COUNTED)
    )
    return 1 + session.scalar(select(func.count()).select_from(ahead.subquery()))  # type: ignore[operator]
