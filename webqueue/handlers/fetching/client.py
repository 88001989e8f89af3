"""The fetcher of one job: everything between `ctx.fetch` and the network."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from datetime import datetime

import httpx2

from webqueue import clock
from webqueue.handlers.fetching.addresses import Resolver, is_address, system_resolver, why_refused
from webqueue.handlers.fetching.exchange import BLOCKS, Answer, Exchange
from webqueue.handlers.fetching.failures import Failure, failure_of
from webqueue.handlers.fetching.headers import headers_for, user_agent_of
from webqueue.handlers.fetching.hops import IDEMPOTENT, MAX_REDIRECTS, Hop, parse_url, redirected
from webqueue.handlers.fetching.interruption import Interruption
from webqueue.handlers.fetching.robots import RobotsGate, Rules
from webqueue.handlers.fetching.transport import make_transport
from webqueue.handlers.fetching.turns import Turns
from webqueue.handlers.protocol import (
    BlockedError,
    FetchError,
    Request,
    Response,
    SiteView,
    StopRequested,
)
from webqueue.politeness.evidence import EvidenceLog, RequestLine, masked_url
from webqueue.politeness.interval import interval_in_force
from webqueue.politeness.retry_after import parse_retry_after

TRIES = 3
BACKOFF_SEC = 1.0


class Fetcher:
    """Sends the requests of one job, one at a time, in the turns of its rate key (DESIGN §6, P11).

    `fetch` is for the job's thread (others wait for it); `abort` for any. Cookies live as long as the fetcher.

    With a proxy the name is looked up by the proxy, so the check of private addresses reaches only hosts given as
    addresses; the proxy itself may lie anywhere, since an administrator configured it.

    Args:
        site: whose HTTP settings hold.
        rate_key: the job's; URLs of other keys are refused.
        interval_sec: seconds between the end of a request and the start of the next.
        last_request_at: end of the key's last request before this job.
        key_of: the rate key of a URL.
        should_stop: whether the job was asked to stop.
        check_lease: raises LeaseLostError once the lease's deadline has passed.
        evidence: where each request is written down.
        job_id: for the evidence.
        user_agent: where the site names none.
        allow_private: whether loopback and private addresses may be reached.
        on_crawl_delay: gets each Crawl-delay met (seconds, at most 300).
        resolve: looks names up.
        now: the clock of `last_request_at` and of Retry-After dates.
        backoff_sec: wait before the second try; twice as long before the third.
        robots_cache: rules by origin, where they shall outlive the job.

    Attributes:
        requests: sent, robots.txt, redirects and retries included.
        bytes: of bodies, as they came over the wire.
        statuses: how often each HTTP status came.

    Raises:
        FetchError: of kind `url`, when the site's proxy cannot be used.
    """

    def __init__(
        self,
        site: SiteView,
        *,
        rate_key: str,
        interval_sec: float,
        last_request_at: datetime | None,
        key_of: Callable[[str], str],
        should_stop: Callable[[], bool],
        check_lease: Callable[[], None],
        evidence: EvidenceLog,
        job_id: str,
        user_agent: str,
        allow_private: bool,
        on_crawl_delay: Callable[[float], None],
        resolve: Resolver = system_resolver,
        now: Callable[[], datetime] = clock.local_now,
        backoff_sec: float = BACKOFF_SEC,
        robots_cache: MutableMapping[str, Rules] | None = None,
    ) -> None:
        self.requests = 0
        self.bytes = 0
        self.statuses: Counter[int] = Counter()
        self._site = site
        self._rate_key = rate_key
        self._key_of = key_of
        self._check_lease = check_lease
        self._evidence = evidence
        self._job_id = job_id
        self._allow_private = allow_private
        self._report_crawl_delay = on_crawl_delay
        self._now = now
        self._backoff_sec = backoff_sec
        self._user_agent = user_agent_of(site, user_agent)
        self._one_at_a_time = threading.RLock()
        self._interruption = Interruption(should_stop)
        try:
            transport = make_transport(site.http, self._interruption, resolve, allow_private=allow_private)
        except ValueError as error:
            self._interruption.close()
            raise FetchError("url", site.base_url, f"Site {site.code}: {error}") from error
        self._client = httpx2.Client(transport=transport, trust_env=False, follow_redirects=False)
        self._turns = Turns(
            self._interruption,
            check_lease,
            interval_sec=interval_sec,
            last_request_at=last_request_at,
            now=now,
        )
        self._robots = RobotsGate(
            agent=self._user_agent,
            site=site.code,
            get=self._answer,
            check_key=self._check_key,
            on_crawl_delay=self._slow_down,
            cache=robots_cache,
        )

    @property
    def last_request_at(self) -> datetime | None:
        """End of the key's last request of any kind."""
        return self._turns.last_request_at

    @property
    def interval_in_force(self) -> float:
        """Seconds between two requests, the Crawl-delays met so far included."""
        return self._turns.interval_sec

    def fetch(self, request: Request) -> Response:
        """Get the answer to a request, after redirects; statuses of 400 and above but 429 and 5xx are answers too.

        Raises:
            FetchError: no usable answer. For the kind `other_key` its `url` is the one that was not fetched.
            BlockedError: 429 or 503, from whichever host; `url` names it.
            StopRequested: a stop was requested meanwhile.
            LeaseLostError: the lease ended; no request was begun after that.
        """
        with self._one_at_a_time:
            try:
                return self._fetch(request)
            except StopRequested:
                self._check_lease()  # a lost lease is the truer reason
                raise

    def abort(self) -> None:
        """End the request under way and every later one, at once; from any thread."""
        self._interruption.abort()

    def close(self) -> None:
        """Close the connections; not while `fetch` runs."""
        with self._one_at_a_time:
            self._client.close()
            self._interruption.close()

    def _fetch(self, request: Request) -> Response:
        url = parse_url(request.url)
        hop = Hop(
            method=request.method.upper(),
            url=url,
            headers=request.headers,
            body=request.body,
            origin=url,
            max_bytes=request.max_bytes,
            total_sec=request.total_sec,
        )
        seen = set()
        for _ in range(MAX_REDIRECTS + 1):
            self._check_key(hop.url)
            if self._site.obey_robots:
                self._robots.check(hop)
            # With the cookies: some servers set one and send the client to the same URL once more.
            seen.add((hop.method, hop.url, self._cookies()))
            answer = self._answer(hop)
            if answer.location is None:
                return _response(answer)
            following = redirected(hop, answer.status, answer.location)
            if (following.method, following.url, self._cookies()) in seen:
                raise FetchError(
                    "redirects",
                    str(hop.url),
                    f"{hop.shown} redirects (HTTP {answer.status}) back to {following.shown}, in a circle.",
                    answer.status,
                )
            hop = following
        raise FetchError(
            "redirects", request.url, f"{hop.shown} was reached by more than {MAX_REDIRECTS} redirects."
        )

    def _cookies(self) -> tuple[tuple[str, str, str, str | None], ...]:
        return tuple(
            (cookie.domain, cookie.path, cookie.name, cookie.value) for cookie in self._client.cookies.jar
        )

    def _check_key(self, url: httpx2.URL) -> None:
        key = self._key_of(str(url))
        if key != self._rate_key:
            raise FetchError(
                "other_key",
                str(url),
                f"{masked_url(str(url))} belongs to rate key {key}, and this job runs in "
                f"{self._rate_key}: it was not fetched. Give both sites the same rate key if one server is behind them.",
            )

    def _answer(self, hop: Hop) -> Answer:
        """The answer to one hop, in up to three tries."""
        tried = 0
        while True:
            tried += 1
            # The backoff counts from the end of the try before, and never makes an interval shorter.
            wait = 0.0 if tried == 1 else self._backoff_sec * 2 ** (tried - 2)
            outcome = self._try(hop, at_least_sec=wait)
            if isinstance(outcome, Answer) and outcome.status < 500:
                return outcome
            failure = _server_error(hop, outcome.status) if isinstance(outcome, Answer) else outcome
            repeatable = hop.method in IDEMPOTENT or not failure.sent  # RFC 9110 §9.2.2
            if tried == TRIES or not failure.again or not repeatable:
                status = outcome.status if isinstance(outcome, Answer) else None
                raise FetchError(failure.kind, str(hop.url), _told(hop, failure, tried), status)

    def _try(self, hop: Hop, *, at_least_sec: float) -> Answer | Failure:
        """Wait for the turn, send, and write the evidence.

        Raises:
            BlockedError, StopRequested, LeaseLostError: as `fetch`.
        """
        self._refuse_private_literal(hop)
        self._turns.take(at_least_sec)
        exchange = Exchange(self._client, hop, self._interruption)
        began, at = time.monotonic(), self._now()
        error: str | None = "interrupted"
        try:
            answer = exchange.run(headers_for(hop, self._site, self._user_agent), self._site.http.timeout_sec)
        except StopRequested:
            error = "stopped"
            raise
        except Exception as raised:
            failure = failure_of(raised, hop, self._site.http.timeout_sec)
            error = failure.kind if failure else type(raised).__name__
            if failure is None:
                raise
            return failure
        else:
            error = None
        finally:
            self._turns.end()
            self._count(exchange, hop, at=at, ms=(time.monotonic() - began) * 1000, error=error)
        if answer.status in BLOCKS:
            raise BlockedError(
                f"HTTP {answer.status} from {hop.host}",
                str(hop.url),
                parse_retry_after(answer.headers.get("retry-after"), self._now()),
            )
        return answer

    def _count(self, exchange: Exchange, hop: Hop, *, at: datetime, ms: float, error: str | None) -> None:
        self.requests += 1
        self.bytes += exchange.wire_bytes
        if exchange.status is not None:
            self.statuses[exchange.status] += 1
        allowed = "allowed" if self._site.obey_robots else "off"
        self._evidence.append(
            RequestLine(
                at=at,
                key=self._rate_key,
                host=hop.host,
                method=hop.method,
                url=str(hop.url),
                status=exchange.status,
                error=error,
                bytes=exchange.wire_bytes,
                ms=round(ms, 3),
                job=self._job_id,
                robots="file" if hop.is_robots_file else allowed,
            )
        )

    def _refuse_private_literal(self, hop: Hop) -> None:
        """Behind a proxy nothing of ours connects to the target; what can be seen in the URL is refused all the same."""
        if self._site.http.proxy is None or self._allow_private:
            return
        host = hop.host
        is_local = host == "localhost" or host.endswith(".localhost")
        if not is_local and not is_address(host):
            return
        reason = "this machine" if is_local else why_refused(host)
        if reason is not None:
            raise FetchError("address", str(hop.url), f"{hop.shown}: {host} is {reason}.")

    def _slow_down(self, crawl_delay: float) -> None:
        self._turns.interval_sec = interval_in_force(self._turns.interval_sec, None, crawl_delay)
        self._report_crawl_delay(crawl_delay)


def _server_error(hop: Hop, status: int) -> Failure:
    return Failure(
        "status",
        f"HTTP {status} from {hop.host}",
        "The server itself failed; nothing is wrong with the target as far as this tells.",
        again=True,
    )


def _told(hop: Hop, failure: Failure, tried: int) -> str:
    times = f" ({tried} tries)" if tried > 1 else ""
    return f"{hop.shown}: {failure.text}{times}. {failure.advice}".rstrip()


def _response(answer: Answer) -> Response:
    return Response(
        url=str(answer.url),
        status=answer.status,
        headers=dict(answer.headers),
        body=answer.body,
        elapsed_ms=answer.elapsed_ms,
    )
