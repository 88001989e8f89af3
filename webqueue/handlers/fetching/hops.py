"""One request as it goes out, and the one that a redirect makes of it (RFC 9110 §15.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import httpx2

from webqueue.errors import InvalidInputError
from webqueue.handlers.protocol import FetchError
from webqueue.politeness.evidence import masked_url
from webqueue.politeness.rate_key import host_of
from webqueue.sentences import stored

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_CONTENT_HEADERS = frozenset(
    {"content-type", "content-language", "content-location", "content-encoding", "digest", "last-modified"}
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Hop:
    """One request to one URL.

    Attributes:
        headers: the handler's; they were meant for `origin`.
        origin: the URL that the handler asked for.
        max_bytes: size of the body after decoding.
        cut_at_limit: a longer body is cut there instead of being refused.
        total_sec: of the whole exchange.
    """

    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    body: bytes | None
    origin: httpx2.URL
    max_bytes: int
    total_sec: float
    cut_at_limit: bool = False
    is_robots_file: bool = False
    is_list_page: bool = False

    @property
    def host(self) -> str:
        """The host in the form of `host_of`: international names in punycode."""
        return self.url.raw_host.decode("ascii")

    @property
    def shown(self) -> str:
        """The URL as texts may show it."""
        return masked_url(str(self.url))


def parse_url(text: str) -> httpx2.URL:
    """The URL in the one form in which it is checked, spaced, and requested; without its fragment.

    Raises:
        FetchError: of kind `url`.
    """
    try:
        host = host_of(text)
        url = httpx2.URL(text)
        port = None if url.port == _DEFAULT_PORTS[url.scheme] else url.port
        # The host as the rate key has it: what two parsers read differently could pass the check of one of them.
        return url.copy_with(host=host, port=port, raw_path=url.raw_path, fragment=None)
    except (InvalidInputError, httpx2.InvalidURL) as error:
        raise FetchError(
            "url", text, stored("%(url)s cannot be fetched: %(why)s", url=masked_url(text), why=str(error))
        ) from error


def redirected(hop: Hop, status: int, location: str) -> Hop:
    """The request that follows a redirect.

    303 makes a GET of everything but HEAD; 301 and 302 make a GET of POST, as every client does; 307 and 308 keep the
    method.

    Raises:
        FetchError: of kind `url`, when the location is no http(s) URL.
    """
    try:
        target = parse_url(str(hop.url.join(location.strip())))
    except (FetchError, httpx2.InvalidURL) as error:
        raise FetchError(
            "url",
            str(hop.url),
            stored(
                "%(url)s redirects (HTTP %(status)s) to %(other)s, which cannot be fetched: %(why)s",
                url=hop.shown,
                status=status,
                other=repr(masked_url(location)),
                why=str(error),
            ),
            status,
        ) from error
    if hop.method == "HEAD" or status in {307, 308} or (status != 303 and hop.method != "POST"):
        return replace(hop, url=target)
    headers = {name: value for name, value in hop.headers.items() if name.lower() not in _CONTENT_HEADERS}
    return replace(hop, url=target, method="GET", headers=headers, body=None)


def same_service(configured: httpx2.URL, url: httpx2.URL) -> bool:
    """Whether what was meant for one URL may be told to the other.

    The same host and port; http may become https there, never the other way round, where everybody could listen.
    """
    if configured.host != url.host:
        return False
    if configured.scheme == url.scheme:
        return configured.port == url.port
    return configured.scheme == "http" and configured.port is None and url.port is None
