"""URLs as a crawl knows them: joined, without fragment, spelled in one way."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from webqueue.errors import InvalidInputError
from webqueue.politeness.rate_key import host_of

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_IGNORED_BY_BROWSERS: Final = re.compile(r"[\t\r\n]")
_SAFE: Final = "!$%&'()*+,/:;=?@[]~"
_LONGEST: Final = 8_000  # what servers accept; longer ones are mistakes or attacks


def join(base: str, link: str, *, encoding: str = "utf-8") -> str | None:
    """The absolute URL of a link on a page, in the one spelling by which documents are found again.

    Scheme and host in lower case, no default port, no fragment, everything percent-encoded that has to be. A query
    is encoded as the page is (a browser does so, and old servers rely on it), a path always as UTF-8.

    Args:
        base: URL of the page, or what its `<base href>` says.
        link: the link as the page has it.
        encoding: codec of the page.

    Returns:
        None for what is no http(s) URL, whose host programs read differently, or what is longer than 8,000 characters.
    """
    try:
        joined = urljoin(base, _IGNORED_BY_BROWSERS.sub("", link).strip())
        parts = urlsplit(joined)
        scheme, host, port = parts.scheme.lower(), host_of(joined), parts.port
    except (ValueError, InvalidInputError):
        return None
    url = SplitResult(
        scheme,
        _authority(parts, host, None if port == _DEFAULT_PORTS[scheme] else port),
        quote(parts.path, safe=_SAFE, errors="replace") or "/",
        quote(parts.query, safe=_SAFE, encoding=encoding, errors="replace"),
        "",
    ).geturl()
    return url if len(url) <= _LONGEST else None


def is_same_host(one: str, other: str) -> bool:
    """Whether two joined URLs have the same host and port."""
    return _host_and_port(one) == _host_and_port(other)


def is_root(url: str) -> bool:
    """Whether a URL is the front page of its host."""
    parts = urlsplit(url)
    return parts.path in {"", "/"} and not parts.query


def _host_and_port(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _authority(parts: SplitResult, host: str, port: int | None) -> str:
    user = parts.netloc.rpartition("@")[0]
    name = f"[{host}]" if ":" in host else host
    return f"{f'{user}@' if user else ''}{name}{f':{port}' if port is not None else ''}"
