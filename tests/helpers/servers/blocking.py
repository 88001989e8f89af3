"""A site that says "too much": it serves so many requests, and then refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.helpers.servers.base import Exchange, Request, Site


class BlockingSite(Site):
    """Wraps any site, and blocks after a number of requests.

    /robots.txt is neither counted nor blocked. Requests that come while it blocks do not lengthen the block; they are
    kept in `refused`, to show who went on knocking.

    Args:
        site: what is served otherwise.
        after: requests that are served before the block; None: only `block()` begins one.
        status: what the block answers, e.g. 429 or 503.
        retry_after: value of the Retry-After header (seconds, or an HTTP date).
        for_seconds: how long the block lasts; None: until `unblock()`.
        every: True: once the block is over the counting starts again.
        refuse: what the block does instead of sending `status`.
    """

    def __init__(
        self,
        site: Site,
        *,
        after: int | None = None,
        status: int = 429,
        retry_after: int | str | None = None,
        for_seconds: float | None = None,
        every: bool = False,
        refuse: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.site = site
        self.after = after
        self.status = status
        self.retry_after = retry_after
        self.for_seconds = for_seconds
        self.every = every
        self.refuse = refuse
        self.refused: list[Request] = []
        self.blocks = 0
        self._served = 0
        self._counting = after is not None
        self._until: float | None = None
        self._lock = threading.Lock()

    @property
    def blocking(self) -> bool:
        """Whether a request would be refused now."""
        with self._lock:
            return self._blocking()

    def block(self, seconds: float | None = None) -> None:
        """Block from now on, for so many seconds or until `unblock()`."""
        with self._lock:
            self._block(seconds)

    def unblock(self) -> None:
        """Serve again."""
        with self._lock:
            self._until = None

    def answer(self, exchange: Exchange) -> None:
        if exchange.request.path == "/robots.txt" or self._admit(exchange.request):
            self.site.answer(exchange)
        else:
            self.respond(exchange)

    def respond(self, exchange: Exchange) -> None:
        if self.refuse is not None:
            self.refuse(exchange)
            return
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        exchange.send("<!doctype html><title>Too much</title>", status=self.status, headers=headers)

    def _admit(self, request: Request) -> bool:
        with self._lock:
            if self._counting and not self._blocking() and self._served == self.after:
                self._served = 0
                self._counting = self.every
                self._block(self.for_seconds)
            if self._blocking():
                self.refused.append(request)
                return False
            self._served += 1
            return True

    def _block(self, seconds: float | None) -> None:
        self._until = float("inf") if seconds is None else time.monotonic() + seconds
        self.blocks += 1

    def _blocking(self) -> bool:
        return self._until is not None and time.monotonic() < self._until
