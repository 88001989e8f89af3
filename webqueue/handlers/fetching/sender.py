"""One hop, in its turn and in up to three tries, each written down."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime

import httpx2

from webqueue.documents.warc import Exchanged
from webqueue.handlers.fetching.addresses import is_address, why_refused
from webqueue.handlers.fetching.blocks import BlockWatch
from webqueue.handlers.fetching.exchange import Answer, Exchange
from webqueue.handlers.fetching.failures import Failure, failure_of
from webqueue.handlers.fetching.headers import headers_for
from webqueue.handlers.fetching.hops import IDEMPOTENT, Hop
from webqueue.handlers.fetching.interruption import Interruption
from webqueue.handlers.fetching.turns import Turns
from webqueue.handlers.protocol import FetchError, SiteView, StopRequested
from webqueue.politeness.evidence import EvidenceLog, RequestLine
from webqueue.sentences import part, stored

TRIES = 3
BACKOFF_SEC = 1.0
RECENT = 20  # what a cooldown shows as its evidence (DESIGN section 6)


class Sender:
    """Sends single requests of one job and follows nothing.

    Args:
        client: over checked connections.
        interruption: ends the waits.
        turns: says when.
        blocks: tells blocks.
        site: whose settings hold.
        user_agent: to send.
        rate_key: for the evidence.
        job_id: for the evidence.
        evidence: where each try is written down.
        allow_private: whether addresses are not to be checked.
        now: the clock of Retry-After dates and of the evidence.
        backoff_sec: wait before the second try; twice as long before the third.
        keep: gets what went over the wire for each page that was read; None: nobody keeps it.

    Attributes:
        requests: sent, retries included.
        bytes: of bodies, as they came over the wire.
        statuses: how often each HTTP status came.
        recent: the last 20, oldest first.
    """

    def __init__(
        self,
        client: httpx2.Client,
        interruption: Interruption,
        turns: Turns,
        blocks: BlockWatch,
        *,
        site: SiteView,
        user_agent: str,
        rate_key: str,
        job_id: str,
        evidence: EvidenceLog,
        allow_private: bool,
        now: Callable[[], datetime],
        backoff_sec: float,
        keep: Callable[[Exchanged], None] | None = None,
    ) -> None:
        self.requests = 0
        self.bytes = 0
        self.statuses: Counter[int] = Counter()
        self.recent: deque[RequestLine] = deque(maxlen=RECENT)
        self._blocks = blocks
        self._client = client
        self._interruption = interruption
        self._turns = turns
        self._site = site
        self._user_agent = user_agent
        self._rate_key = rate_key
        self._job_id = job_id
        self._evidence = evidence
        self._allow_private = allow_private
        self._now = now
        self._backoff_sec = backoff_sec
        self._keep = keep

    def answer(self, hop: Hop) -> Answer:
        """The answer to one hop; redirects are answers.

        Raises:
            FetchError: no answer, or a server error in each try.
            BlockedError: the answer, or the third refusal, is a block.
            StopRequested: a stop was requested meanwhile.
            LeaseLostError: the lease ended meanwhile.
        """
        self._refuse_private_literal(hop)
        tried = 0
        while True:
            tried += 1
            # The backoff counts from the end of the try before, and never makes an interval shorter.
            outcome = self._try(hop, at_least_sec=0.0 if tried == 1 else self._backoff_sec * 2 ** (tried - 2))
            if isinstance(outcome, Answer) and outcome.status < 500:
                return outcome
            failure = _server_error(hop, outcome.status) if isinstance(outcome, Answer) else outcome
            if failure.refused:
                self._blocks.refused(hop)
            repeatable = hop.method in IDEMPOTENT or not failure.sent  # RFC 9110 §9.2.2
            if tried == TRIES or not failure.again or not repeatable:
                status = outcome.status if isinstance(outcome, Answer) else None
                raise FetchError(failure.kind, str(hop.url), _told(hop, failure, tried), status)

    def _try(self, hop: Hop, *, at_least_sec: float) -> Answer | Failure:
        """Wait for the turn, send, and write the evidence."""
        self._turns.take(at_least_sec)
        exchange = Exchange(self._client, hop, self._interruption, keep_wire=self._keep is not None)
        headers = headers_for(hop, self._site, self._user_agent)
        sent = dict(headers)
        began, at = time.monotonic(), self._now()
        error: str | None = "interrupted"
        try:
            answer = exchange.run(headers, self._site.http.timeout_sec)
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
        if self._keep is not None and answer.exchanged is not None:
            self._keep(answer.exchanged)
        self._blocks.check(hop, answer, sent, self._now())
        return answer

    def _count(self, exchange: Exchange, hop: Hop, *, at: datetime, ms: float, error: str | None) -> None:
        self.requests += 1
        self.bytes += exchange.wire_bytes
        if exchange.status is not None:
            self.statuses[exchange.status] += 1
        allowed = "allowed" if self._site.obey_robots else "off"
        line = RequestLine(
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
        self.recent.append(line)
        self._evidence.append(line)

    def _refuse_private_literal(self, hop: Hop) -> None:
        """Behind a proxy nothing of ours connects to the target; what can be seen in the URL is refused all the same."""
        if self._site.http.proxy is None or self._allow_private:
            return
        is_local = hop.host == "localhost" or hop.host.endswith(".localhost")
        if not is_local and not is_address(hop.host):
            return
        reason = part("this machine") if is_local else why_refused(hop.host)
        if reason is not None:
            raise FetchError(
                "address",
                str(hop.url),
                stored("%(url)s: %(host)s is %(what)s.", url=hop.shown, host=hop.host, what=reason),
            )


def _server_error(hop: Hop, status: int) -> Failure:
    return Failure(
        "status",
        stored("HTTP %(status)s from %(host)s", status=status, host=hop.host),
        stored("The server itself failed; nothing is wrong with the target as far as this tells."),
        again=True,
    )


def _told(hop: Hop, failure: Failure, tried: int) -> str:
    facts = {"url": hop.shown, "what": failure.text}
    if tried > 1:
        again = {**facts, "count": tried}
        if failure.advice:
            return stored("%(url)s: %(what)s (%(count)s tries). %(advice)s", **again, advice=failure.advice)
        return stored("%(url)s: %(what)s (%(count)s tries).", **again)
    if failure.advice:
        return stored("%(url)s: %(what)s. %(advice)s", **facts, advice=failure.advice)
    return stored("%(url)s: %(what)s.", **facts)
