"""The endpoint of a retrieval index, as well or badly as a test wants it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from tests.helpers.servers.base import Exchange, Site


class Index(Site):
    """Takes JSON lines by POST, each Idempotency-Key once.

    Attributes:
        taken: the lines that were taken, in order.
        posts: the Idempotency-Key of each POST that came, taken or not.
        tokens: the Authorization headers that came.
        answers: statuses of the next POSTs, taken from the front; then 202.
        refused: titles of documents that are answered with 422.
        open: while it is cleared, answers wait.
        before_answer: called with the number of a POST (from 1) once its lines are taken, and before it is answered.
    """

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.posts: list[str] = []
        self.tokens: list[str | None] = []
        self.answers: list[int] = []
        self.refused: set[str] = set()
        self.open = threading.Event()
        self.open.set()
        self.before_answer: Callable[[int], None] = lambda _number: None
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[str]:
        """The ids of the chunks that were taken."""
        with self._lock:
            return [line["id"] for line in self.taken]

    def respond(self, exchange: Exchange) -> None:
        lines = [json.loads(line) for line in exchange.request.body.splitlines()]
        key = exchange.request.headers["idempotency-key"]
        with self._lock:
            self.posts.append(key)
            number = len(self.posts)
            self.tokens.append(exchange.request.headers.get("authorization"))
            status = self.answers.pop(0) if self.answers else 202
            if any(line["title"] in self.refused for line in lines):
                status = 422
            if status == 202 and key not in self._keys:
                self._keys.add(key)
                self.taken += lines
        while not self.open.is_set():
            exchange.wait(0.02)
        self.before_answer(number)
        exchange.send("no" if status >= 300 else "", status=status, content_type="text/plain")
