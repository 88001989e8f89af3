"""One request and its answer, read within limits of size and time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

import httpx2

from webqueue import clock
from webqueue.documents.warc import Exchanged
from webqueue.handlers.fetching.decompression import decoder_for
from webqueue.handlers.fetching.headers import kept_value
from webqueue.handlers.fetching.hops import REDIRECTS, Hop
from webqueue.handlers.fetching.interruption import Interruption

BLOCKS = frozenset({429, 503})
_BODILESS = frozenset({204, 304})


class TooLargeError(Exception):
    """The body is larger than the request allows."""


class CutBodyError(Exception):
    """The body ended before its content did, and nothing else told its length: the connection was cut."""


class BrokenBodyError(Exception):
    """The body came whole, but what it contains ends too early."""


@dataclass(frozen=True)
class Answer:
    """What a server answered. `body` is decoded, and empty where nobody reads it: redirects, blocks, server errors.

    `exchanged` is what went over the wire, where that is kept and was read whole.
    """

    url: httpx2.URL
    status: int
    headers: httpx2.Headers
    body: bytes
    elapsed_ms: int
    exchanged: Exchanged | None = None

    @property
    def location(self) -> str | None:
        """Where a redirect leads; None when it is none."""
        return self.headers.get("location") if self.status in REDIRECTS else None


class Exchange:
    """Sends one request and reads its answer; to be run once.

    Attributes:
        status: as soon as it is known.
        wire_bytes: of the body, received so far.
    """

    def __init__(
        self, client: httpx2.Client, hop: Hop, interruption: Interruption, *, keep_wire: bool = False
    ) -> None:
        self.status: int | None = None
        self.wire_bytes = 0
        self._client = client
        self._hop = hop
        self._interruption = interruption
        self._wire = bytearray() if keep_wire else None

    def run(self, headers: dict[str, str], timeout_sec: float) -> Answer:
        """Do it.

        Args:
            headers: to send, names in lower case; cookies of the job are added.
            timeout_sec: for the connection, and for each wait for bytes.

        Raises:
            StopRequested: a stop was requested meanwhile.
            Exception: what `failures.failure_of` knows.
        """
        began, at = time.monotonic(), clock.local_now()
        self._interruption.begin(self._hop.total_sec)
        response = self._client.send(self._request(headers, timeout_sec), stream=True)
        try:
            self.status = response.status_code
            wanted = self._is_wanted(response)
            body = self._read(response) if wanted else b""
        finally:
            response.close()
        elapsed_ms = round((time.monotonic() - began) * 1000)
        return Answer(
            self._hop.url,
            response.status_code,
            response.headers,
            body,
            elapsed_ms,
            self._exchanged(response, at) if wanted else None,
        )

    def _request(self, headers: dict[str, str], timeout_sec: float) -> httpx2.Request:
        own_cookies = headers.pop("cookie", "")
        request = self._client.build_request(
            self._hop.method, self._hop.url, headers=headers, content=self._hop.body, timeout=timeout_sec
        )
        cookies = "; ".join(filter(None, (own_cookies, request.headers.get("cookie"))))
        if cookies:
            request.headers["cookie"] = cookies
        return request

    def _exchanged(self, response: httpx2.Response, at: datetime) -> Exchanged | None:
        if self._wire is None:
            return None
        request = response.request
        return Exchanged(
            url=str(request.url),
            at=at,
            method=request.method,
            target=request.url.raw_path.decode("ascii"),
            request_headers=[(name, kept_value(name, value)) for name, value in _texts(request.headers)],
            request_body=self._hop.body or b"",
            http_version=response.http_version,
            status=response.status_code,
            reason=response.reason_phrase,
            response_headers=_texts(response.headers),
            body=bytes(self._wire),
        )

    def _is_wanted(self, response: httpx2.Response) -> bool:
        status = response.status_code
        if self._hop.method == "HEAD" or status in _BODILESS or status >= 500 or status in BLOCKS:
            return False
        return not (status in REDIRECTS and "location" in response.headers)

    def _read(self, response: httpx2.Response) -> bytes:
        hop = self._hop
        announced = response.headers.get("content-length", "")
        if not hop.cut_at_limit and announced.isdecimal() and int(announced) > hop.max_bytes:
            raise TooLargeError
        decoder = decoder_for(response.headers.get("content-encoding"))
        body = bytearray()
        for chunk in response.iter_raw():
            self.wire_bytes += len(chunk)
            if self._wire is not None:
                self._wire += chunk
            for piece in decoder.feed(chunk):
                body += piece
                if len(body) > hop.max_bytes:
                    break
            # Of the wire, too: a packed body may go on for ever and unpack to nothing.
            if max(len(body), self.wire_bytes) > hop.max_bytes:
                if not hop.cut_at_limit:
                    raise TooLargeError
                self._wire = None  # what is cut is no copy
                return bytes(body[: hop.max_bytes])
        if not decoder.complete:
            framed = announced or "transfer-encoding" in response.headers
            raise BrokenBodyError if framed else CutBodyError
        return bytes(body)


def _texts(headers: httpx2.Headers) -> list[tuple[str, str]]:
    """Headers with the names as they were written, each as often as it came."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]
