"""The threaded server under every test site, and its log of what was asked of it."""

from __future__ import annotations

import html
import select
import socket
import socketserver
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

HTML = "text/html; charset=utf-8"
# How long a waiting answer takes at most to notice that the server stops or that its client is gone.
NOTICE_SEC = 0.02


@dataclass
class Request:
    """One request that a server got, and what became of it.

    Attributes:
        number: counts from 1 within the server.
        target: path and query as they were sent.
        path: the path, percent-decoded.
        headers: names in lower case.
        started: `time.monotonic()` when its head had come.
        concurrent: requests in the works at that moment, this one included.
        ended: just before the last byte of its answer was sent, or when it was given up; None while it is in the
            works. Before and not after it, because a client that has the last byte may ask again at once.
        complete: the whole answer was handed to the network.
    """

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    started: float
    concurrent: int
    status: int | None = None
    ended: float | None = None
    complete: bool = False
    path: str = field(init=False)
    query: Mapping[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.target)
        self.path = unquote(parts.path)
        self.query = parse_qs(parts.query, keep_blank_values=True)


class ClientGoneError(ConnectionError):
    """The client closed its connection while its answer was being waited for."""


class ServerStoppingError(ConnectionError):
    """The server is being stopped in the middle of an answer."""


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(
        self,
        request: Request,
        connection: socket.socket,
        stopping: threading.Event,
        ending: Callable[[Request], None],
    ) -> None:
        self.request = request
        self.connection = connection
        self.keep_alive = True
        self._stopping = stopping
        self._ending = ending

    def send(
        self,
        body: bytes | str = b"",
        *,
        status: int = 200,
        content_type: str = HTML,
        headers: Mapping[str, str] | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> None:
        """Send a whole, correct answer; 304 when the request's condition says that the client has it already."""
        content = body.encode() if isinstance(body, str) else body
        fields = {"Content-Type": content_type, **(headers or {})}
        if etag is not None:
            fields["ETag"] = etag
        if last_modified is not None:
            fields["Last-Modified"] = last_modified
        if status == HTTPStatus.OK and self._client_has(etag, last_modified):
            del fields["Content-Type"]
            status, content = HTTPStatus.NOT_MODIFIED, b""
        else:
            fields["Content-Length"] = str(len(content))
        whole = self._head(status, fields) + (b"" if self.request.method == "HEAD" else content)
        self.write(whole[:-1])
        self._ending(self.request)
        self.write(whole[-1:])

    def redirect(self, location: str, status: int = 302) -> None:
        """Send the client elsewhere."""
        self.send(f"Moved to {html.escape(location)}", status=status, headers={"Location": location})

    def start(
        self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> None:
        """Send the head as it is given, and perhaps a first part of the body."""
        self.write(self._head(status, headers) + body)

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            ConnectionError: the client is gone, or the server is being stopped.
        """
        self.connection.sendall(data)

    def wait(self, seconds: float | None = None) -> None:
        """Let the client wait (None: until it goes away).

        Raises:
            ClientGoneError: it went away.
            ServerStoppingError: the server is being stopped.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while deadline is None or (left := deadline - time.monotonic()) > 0:
            if self._stopping.wait(NOTICE_SEC if deadline is None else min(NOTICE_SEC, left)):
                raise ServerStoppingError
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientGoneError

    def _head(self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> bytes:
        self.request.status = int(status)
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        lines = [
            f"HTTP/1.1 {int(status)} {responses.get(status, '')}",
            *(f"{name}: {value}" for name, value in pairs),
            "",
            "",
        ]
        return "\r\n".join(lines).encode("latin-1")

    def _client_has(self, etag: str | None, last_modified: str | None) -> bool:
        wanted = self.request.headers.get("if-none-match")
        if wanted is not None:  # RFC 9110, 13.2.2: it goes before If-Modified-Since
            return etag is not None and etag in {part.strip() for part in wanted.split(",")}
        return last_modified is not None and self.request.headers.get("if-modified-since") == last_modified


class Site(ABC):
    """What a server answers.

    Attributes:
        robots: the text of /robots.txt; None: there is none (404).
    """

    robots: str | bytes | None = None

    def answer(self, exchange: Exchange) -> None:
        """Answer one request; called in a thread of its own for each connection."""
        if exchange.request.path == "/robots.txt":
            if self.robots is None:
                not_found(exchange)
            else:
                exchange.send(self.robots, content_type="text/plain; charset=utf-8")
            return
        self.respond(exchange)

    @abstractmethod
    def respond(self, exchange: Exchange) -> None:
        """Answer anything but /robots.txt."""


class Server:
    """Serves a site on a loopback address until it is stopped; every request is kept in `requests`.

    Args:
        site: what to serve.
        host: any address of this machine, e.g. 127.0.0.2, to have several hosts at once.
        port: 0 means a free one.
        delay_sec: every answer waits this long first.
    """

    def __init__(self, site: Site, *, host: str = "127.0.0.1", port: int = 0, delay_sec: float = 0.0) -> None:
        self.site = site
        self.delay_sec = delay_sec
        self._log: list[Request] = []
        self._lock = threading.Lock()
        self._in_flight = 0
        self._max_concurrent = 0
        self._stopping = threading.Event()
        self._defects: list[BaseException] = []
        self._listener = _Listener((host, port), self)
        self._thread = threading.Thread(
            target=self._listener.serve_forever,
            kwargs={"poll_interval": NOTICE_SEC},
            name=f"server of {self.url}",
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return str(self._listener.server_address[0])

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.server_address[1])

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://{self.host}:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order in which they came; those in the works too."""
        with self._lock:
            return list(self._log)

    @property
    def paths(self) -> list[str]:
        """The paths of all requests, in order."""
        return [request.path for request in self.requests]

    @property
    def in_flight(self) -> int:
        """Requests being answered now."""
        with self._lock:
            return self._in_flight

    @property
    def max_concurrent(self) -> int:
        """The most requests that were in the works at once."""
        with self._lock:
            return self._max_concurrent

    def requests_for(self, path: str) -> list[Request]:
        """The requests for one path."""
        return [request for request in self.requests if request.path == path]

    def forget(self) -> None:
        """Empty the log."""
        with self._lock:
            self._log.clear()
            self._max_concurrent = self._in_flight

    def start(self) -> None:
        """Serve from now on, in threads."""
        self._thread.start()

    def stop(self) -> None:
        """Cut all connections and wait for every thread.

        Raises:
            ExceptionGroup: the site itself failed while answering.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join()
        self._listener.cut_connections()
        self._listener.server_close()
        if self._defects:
            defects, self._defects = self._defects, []
            raise BaseExceptionGroup("The test's site failed while answering", defects)

    def _serve(self, handler: _Handler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        request = self._begin(handler, handler.rfile.read(length) if length else b"")
        exchange = Exchange(request, handler.connection, self._stopping, self._end)
        try:
            if self.delay_sec:
                exchange.wait(self.delay_sec)
            self.site.answer(exchange)
            request.complete = True
        except ConnectionError:
            exchange.keep_alive = False
        except BaseException as error:  # noqa: BLE001 - kept, and raised by stop()
            self._defects.append(error)
            exchange.keep_alive = False
        self._end(request)
        if not exchange.keep_alive:
            handler.close_connection = True

    def _end(self, request: Request) -> None:
        with self._lock:
            if request.ended is None:
                request.ended = time.monotonic()
                self._in_flight -= 1

    def _begin(self, handler: _Handler, body: bytes) -> Request:
        started = time.monotonic()
        with self._lock:
            self._in_flight += 1
            self._max_concurrent = max(self._max_concurrent, self._in_flight)
            request = Request(
                number=len(self._log) + 1,
                method=handler.command,
                target=handler.path,
                headers={name.lower(): value for name, value in handler.headers.items()},
                body=body,
                started=started,
                concurrent=self._in_flight,
            )
            self._log.append(request)
        return request


class _Handler(BaseHTTPRequestHandler):
    """Reads requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self.server.owner._serve(self)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the base class's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


class _Listener(ThreadingHTTPServer):
    """Accepts connections, and remembers them so that they can be cut."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: Server) -> None:
        self.owner = owner
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own would ask the name server for the host's name.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def not_found(exchange: Exchange) -> None:
    """Answer 404."""
    exchange.send("<!doctype html><title>Not found</title><p>There is no such page.", status=404)


def list_page(
    links: Iterable[tuple[str, str]],
    *,
    title: str = "News",
    next_url: str | None = None,
    language: str = "en",
) -> str:
    """A list page: the links are found by `ul.list a`, the link to the next page by `a.next`.

    Args:
        links: (URL, text) of each.
        title: of the page.
        next_url: the next list page, if the page is to name one.
        language: of the page.
    """
    items = "\n".join(f'<li><a href="{html.escape(url)}">{html.escape(text)}</a></li>' for url, text in links)
    following = f'<p><a class="next" href="{html.escape(next_url)}">Next</a></p>' if next_url else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'</head>\n<body>\n<nav><a href="/">Home</a></nav>\n<h1>{html.escape(title)}</h1>\n'
        f'<ul class="list">\n{items}\n</ul>\n{following}\n</body>\n</html>\n'
    )
