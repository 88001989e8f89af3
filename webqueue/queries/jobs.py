"""Jobs, as pages and API show them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Job, JobSource, JobStatus
from webqueue.queries.numbers import LARGEST, is_number, whole
from webqueue.queries.paging import Page, checked_limit, newest_first
from webqueue.queries.runs import QUEUED, RUNNING, seconds_between
from webqueue.queries.waiting import Waiting, waiting_for
from webqueue.sentences import StoredText, say

# Of less than this no pace can be told.
_PACE_SEC: Final = 10.0

S = TypeVar("S", bound=Select[*tuple[Any, ...]])

CANCELLING = "cancelling"
JOB_STATUSES = (*(status.value for status in JobStatus), CANCELLING)
CHAIN_LIMIT = 50
# Numbers are given before their transactions commit, so times and numbers may be this far out of step.
_OUT_OF_STEP = timedelta(minutes=10)


@dataclass(frozen=True)
class Progress:
    """How far a run is; current and total are None where its handler cannot say."""

    current: int | None
    total: int | None
    message: str


@dataclass(frozen=True)
class ChainEnd:
    """The last job of a chain of retries and continuations."""

    id: str
    seq: int
    status: str


@dataclass(frozen=True)
class JobRow:
    """A job in the fields of DESIGN section 8, and some more that pages need.

    Attributes:
        status: the stored one, or `cancelling` (running with a stop requested, P8).
        queued_for_sec: from queueing to the first start (or now, or the end), never negative.
        running_for_sec: of the present or last run; 0.0 is a duration, None means that it never ran.
        waiting: why it is not running, for queued ones where it was asked for.
        retry_of_seq: the number of the job `retry_of`, as pages show it.
        chain_end: what its chain has come to by now, where that is another job.
    """

    id: str
    seq: int
    site: str
    target: str
    rate_key: str
    source: str
    status: str
    attention: str | None
    force: bool
    due_at: datetime
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    queued_for_sec: float
    running_for_sec: float | None
    current_page: int
    last_completed_page: int
    progress: Progress
    attempt_count: int
    cooldown_retry_count: int
    retry_of: str | None
    tick: datetime | None
    error_msg: str | None
    result: dict[str, Any] | None
    waiting: Waiting | None = None
    root_id: str = ""
    created_by: str = ""
    from_page: int = 0
    failure_retry_count: int = 0
    began_at: datetime | None = None
    moved_to_front_at: datetime | None = None
    checkpoint_at: datetime | None = None
    stop_requested_at: datetime | None = None
    stop_requested_by: str | None = None
    leased_by: str | None = None
    counters: dict[str, Any] = field(default_factory=dict)
    retry_of_seq: int | None = None
    chain_end: ChainEnd | None = None

    @property
    def is_final(self) -> bool:
        """Whether the job has its final status."""
        return self.finished_at is not None

    @property
    def left_sec(self) -> float | None:
        """Seconds that the rest takes at the pace so far; None where nobody can say.

        A run that began in the middle has no pace, and a crawl counts the articles of one list page at a time.
        """
        done, total, took = self.progress.current, self.progress.total, self.running_for_sec
        if self.is_final or not done or not total or done > total or took is None or took < _PACE_SEC:
            return None
        return (
            None
            if self.from_page or self.attempt_count or self.current_page
            else took * (total - done) / done
        )

    @property
    def can_cancel(self) -> bool:
        """Whether a cancel would do something."""
        return self.status in {JobStatus.QUEUED, JobStatus.RUNNING}

    @property
    def can_retry(self) -> bool:
        """Only failed and cancelled jobs are retried (DESIGN section 8)."""
        return self.status in {JobStatus.FAILED, JobStatus.CANCELLED}


@dataclass(frozen=True)
class JobFilter:
    """Which jobs a listing shows; None means any.

    Attributes:
        status: a stored status, or `cancelling`; `running` includes cancelling ones.
        since: queued at or after; `until`: queued before.
        finished_since: finished at or after.
        attention: only those that a person should look at.
    """

    status: str | None = None
    site: str | None = None
    target: str | None = None
    rate_key: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    finished_since: datetime | None = None
    attention: bool = False

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in JOB_STATUSES:
            raise InvalidInputError.of(
                "status",
                say(
                    "%(value)s is none of %(known)s.",
                    value=repr(self.status),
                    known=", ".join(JOB_STATUSES),
                ),
            )
        sources = [source.value for source in JobSource]
        if self.source is not None and self.source not in sources:
            raise InvalidInputError.of(
                "source",
                say("%(value)s is none of %(known)s.", value=repr(self.source), known=", ".join(sources)),
            )


def list_jobs(
    session: Session, filters: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50
) -> Page[JobRow]:
    """Jobs, newest first, with the reason why each queued one waits.

    Raises:
        InvalidInputError: `cursor` or `limit`.
    """
    now = clock.now(session)
    statement = filtered_jobs(session, select(Job), filters or JobFilter())
    jobs, older, newer = newest_first(session, statement, Job.seq, cursor=cursor, limit=limit)
    return Page(_rows(session, jobs, now), older, newer)


def list_key_queue(session: Session, rate_key: str, *, limit: int = 50) -> tuple[JobRow, ...]:
    """The queued jobs of a key in the order in which they will run."""
    statement = (
        select(Job)
        .where(Job.rate_key == rate_key, Job.status == QUEUED)
        .order_by(Job.retry_at, Job.seq)
        .limit(checked_limit(limit))
    )
    return _rows(session, session.scalars(statement).all(), clock.now(session))


def running_jobs(session: Session) -> tuple[JobRow, ...]:
    """Every running job, newest first; there are never more than worker threads."""
    jobs = session.scalars(select(Job).where(Job.status == RUNNING).order_by(Job.seq.desc())).all()
    return _rows(session, jobs, clock.now(session))


def get_job(session: Session, name: str) -> JobRow:
    """One job by its id (12 hex) or number (`8123` or `#8123`).

    Raises:
        NotFoundError: there is none.
    """
    job = session.scalars(select(Job).where(Job.id == name)).one_or_none()
    number = whole(name.removeprefix("#"), 1, LARGEST)
    if job is None and number is not None:
        job = session.get(Job, number)
    if job is None:
        raise NotFoundError("job", name)
    return _rows(session, [job], clock.now(session))[0]


def chain(session: Session, root_id: str) -> tuple[JobRow, ...]:
    """The first CHAIN_LIMIT jobs of a chain of retries and continuations, oldest first."""
    jobs = session.scalars(
        select(Job).where(Job.root_id == root_id).order_by(Job.seq).limit(CHAIN_LIMIT)
    ).all()
    return job_rows(session, jobs, clock.now(session))


def filtered_jobs(session: Session, statement: S, filters: JobFilter) -> S:
    """`statement`, which selects from jobs, with the conditions of a filter."""
    equal = {
        Job.site_code: filters.site,
        Job.target_code: filters.target,
        Job.rate_key: filters.rate_key,
        Job.source: filters.source,
    }
    statement = statement.where(*(column == value for column, value in equal.items() if value is not None))
    if filters.status == CANCELLING:
        statement = statement.where(Job.status == RUNNING, Job.stop_requested.is_(True))
    elif filters.status is not None:
        statement = statement.where(Job.status == filters.status)
    if filters.attention:
        statement = statement.where(Job.attention.is_not(None))
    if filters.since is not None:
        first = _first_number_since(session, filters.since - _OUT_OF_STEP)
        statement = statement.where(Job.enqueued_at >= filters.since, Job.seq >= first)
    if filters.until is not None:
        end = _first_number_since(session, filters.until + _OUT_OF_STEP)
        statement = statement.where(Job.enqueued_at < filters.until, Job.seq < end)
    if filters.finished_since is not None:
        statement = statement.where(Job.finished_at >= filters.finished_since)
    return statement


def _first_number_since(session: Session, moment: datetime) -> int:
    """About the first number given at or after `moment`, by halving: numbers and times grow together.

    A listing by number then needs no further index for its times, and does not read what lies outside them.
    """
    low, high = 0, (session.scalar(select(Job.seq).order_by(Job.seq.desc()).limit(1)) or 0) + 1
    while low < high:
        middle = (low + high) // 2
        row = session.execute(
            select(Job.seq, Job.enqueued_at).where(Job.seq >= middle).order_by(Job.seq).limit(1)
        ).one_or_none()
        if row is None or row.enqueued_at >= moment:
            high = middle
        else:
            low = row.seq + 1
    return low


def _rows(session: Session, jobs: Sequence[Job], now: datetime) -> tuple[JobRow, ...]:
    waiting = waiting_for(session, jobs, now)
    return tuple(replace(row, waiting=waiting.get(row.seq)) for row in job_rows(session, jobs, now))


def job_rows(session: Session, jobs: Sequence[Job], now: datetime) -> tuple[JobRow, ...]:
    """Jobs as pages show them, with their places in their chains, but not why they wait."""
    ends = chain_ends(session, {job.root_id for job in jobs})
    before = {job.retry_of for job in jobs if job.retry_of}
    seqs = dict(session.execute(select(Job.id, Job.seq).where(Job.id.in_(before))).all()) if jobs else {}
    rows = []
    for job in jobs:
        end = ends.get(job.root_id)
        rows.append(
            replace(
                _job_row(job, now),
                retry_of_seq=seqs.get(job.retry_of or ""),
                chain_end=None if end is None or end.seq <= job.seq else end,
            )
        )
    return tuple(rows)


def chain_ends(session: Session, roots: Collection[str]) -> dict[str, ChainEnd]:
    """The last job of each of the chains that begin with the jobs `roots` (ids)."""
    if not roots:
        return {}
    last = select(func.max(Job.seq)).where(Job.root_id.in_(roots)).group_by(Job.root_id)
    rows = session.execute(select(Job.root_id, Job.id, Job.seq, Job.status).where(Job.seq.in_(last)))
    return {row.root_id: ChainEnd(row.id, row.seq, row.status) for row in rows}


def _job_row(job: Job, now: datetime) -> JobRow:
    cancelling = job.status == JobStatus.RUNNING and job.stop_requested
    first_start = job.began_at or job.started_at or job.finished_at or now
    return JobRow(
        id=job.id,
        seq=job.seq,
        site=job.site_code,
        target=job.target_code,
        rate_key=job.rate_key,
        source=job.source,
        status=CANCELLING if cancelling else job.status,
        attention=_stored(job.attention),
        force=job.force,
        due_at=job.due_at,
        enqueued_at=job.enqueued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        queued_for_sec=seconds_between(job.enqueued_at, first_start) or 0.0,
        running_for_sec=seconds_between(job.started_at, job.finished_at or now),
        current_page=job.current_page,
        last_completed_page=job.last_completed_page,
        progress=Progress(job.progress_current, job.progress_total, StoredText(job.progress_message)),
        attempt_count=job.attempt_count,
        cooldown_retry_count=job.cooldown_retry_count,
        retry_of=job.retry_of,
        tick=job.tick,
        error_msg=_stored(job.error_msg),
        result=job.result,
        root_id=job.root_id,
        created_by=job.created_by,
        from_page=job.from_page,
        failure_retry_count=job.failure_retry_count,
        began_at=job.began_at,
        moved_to_front_at=job.moved_to_front_at,
        checkpoint_at=job.checkpoint_at,
        stop_requested_at=job.stop_requested_at,
        stop_requested_by=job.stop_requested_by,
        leased_by=job.leased_by,
        counters=job.counters,
    )


def _stored(text: str | None) -> str | None:
    return None if text is None else StoredText(text)


def job_id_of(session: Session, seq: int) -> str:
    """The id of the job with this number, as pages show it (#8123). Raises NotFoundError."""
    job_id = session.scalar(select(Job.id).where(Job.seq == seq)) if is_number(seq) else None
    if job_id is None:
        raise NotFoundError("job", "#" + str(seq))
    return job_id
