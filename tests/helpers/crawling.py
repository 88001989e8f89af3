"""Runs a crawl without a worker: real HTTP and real documents, but no queue, no lease and no spacing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from webqueue import documents
from webqueue.database import Database
from webqueue.handlers import registry
from webqueue.handlers.protocol import (
    BlockedError,
    DocumentDraft,
    FetchError,
    JobView,
    Request,
    Response,
    SiteView,
    Stored,
    StoredTimes,
    TargetView,
)
from webqueue.models import Site, Target
from webqueue.outcomes import Checkpoint, Done, Outcome

TARGET = "harbour_news"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def add_target(database: Database, code: str = TARGET) -> None:
    """A site and a target, as rows; documents belong to one."""
    with database.transaction() as session:
        session.add(
            Site(
                code=f"site_of_{code}",
                name="Harbour",
                base_url="http://127.0.0.1/",
                host="127.0.0.1",
                adapter="list",
                created_at=BEGINNING,
                changed_at=BEGINNING,
            )
        )
        session.flush()
        session.add(
            Target(
                code=code,
                site_code=f"site_of_{code}",
                handler="crawl",
                created_at=BEGINNING,
                changed_at=BEGINNING,
            )
        )


class Clock:
    """A clock that goes on by a second each time it is read."""

    def __init__(self) -> None:
        self._now = BEGINNING

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


@dataclass
class CrawlBench:
    """Runs a target's jobs one after the other.

    Attributes:
        database: with the target.
        base_url: of the site.
        params: of the target, as they would be written.
        previous_result: of the last done job; `run` keeps it up.
    """

    database: Database
    base_url: str
    params: Mapping[str, Any]
    handler: str = "crawl"
    adapter: str = "list"
    track_checkpoint: bool = True
    clock: Clock = field(default_factory=Clock)
    previous_result: Mapping[str, Any] = field(default_factory=dict)

    def context(
        self,
        *,
        force: bool = False,
        from_page: int = 0,
        source: str = "manual",
        checkpoint: Checkpoint | None = None,
        chain: BenchContext | None = None,
        stop_when: Callable[[BenchContext], bool] = lambda _: False,
    ) -> BenchContext:
        """The context of a job; with `chain` it continues that job's chain."""
        job_id = secrets.token_hex(6)
        job = JobView(
            id=job_id,
            seq=1,
            root_id=chain.job.root_id if chain else job_id,
            rate_key="127.0.0.1",
            source=source,
            force=force,
            from_page=from_page,
            attempt_count=0,
            cooldown_retry_count=0,
        )
        began_at = chain.began_at if chain else self.clock()
        return BenchContext(self, job, began_at, checkpoint or Checkpoint(), stop_when)

    def run(self, **of_the_job: Any) -> tuple[Outcome, BenchContext]:
        """Run one job; its outcome, and the context that it had."""
        context = self.context(**of_the_job)
        outcome = registry.get(self.handler).run(context)
        if isinstance(outcome, Done) and not context.job.is_trial:
            self.previous_result = json.loads(json.dumps(outcome.result))
        return outcome, context

    def known(self, url: str, context: BenchContext) -> str:
        """What `ctx.known` says to a job."""
        return context.known(urljoin(self.base_url, url))


class BenchContext:
    """The `Context` of one job of a `CrawlBench`; what the handler told it is kept in lists."""

    def __init__(
        self,
        bench: CrawlBench,
        job: JobView,
        began_at: datetime,
        checkpoint: Checkpoint,
        stop_when: Callable[[BenchContext], bool],
    ) -> None:
        self._bench = bench
        self._stop_when = stop_when
        self._documents = {"target_code": TARGET, "job_id": job.id, "root_id": job.root_id}
        self.began_at = began_at
        self.job = job
        self.force = job.force
        self.checkpoint_at_start = checkpoint
        self.site = SiteView(
            f"site_of_{TARGET}", bench.base_url, bench.adapter, "Asia/Shanghai", job.rate_key
        )
        self.target = TargetView(TARGET, bench.handler, bench.params, 0.0, bench.track_checkpoint)
        self.params = registry.check_params(bench.handler, bench.params, adapter=bench.adapter)
        self.fetched: list[str] = []
        self.pages: list[int] = []
        self.checkpoints: list[Checkpoint] = []
        self.messages: list[str] = []
        self.progress_seen: list[tuple[int | None, int | None, str]] = []
        self.kept: dict[str, bytes] = {}
        self.asked: list[Request] = []
        self.originals: dict[str, bytes] = {}

    def should_stop(self) -> bool:
        return self._stop_when(self)

    def known(self, url: str) -> str:
        return self.known_all([url])[url]

    def known_all(self, urls: Iterable[str]) -> Mapping[str, str]:
        with self._bench.database.reading() as session:
            return documents.known(
                session, TARGET, urls, root_id=self.job.root_id, chain_began_at=self.began_at
            )

    def stored_times(self, urls: Iterable[str]) -> Mapping[str, StoredTimes]:
        with self._bench.database.reading() as session:
            return documents.times(session, TARGET, urls)

    def previous_result(self) -> Mapping[str, Any]:
        return self._bench.previous_result

    def now(self) -> datetime:
        return self._bench.clock()

    def validators(self, url: str) -> Mapping[str, str]:
        with self._bench.database.reading() as session:
            return documents.validators(session, TARGET, url)

    def store(self, document: DocumentDraft) -> Stored:
        assert not self.job.is_trial, "a trial stores nothing"
        if document.original is not None:
            self.originals[document.url] = document.original
        with self._bench.database.transaction() as session:
            return documents.store(session, document, **self._documents, now=self._bench.clock())

    def seen(self, url: str) -> None:
        with self._bench.database.transaction() as session:
            assert documents.seen(session, url=url, **self._documents, now=self._bench.clock())

    def missing(self, url: str) -> bool:
        with self._bench.database.transaction() as session:
            root, now = self.job.root_id, self._bench.clock()
            state = documents.mark_missing(session, target_code=TARGET, url=url, root_id=root, now=now)
        return state == documents.GONE

    def recent_unmet(self, since: datetime, limit: int) -> Sequence[str]:
        with self._bench.database.reading() as session:
            return documents.recent_unmet(session, TARGET, since=since, root_id=self.job.root_id, limit=limit)

    def last_found_at(self) -> datetime | None:
        with self._bench.database.reading() as session:
            return documents.last_found_at(session, TARGET)

    def fetch(self, request: Request) -> Response:
        if urlsplit(request.url).hostname != "127.0.0.1":
            raise FetchError("other_key", request.url, f"{request.url} has another rate key")
        self.asked.append(request)
        self.fetched.append(urlsplit(request.url).path)
        try:
            with httpx2.Client(transport=httpx2.HTTPTransport(verify=False), trust_env=False) as client:
                answer = client.request(
                    request.method,
                    request.url,
                    headers=dict(request.headers),
                    timeout=5,
                    follow_redirects=True,
                )
        except httpx2.TimeoutException as error:
            raise FetchError("timeout", request.url, f"{request.url}: {error}") from None
        except httpx2.TransportError as error:
            raise FetchError("network", request.url, f"{request.url}: {error}") from None
        if answer.status_code in {429, 503}:
            after = answer.headers.get("retry-after")
            raise BlockedError(f"HTTP {answer.status_code}", request.url, int(after) if after else None)
        if len(answer.content) > request.max_bytes:
            raise FetchError(
                "too_large", request.url, f"{request.url} is larger than {request.max_bytes} bytes"
            )
        if answer.status_code >= 500:
            raise FetchError(
                "status", request.url, f"HTTP {answer.status_code} from {request.url}", answer.status_code
            )
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(str(answer.url), answer.status_code, headers, answer.content, 1)

    def progress(self, current: int | None = None, total: int | None = None, message: str = "") -> None:
        self.progress_seen.append((current, total, message))

    def page(self, number: int) -> None:
        self.pages.append(number)

    def checkpoint(self, page: int, data: Mapping[str, Any] | None = None) -> None:
        self.checkpoints.append(Checkpoint(page, data or {}))

    def keep_page(self, name: str, body: bytes) -> str:
        self.kept[name] = body
        return f"kept/{name}"

    def log(self, message: str, level: str = "info") -> None:
        self.messages.append(f"{level}: {message}")
