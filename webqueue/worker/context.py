"""The context that a handler gets: frozen views, and verbs that write through the run's lease (DESIGN section 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from sqlalchemy.orm import Session

from webqueue import clock, documents, jobs, logs
from webqueue.database import Database
from webqueue.database.sockets import FOLDER
from webqueue.handlers.json_safe import json_safe_dict
from webqueue.handlers.protocol import (
    DocumentDraft,
    HttpOptions,
    JobView,
    Request,
    Response,
    SiteView,
    StopRequested,
    Stored,
    StoredTimes,
    TargetView,
)
from webqueue.outcomes import Checkpoint
from webqueue.politeness.evidence import RequestLine, as_shown
from webqueue.politeness.reactions import current_interval
from webqueue.sentences import stored
from webqueue.worker.groups import GroupRecord
from webqueue.worker.memory import last_result
from webqueue.worker.patience import patiently
from webqueue.worker.reporting import Reporter
from webqueue.worker.runs import Run

log = logs.get(__name__)
T = TypeVar("T")


class Fetching(Protocol):
    """What a context needs of a fetcher."""

    @property
    def last_request_at(self) -> datetime | None: ...
    @property
    def counters(self) -> Mapping[str, Any]: ...
    @property
    def recent(self) -> Sequence[RequestLine]: ...
    def fetch(self, request: Request) -> Response: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Services:
    """What the runs of a process share.

    Attributes:
        originals: the store of originals and kept pages, opened at its first use.
        make_fetcher: the fetcher of a run, made at its first request.
    """

    database: Database
    originals: Callable[[], documents.OriginalStore]
    make_fetcher: Callable[[RunContext], Fetching]


class RunContext:
    """Implements `webqueue.handlers.protocol.Context` for one run.

    Args:
        run: the run; its stop and its lease rule everything here.
        services: what the process lends.
    """

    def __init__(self, run: Run, services: Services) -> None:
        claimed = run.claimed
        self.run = run
        self.params: Any = None
        self.job = job_view(claimed)
        self.site = site_view(claimed)
        self.target = target_view(claimed)
        self.force = claimed.job.force
        self.checkpoint_at_start = Checkpoint(
            claimed.job.last_completed_page, dict(claimed.job.checkpoint or {})
        )
        self._services = services
        self._database = services.database
        self._fetcher: Fetching | None = None
        self._requested_at: datetime | None = None
        self._group: GroupRecord | None = None
        self._stored: Counter[str] = Counter()
        self._reporter = Reporter(services.database, run.lease, counters=self._counters)
        run.use(abort=self._abort, flush=self._reporter.flush)

    @property
    def last_request_at(self) -> datetime | None:
        """End of the run's last request; None when it made none."""
        times = (self._requested_at, None if self._fetcher is None else self._fetcher.last_request_at)
        return max((time for time in times if time is not None), default=None)

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The run's last responses, oldest first, as a cooldown keeps them."""
        return [] if self._fetcher is None else [as_shown(line) for line in self._fetcher.recent]

    def should_stop(self) -> bool:
        return self.run.should_stop()

    def check_lease(self) -> None:
        self.run.check_lease()

    def started(self, group: int) -> None:
        run = self.run
        run.isolated = True
        folder = self._database.instance_path / FOLDER
        self._group = patiently(run, lambda: GroupRecord(folder, run.lease.worker_id, group))
        self._write(lambda session: jobs.note_process_group(session, run.lease, group))

    def forced(self) -> bool:
        return self.run.forced

    def requested(self) -> None:
        try:
            self._requested_at = self.now()
        except StopRequested:
            # The database is away, and the run has to stop: the clock of this machine is better than no distance.
            self._requested_at = clock.local_now()

    def known(self, url: str) -> str:
        return self.known_all([url])[url]

    def known_all(self, urls: Iterable[str]) -> Mapping[str, str]:
        asked = list(urls)
        return self._read(
            lambda session: documents.known(
                session,
                self.target.code,
                asked,
                root_id=self.job.root_id,
                chain_began_at=self.run.claimed.chain_began_at,
            )
        )

    def stored_times(self, urls: Iterable[str]) -> Mapping[str, StoredTimes]:
        asked = list(urls)
        return self._read(lambda session: documents.times(session, self.target.code, asked))

    def recent_unmet(self, since: datetime, limit: int) -> Sequence[str]:
        return self._read(
            lambda session: documents.recent_unmet(
                session, self.target.code, since=since, root_id=self.job.root_id, limit=limit
            )
        )

    def last_found_at(self) -> datetime | None:
        return self._read(lambda session: documents.last_found_at(session, self.target.code))

    def previous_result(self) -> Mapping[str, Any]:
        return self._read(lambda session: last_result(session, self.target.code))

    def now(self) -> datetime:
        return self._read(clock.now)

    def validators(self, url: str) -> Mapping[str, str]:
        return self._read(lambda session: documents.validators(session, self.target.code, url))

    def store(self, document: DocumentDraft) -> Stored:
        if self.job.is_trial:
            return Stored(documents.NEW, None)
        original = None
        if document.original is not None:
            # Before the transaction: a file that nothing points to costs room, one that is missing costs the page.
            original = self._put(document.original)
        stored = self._fenced(
            lambda session: documents.store(session, document, original=original, **self._stamp(session))
        )
        self._stored[stored.what] += 1
        return stored

    def seen(self, url: str) -> None:
        if not self.job.is_trial:
            self._fenced(lambda session: documents.seen(session, url=url, **self._stamp(session)))
            self._stored["not_modified"] += 1

    def missing(self, url: str) -> bool:
        if self.job.is_trial:
            return False
        state = self._fenced(
            lambda session: documents.mark_missing(
                session,
                target_code=self.target.code,
                url=url,
                root_id=self.job.root_id,
                now=clock.now(session),
            )
        )
        return state == documents.GONE

    def fetch(self, request: Request) -> Response:
        self.run.check_lease()
        if self._fetcher is None:
            self._fetcher = patiently(self.run, lambda: self._services.make_fetcher(self))
            if self.run.aborted:
                self._fetcher.abort()
        return self._fetcher.fetch(request)

    def progress(self, current: int | None = None, total: int | None = None, message: str = "") -> None:
        self._reporter.progress(current=current, total=total, message=message or None)

    def page(self, number: int) -> None:
        self._reporter.progress(current_page=number)

    def checkpoint(self, page: int, data: Mapping[str, Any] | None = None) -> None:
        storable = json_safe_dict(data or {})
        patiently(
            self.run,
            lambda: self._reporter.flush(
                lambda session: jobs.checkpoint(session, self.run.lease, page, storable)
            ),
        )

    def keep_page(self, name: str, body: bytes) -> str:
        key = self._put(body)
        self.log(stored("kept a copy of %(name)s as %(copy)s", name=name, copy=key))
        return key

    def log(self, message: str, level: str = "info") -> None:
        self._reporter.log(message, level)

    def record_crawl_delay(self, seconds: float) -> None:
        """Note the interval in force, now that robots.txt asks for another one (P11)."""
        if seconds > self.target.interval_sec:
            self._write(lambda session: jobs.record_interval(session, self.run.lease, seconds))

    def flush(self) -> None:
        """Write the progress and the log lines that are still kept. Raises LeaseLostError."""
        self._reporter.flush()

    def close(self) -> None:
        """Close the connections of the run; its process group, if it had one, has ended."""
        if self._group is not None:
            self._group.forget()
        if self._fetcher is not None:
            self._fetcher.close()

    def _abort(self) -> None:
        if self._fetcher is not None:
            self._fetcher.abort()

    def _counters(self) -> Mapping[str, Any]:
        counters: dict[str, Any] = {name: count for name, count in self._stored.copy().items() if count}
        fetcher = self._fetcher
        if fetcher is not None:
            # A thread may count on while another one copies.
            with suppress(RuntimeError):
                counters |= json_safe_dict(fetcher.counters)
        return counters

    def _stamp(self, session: Session) -> dict[str, Any]:
        return {
            "target_code": self.target.code,
            "job_id": self.job.id,
            "root_id": self.job.root_id,
            "now": clock.now(session),
        }

    def _fenced(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction that first makes sure, by a lock, that the job is still this run's (P4)."""

        def fenced(session: Session) -> T:
            jobs.fence(session, self.run.lease)
            return work(session)

        return self._write(fenced)

    def _read(self, work: Callable[[Session], T]) -> T:
        def read() -> T:
            with self._database.reading() as session:
                return work(session)

        return patiently(self.run, read)

    def _write(self, work: Callable[[Session], T]) -> T:
        return patiently(self.run, lambda: self._database.run(work))

    def _put(self, body: bytes) -> str:
        return patiently(self.run, lambda: self._services.originals().put(body))


def job_view(claimed: jobs.Claimed) -> JobView:
    """The job, as it was when it was claimed."""
    job = claimed.job
    return JobView(
        id=job.id,
        seq=job.seq,
        root_id=job.root_id,
        rate_key=job.rate_key,
        source=job.source,
        force=job.force,
        from_page=job.from_page,
        attempt_count=job.attempt_count,
        cooldown_retry_count=job.cooldown_retry_count,
    )


def site_view(claimed: jobs.Claimed) -> SiteView:
    """The site, as it was when the job was claimed; `rate_key` is the job's."""
    site = claimed.site
    options = {name: value for name, value in (site.http or {}).items() if value is not None}
    known_options = {name: options[name] for name in HttpOptions.__dataclass_fields__ if name in options}
    return SiteView(
        code=site.code,
        base_url=site.base_url,
        adapter=site.adapter,
        timezone=site.timezone,
        rate_key=claimed.job.rate_key,
        obey_robots=site.obey_robots,
        http=HttpOptions(**known_options),
    )


def target_view(claimed: jobs.Claimed) -> TargetView:
    """The target, as it was when the job was claimed, with the interval in force."""
    target = claimed.target
    return TargetView(
        code=target.code,
        handler=target.handler,
        params=dict(target.params),
        interval_sec=current_interval(target),
        track_checkpoint=target.track_checkpoint,
        max_runtime_sec=target.max_runtime_sec,
    )
