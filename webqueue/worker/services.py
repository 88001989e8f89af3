"""What the runs of a process share: the store of originals, the evidence, and fetchers set up for each run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from webqueue import clock
from webqueue.database import Database
from webqueue.documents import OriginalStore
from webqueue.documents.warc import FOLDER, WarcWriter, require_warcio
from webqueue.errors import InvalidInputError
from webqueue.handlers.fetching import Fetcher
from webqueue.handlers.protocol import Request, Response
from webqueue.politeness.challenges import Signature, signatures_in_force
from webqueue.politeness.evidence import EvidenceLog, RequestLine
from webqueue.politeness.keys import resolve_url
from webqueue.politeness.rate_key import host_of
from webqueue.politeness.robots_store import RobotsStore, RobotsText
from webqueue.sentences import stored
from webqueue.settings import Settings
from webqueue.worker.context import Fetching, RunContext, Services
from webqueue.worker.patience import patiently
from webqueue.worker.robots import DatabaseRobots


def make_services(database: Database, settings: Settings) -> Services:
    """The services of a process with these settings. Opens nothing yet."""
    evidence = EvidenceLog(settings.instance_path)
    if settings.warc:
        require_warcio()

    def make_fetcher(context: RunContext) -> Fetching:
        run = context.run
        site, target = context.site, context.target
        now = _clock_of(database)
        warc = _warc_of(context, settings)
        return _RunFetcher(
            Fetcher(
                site,
                rate_key=context.job.rate_key,
                interval_sec=target.interval_sec,
                last_request_at=run.claimed.last_request_at,
                key_of=_key_of(database, context),
                should_stop=run.should_stop,
                check_lease=run.check_lease,
                evidence=evidence,
                job_id=context.job.id,
                user_agent=settings.crawl_agent,
                allow_private=settings.allow_private_addresses,
                # Whatever the handler does next, a recovery must wait as long as the server asked for.
                on_crawl_delay=context.record_crawl_delay,
                now=now,
                robots_store=_PatientRobots(
                    context, DatabaseRobots(database, now, fresh=context.job.is_trial)
                ),
                challenges=patiently(run, lambda: _challenges(database)),
                keep=None if warc is None else warc.write,
            ),
            warc,
        )

    return Services(
        database=database,
        originals=functools.cache(lambda: OriginalStore(settings.store)),
        make_fetcher=make_fetcher,
    )


class _PatientRobots:
    """The robots.txt files that are kept, also while the database is away for a while; new ones are told in the job's log.

    The first request of a crawl goes to robots.txt, and the next one waits for the interval: without the line it looks as
    if nothing happened, or as if its 404 were that of a page.
    """

    def __init__(self, context: RunContext, store: RobotsStore) -> None:
        self._context = context
        self._run = context.run
        self._store = store

    def get(self, origin: str) -> RobotsText | None:
        return patiently(self._run, lambda: self._store.get(origin))

    def put(self, origin: str, text: RobotsText) -> None:
        patiently(self._run, lambda: self._store.put(origin, text))
        if text.unreachable is None:
            self._context.log(
                stored("robots.txt of %(url)s: there is none; requests keep the interval", url=origin)
                if text.body is None
                else stored("robots.txt of %(url)s: read; requests keep the interval", url=origin)
            )


class _RunFetcher:
    """A fetcher, with its figures in one mapping, and the WARC file that it writes."""

    def __init__(self, fetcher: Fetcher, warc: WarcWriter | None) -> None:
        self._fetcher = fetcher
        self._warc = warc

    @property
    def last_request_at(self) -> datetime | None:
        return self._fetcher.last_request_at

    @property
    def counters(self) -> Mapping[str, Any]:
        statuses = {str(status): count for status, count in sorted(self._fetcher.statuses.copy().items())}
        return {"requests": self._fetcher.requests, "bytes": self._fetcher.bytes, "statuses": statuses}

    @property
    def recent(self) -> Sequence[RequestLine]:
        return self._fetcher.recent

    def fetch(self, request: Request) -> Response:
        return self._fetcher.fetch(request)

    def abort(self) -> None:
        self._fetcher.abort()

    def close(self) -> None:
        self._fetcher.close()
        if self._warc is not None:
            self._warc.close()


def _warc_of(context: RunContext, settings: Settings) -> WarcWriter | None:
    """Where both the installation and the target want it; a trial stores nothing."""
    wanted = settings.warc and getattr(context.params, "warc", False) and not context.job.is_trial
    return (
        WarcWriter(settings.instance_path / FOLDER, context.target.code, clock.local_now) if wanted else None
    )


def _key_of(database: Database, context: RunContext) -> Callable[[str], str]:
    """Which rate key a URL has, seen from a job: the host of its own site has the job's (DESIGN section 6)."""
    try:
        own_host: str | None = host_of(context.site.base_url)
    except InvalidInputError:
        own_host = None

    def resolve(url: str) -> str:
        with database.reading() as session:
            return resolve_url(session, url, context.site.adapter)

    def key_of(url: str) -> str:
        if host_of(url) == own_host:
            return context.job.rate_key
        return patiently(context.run, lambda: resolve(url))

    return key_of


def _challenges(database: Database) -> Sequence[Signature]:
    """Read for each run, so that an edit of the list holds from the next job on."""
    with database.reading() as session:
        return signatures_in_force(session)


def _clock_of(database: Database) -> Callable[[], datetime]:
    """The database's time without asking it for each request: where its server's clock differs, by how much (P10)."""
    if database.is_sqlite:
        return clock.local_now
    with database.reading() as session:
        shift = clock.now(session) - clock.local_now()
    return lambda: clock.local_now() + shift
