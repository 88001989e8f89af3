"""httpx2 over a pool of checked connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import httpcore2
import httpx2

from webqueue.handlers.fetching.addresses import Resolver
from webqueue.handlers.fetching.interruption import Interruption
from webqueue.handlers.fetching.tls import tls_context
from webqueue.handlers.fetching.wire import CheckedBackend
from webqueue.handlers.protocol import HttpOptions
from webqueue.sentences import stored

# One request at a time needs one connection; a second host of the key (www and static, say) may keep another.
MAX_CONNECTIONS = 4
MAX_IDLE = 2
# Shorter than what servers keep idle connections for, or the next request meets one that is being closed.
IDLE_SEC = 4.0


class PooledTransport(httpx2.BaseTransport):
    """Hands requests to httpcore2, whose exceptions come through as they are.

    httpx2's own transport cannot be given a network backend.
    """

    def __init__(self, pool: httpcore2.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of the answer is still to be read."""
        answer = self._pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.read(),
                extensions=request.extensions,
            )
        )
        if not isinstance(answer.stream, Iterable):
            raise TypeError("httpcore2 gave an answer that cannot be iterated.")
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream, answer),
            extensions=dict(answer.extensions),
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, chunks: Iterable[bytes], answer: httpcore2.Response) -> None:
        self._chunks = chunks
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks

    def close(self) -> None:
        self._answer.close()


def make_transport(
    options: HttpOptions, interruption: Interruption, resolve: Resolver, *, allow_private: bool
) -> PooledTransport:
    """The transport of a site's HTTP settings.

    Raises:
        ValueError: the proxy cannot be used; the text says why.
    """
    context = tls_context(verify=options.verify_tls, legacy=options.legacy_tls)
    if options.proxy is None:
        backend = CheckedBackend(interruption, resolve, allow_private=allow_private)
        return PooledTransport(
            httpcore2.ConnectionPool(
                ssl_context=context,
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_IDLE,
                keepalive_expiry=IDLE_SEC,
                network_backend=backend,
            )
        )
    proxy = _proxy(options.proxy)
    port = proxy.url.port or 80
    backend = CheckedBackend(
        interruption, resolve, allow_private=allow_private, trusted=(proxy.url.raw_host.decode("ascii"), port)
    )
    return PooledTransport(
        httpcore2.HTTPProxy(
            proxy_url=httpcore2.URL(scheme=b"http", host=proxy.url.raw_host, port=port, target=b"/"),
            proxy_auth=proxy.raw_auth,
            ssl_context=context,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=IDLE_SEC,
            network_backend=backend,
        )
    )


def _proxy(text: str) -> httpx2.Proxy:
    try:
        proxy = httpx2.Proxy(text)
    except (ValueError, httpx2.InvalidURL) as error:
        raise ValueError(
            stored("The site's proxy is no URL that can be used (%(why)s).", why=str(error))
        ) from error
    if proxy.url.scheme != "http" or not proxy.url.host:
        raise ValueError(
            stored("The site's proxy must be http://host:port; https targets go through it by CONNECT.")
        )
    return proxy
