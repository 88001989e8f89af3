"""The fetcher of one job: everything between `ctx.fetch` and the network."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

import httpx2

from webqueue import clock
from webqueue.documents.warc import Exchanged
from webqueue.handlers.fetching.addresses import Resolver, system_resolver
from webqueue.handlers.fetching.blocks import BlockWatch
from webqueue.handlers.fetching.exchange import Answer
from webqueue.handlers.fetching.headers import user_agent_of
from webqueue.handlers.fetching.hops import MAX_REDIRECTS, Hop, parse_url, redirected
from webqueue.handlers.fetching.interruption import Interruption
from webqueue.handlers.fetching.robots import RobotsGate
from webqueue.handlers.fetching.sender import BACKOFF_SEC, Sender
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
from webqueue.politeness.challenges import DEFAULT_SIGNATURES, Signature
from webqueue.politeness.evidence import EvidenceLog, RequestLine, masked_url
from webqueue.politeness.interval import interval_in_force
from webqueue.politeness.robots_store import RobotsStore
from webqueue.sentences import stored


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
        robots_store: where robots.txt files outlive the job.
        challenges: how challenge pages are told apart.
        keep: gets what went over the wire for each page that was read.

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
        robots_store: RobotsStore | None = None,
        challenges: Sequence[Signature] = DEFAULT_SIGNATURES,
        keep: Callable[[Exchanged], None] | None = None,
    ) -> None:
        self._site = site
        self._rate_key = rate_key
        self._key_of = key_of
        self._check_lease = check_lease
        self._report_crawl_delay = on_crawl_delay
        self._one_at_a_time = threading.RLock()
        self._interruption = Interruption(should_stop)
        try:
            transport = make_transport(site.http, self._interruption, resolve, allow_private=allow_private)
        except ValueError as error:
            self._interruption.close()
            raise FetchError(
                "url", site.base_url, stored("Site %(code)s: %(why)s", code=site.code, why=str(error))
            ) from error
        self._client = httpx2.Client(transport=transport, trust_env=False, follow_redirects=False)
        self._turns = Turns(
            self._interruption,
            check_lease,
            interval_sec=interval_sec,
            last_request_at=last_request_at,
            now=now,
        )
        agent = user_agent_of(site, user_agent)
        self._sender = Sender(
            self._client,
            self._interruption,
            self._turns,
            BlockWatch(challenges, refusals_count=site.http.proxy is None),
            site=site,
            user_agent=agent,
            rate_key=rate_key,
            job_id=job_id,
            evidence=evidence,
            allow_private=allow_private,
            now=now,
            backoff_sec=backoff_sec,
            keep=keep,
        )
        self._robots = RobotsGate(
            agent=agent,
            site=site.code,
            get=self._sender.answer,
            check_key=self._check_key,
            on_crawl_delay=self._slow_down,
            store=robots_store,
        )

    @property
    def requests(self) -> int:
        """How many were sent, robots.txt, redirects and retries included."""
        return self._sender.requests

    @property
    def bytes(self) -> int:
        """Of all bodies, as they came over the wire."""
        return self._sender.bytes

    @property
    def statuses(self) -> Counter[int]:
        """How often each HTTP status came."""
        return self._sender.statuses

    @property
    def recent(self) -> Sequence[RequestLine]:
        """The last 20 requests, oldest first."""
        return tuple(self._sender.recent)

    @property
    def last_request_at(self) -> datetime | None:
        """End of the key's last request of any kind."""
        return self._turns.last_request_at

    @property
    def interval_in_force(self) -> float:
        """Seconds between two requests, the Crawl-delays met so far included."""
        return self._turns.interval_sec

    def fetch(self, request: Request) -> Response:
        """Get the answer to a request, after redirects; statuses of 400 and above that are no block and no 5xx are
        answers too.

        Raises:
            FetchError: no usable answer. For the kind `other_key` its `url` is the one that was not fetched.
            BlockedError: a block (see `blocks`), from whichever host; `url` names it, `rate_key` where it has another.
            StopRequested: a stop was requested meanwhile.
            LeaseLostError: the lease ended; no request was begun after that.
        """
        with self._one_at_a_time:
            try:
                return self._fetch(request)
            except StopRequested:
                self._check_lease()  # a lost lease is the truer reason
                raise
            except BlockedError as error:
                error.rate_key = self._other_key(error.url)
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
            is_list_page=request.is_list_page,
        )
        seen = set()
        for _ in range(MAX_REDIRECTS + 1):
            self._check_key(hop.url)
            if self._site.obey_robots:
                self._robots.check(hop)
            # With the cookies: some servers set one and send the client to the same URL once more.
            seen.add((hop.method, hop.url, self._cookies()))
            answer = self._sender.answer(hop)
            if answer.location is None:
                return _response(answer)
            following = redirected(hop, answer.status, answer.location)
            if (following.method, following.url, self._cookies()) in seen:
                raise FetchError(
                    "redirects",
                    str(hop.url),
                    stored(
                        "%(url)s redirects (HTTP %(status)s) back to %(other)s, in a circle.",
                        url=hop.shown,
                        status=answer.status,
                        other=following.shown,
                    ),
                    answer.status,
                )
            hop = following
        raise FetchError(
            "redirects",
            request.url,
            stored(
                "%(url)s was reached by more than %(count)s redirects.", url=hop.shown, count=MAX_REDIRECTS
            ),
        )

    def _cookies(self) -> tuple[tuple[str, str, str, str | None], ...]:
        return tuple(
            (cookie.domain, cookie.path, cookie.name, cookie.value) for cookie in self._client.cookies.jar
        )

    def _other_key(self, url: str) -> str | None:
        """The rate key of a host that blocked; None where it is the job's, or the URL has none."""
        try:
            key = self._key_of(str(parse_url(url)))
        except FetchError:
            return None
        return key if key != self._rate_key else None

    def _check_key(self, url: httpx2.URL) -> None:
        key = self._key_of(str(url))
        if key != self._rate_key:
            raise FetchError(
                "other_key",
                str(url),
                stored(
                    "%(url)s belongs to rate key %(key)s, and this job runs in %(own)s: it was not "
                    "fetched. Give both sites the same rate key if one server is behind them.",
                    url=masked_url(str(url)),
                    key=key,
                    own=self._rate_key,
                ),
            )

    def _slow_down(self, crawl_delay: float) -> None:
        self._turns.interval_sec = interval_in_force(self._turns.interval_sec, None, crawl_delay)
        self._report_crawl_delay(crawl_delay)


def _response(answer: Answer) -> Response:
    return Response(
        url=str(answer.url),
        status=answer.status,
        headers=dict(answer.headers),
        body=answer.body,
        elapsed_ms=answer.elapsed_ms,
    )
