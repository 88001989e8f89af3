"""The web servers of the demo."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from webqueue.demo import content

BLOCK_SEC: Final = 10
_WINDOW_SEC: Final = 30
_FIRST: Final = content.PER_PAGE * content.PAGES
_ANSWER_SEC: Final = 0.05

_LIST = re.compile(r"/notices/index_(\d{1,4})\.html")
_ARTICLE = re.compile(r"/notices/(\d{1,6})\.html")


class DemoServer(ThreadingHTTPServer):
    """One site. `opened_at` (seconds since the epoch) is when it published its first notice."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: content.Site, port: int, opened_at: float) -> None:
        super().__init__((site.address, port), _Handler)
        self.site = site
        self._opened_at = opened_at
        self._lock = threading.Lock()
        self._requests: deque[float] = deque()
        self._blocked_until = 0.0

    def server_bind(self) -> None:
        # The base class looks its name up, which may ask a name server: the demo is offline.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, as a cancelled crawl does, is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def newest(self) -> int:
        """Number of the newest notice."""
        return _FIRST + int((time.time() - self._opened_at) // self.site.publish_every_sec)

    def blocks(self) -> bool:
        """Count a request; whether it came too much, as the harbour office's firewall sees it."""
        if not self.site.most_in_30_sec:
            return False
        with self._lock:
            now = time.monotonic()
            if now < self._blocked_until:
                return True
            self._requests.append(now)
            while self._requests[0] < now - _WINDOW_SEC:
                self._requests.popleft()
            if len(self._requests) > self.site.most_in_30_sec:
                self._requests.clear()
                self._blocked_until = now + BLOCK_SEC - 1
                return True
            return False


class _Handler(BaseHTTPRequestHandler):
    server: DemoServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        time.sleep(_ANSWER_SEC)  # a server of the world takes a moment
        site = self.server.site
        if self.path == "/robots.txt":
            return self._send(404, "not found", "text/plain")
        if self.server.blocks():
            return self._send(
                429, "Too many requests. Please come back later.", "text/plain", retry_after=BLOCK_SEC
            )
        if found := _LIST.fullmatch(self.path):
            return self._send(200, content.list_page(site, int(found[1]), self.server.newest))
        if (found := _ARTICLE.fullmatch(self.path)) and 0 < int(found[1]) <= self.server.newest:
            return self._send(200, content.article(site, int(found[1])))
        return self._send(404, "not found", "text/plain")

    def _send(self, status: int, text: str, kind: str = "text/html", retry_after: int | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the demo's log is webqueue's."""
