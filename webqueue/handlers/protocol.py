"""What a handler is, and the frozen context it gets (DESIGN section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from webqueue import documents
from webqueue.documents import DocumentDraft, Stored, StoredTimes
from webqueue.outcomes import Checkpoint, Outcome

# What a handler stores is what `webqueue.documents` takes.
__all__ = [
    "BlockedError",
    "Context",
    "DocumentDraft",
    "FetchError",
    "Handler",
    "HttpOptions",
    "JobView",
    "Known",
    "MayBeIsolated",
    "Parameters",
    "Request",
    "Response",
    "SiteView",
    "StopRequested",
    "Stored",
    "StoredTimes",
    "TargetView",
]


class Parameters(BaseModel):
    """Base of every handler's parameters; forms and API check against them, unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@runtime_checkable
class MayBeIsolated(Protocol):
    """Parameters of a handler that runs in a process of its own where they say so; any handler may have them."""

    @property
    def isolated(self) -> bool: ...


@dataclass(frozen=True)
class HttpOptions:
    """A site's HTTP settings."""

    user_agent: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: str | None = None
    verify_tls: bool = True
    legacy_tls: bool = False
    timeout_sec: float = 30.0


@dataclass(frozen=True)
class SiteView:
    """The site of a job, as it was when the job started."""

    code: str
    base_url: str
    adapter: str
    timezone: str
    rate_key: str
    obey_robots: bool = True
    http: HttpOptions = field(default_factory=HttpOptions)


@dataclass(frozen=True)
class TargetView:
    """The target of a job, as it was when the job started; `interval_sec` is the one in force (seconds)."""

    code: str
    handler: str
    params: Mapping[str, Any]
    interval_sec: float
    track_checkpoint: bool = True
    max_runtime_sec: int = 14400


@dataclass(frozen=True)
class JobView:
    """The job itself."""

    id: str
    seq: int
    root_id: str
    rate_key: str
    source: str
    force: bool
    from_page: int
    attempt_count: int
    cooldown_retry_count: int

    @property
    def is_trial(self) -> bool:
        """A `try` stores no document."""
        return self.source == "try"


@dataclass(frozen=True)
class Request:
    """One HTTP request.

    Attributes:
        url: absolute URL.
        headers: added to the site's own.
        max_bytes: body size, after decompression, at which the response is refused.
        total_sec: deadline of the whole exchange, from the connection to the last byte.
        is_list_page: a 403 here is a block, on an article it may be one page only.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    max_bytes: int = 20_000_000
    total_sec: float = 120.0
    is_list_page: bool = False


@dataclass(frozen=True)
class Response:
    """The answer to a request, after redirects; `url` is the one that answered. Header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_ms: int


class FetchError(Exception):
    """A request that got no usable answer; the text says what happened at which URL.

    Attributes:
        kind: `network`, `timeout`, `status`, `too_large`, `decoding`, `redirects`, `address`, `url`, `other_key`, `robots`.
        status: HTTP status, where there was one.
    """

    def __init__(self, kind: str, url: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.url = url
        self.status = status


class BlockedError(Exception):
    """The server turned the crawl away (DESIGN section 6); a handler lets it through, or returns `Blocked` for it.

    Attributes:
        reason: what was met.
        url: whose host answered so.
        retry_after: seconds the server asked for, already parsed and capped; None when it did not say.
        rate_key: of that host, where it is not the job's; both keys cool down.
    """

    def __init__(
        self, reason: str, url: str, retry_after: int | None = None, rate_key: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.url = url
        self.retry_after = retry_after
        self.rate_key = rate_key


class StopRequested(Exception):  # noqa: N818 - not an error: the run was asked to stop in the middle of a request
    """The job was asked to stop while a request was under way or was waiting for its turn."""


class Known:
    """What `ctx.known(url)` answers; the constants are the three cases of DESIGN section 6, "Known pages"."""

    NEW: ClassVar[str] = documents.NEW
    KNOWN: ClassVar[str] = documents.KNOWN  # stored before the chain's first job began
    IN_CHAIN: ClassVar[str] = (
        documents.IN_CHAIN
    )  # stored by this chain: not fetched again, does not count as known


class Context(Protocol):
    """What a handler may use. It holds no session and no lease: every write goes through it, fenced."""

    @property
    def params(self) -> Any:
        """The parameters, checked, as the handler's own model."""

    @property
    def job(self) -> JobView: ...
    @property
    def site(self) -> SiteView: ...
    @property
    def target(self) -> TargetView: ...
    @property
    def force(self) -> bool: ...
    @property
    def checkpoint_at_start(self) -> Checkpoint:
        """The checkpoint from which this run resumes; page 0 at a first run."""

    def should_stop(self) -> bool:
        """Whether the job was cancelled, is out of time, lost its lease, or the process is stopping."""

    def known(self, url: str) -> str:
        """One of the constants of `Known`."""

    def known_all(self, urls: Iterable[str]) -> Mapping[str, str]:
        """`known` of many URLs at once."""

    def stored_times(self, urls: Iterable[str]) -> Mapping[str, StoredTimes]:
        """When the documents that have these URLs were stored; what is not stored is left out."""

    def recent_unmet(self, since: datetime, limit: int) -> Sequence[str]:
        """URLs of live documents published, or else stored, since a time, that this chain has not asked for yet."""

    def last_found_at(self) -> datetime | None:
        """When the target's newest document was first stored; None while there is none."""

    def previous_result(self) -> Mapping[str, Any]:
        """The result of the target's last done job that was no trial; empty when there is none."""

    def now(self) -> datetime:
        """The database's time."""

    def validators(self, url: str) -> Mapping[str, str]:
        """`If-None-Match` and `If-Modified-Since` headers of the stored document, empty when there is none."""

    def store(self, document: DocumentDraft) -> Stored:
        """Store a document now; nothing is stored by a trial. Raises LeaseLostError."""

    def seen(self, url: str) -> None:
        """Note that a stored document was found unchanged (HTTP 304)."""

    def missing(self, url: str) -> bool:
        """Note that a stored document's page answered 404 or 410; the second time in a row marks it gone.

        Returns:
            Whether it is gone now.
        """

    def fetch(self, request: Request) -> Response:
        """Send one request, when it is this key's turn.

        Checks the lease deadline, waits for the interval since the key's last request (P11), obeys robots.txt where
        the site says so, follows redirects within the key's hosts, retries three times on connection errors, time-outs
        and 5xx other than 503, and writes one line of evidence each.

        Raises:
            FetchError: no usable answer; statuses 4xx that are no block are returned, not raised.
            BlockedError: 429, 503, 412 or 521; 403 for a list page or three times in a row; a connection refused or
                reset three times; a challenge page.
            StopRequested: a stop was requested meanwhile.
            LeaseLostError: the lease ended.
        """

    def progress(self, current: int | None = None, total: int | None = None, message: str = "") -> None:
        """Show how far the run is."""

    def page(self, number: int) -> None:
        """Show which list page is being worked on (`current_page`)."""

    def checkpoint(self, page: int, data: Mapping[str, Any] | None = None) -> None:
        """Commit that list page `page` is completed. Raises LeaseLostError."""

    def keep_page(self, name: str, body: bytes) -> str:
        """Keep a copy of a page for the operator to look at; returns its name in the store."""

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to the job's log; a message with line ends becomes several.

        Control characters but tab are made harmless, and a message of more than 10,000 characters or 100 lines is cut.

        Args:
            message: for a person.
            level: debug, info, warning or error.
        """


@runtime_checkable
class RunsPrograms(Protocol):
    """What a context has for a handler whose requests are made by others, unseen."""

    def check_lease(self) -> None:
        """Raises LeaseLostError once the lease's deadline has passed: whatever makes requests has to end at once (P1)."""

    def started(self, group: int) -> None:
        """Note the process group of the run: it can be killed, by a Force stop and by whoever finds its worker dead."""

    def forced(self) -> bool:
        """Whether an operator does not wait any longer: the group has to be killed now."""

    def requested(self) -> None:
        """Note that a request may have been made right now: the next one to the key keeps its distance (P11)."""


class Handler(Protocol):
    """The code that runs one kind of target."""

    kind: ClassVar[str]
    parameters: ClassVar[type[Parameters]]

    def run(self, ctx: Context) -> Outcome:
        """Do the work. Returned outcomes are the rule, an exception is a surprise and fails the job."""
