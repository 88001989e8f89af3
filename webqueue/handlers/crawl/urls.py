"""URLs as a crawl knows them: joined, without fragment, spelled in one way."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

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
        None for what is no http(s) URL with a host, or is longer than 8,000 characters.
    """
    try:
        parts = urlsplit(urljoin(base, _IGNORED_BY_BROWSERS.sub("", link).strip()))
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        return None
    if scheme not in _DEFAULT_PORTS or not host:
        return None
    url = SplitResult(
        scheme,
        _authority(parts, host.lower(), None if port == _DEFAULT_PORTS[scheme] else port),
        quote(parts.path, safe=_SAFE, errors="replace") or "/",
        quote(parts.query, safe=_SAFE, encoding=encoding, errors="replace"),
        "",
    ).geturl()
    return url if len(url) <= _LONGEST else None


def host_of(url: str) -> str:
    """Host and port of a URL, by which two URLs are compared; empty when there is none."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}:{parts.port or _DEFAULT_PORTS.get(parts.scheme, '')}"
    except ValueError:
        return ""


def is_root(url: str) -> bool:
    """Whether a URL is the front page of its host."""
    parts = urlsplit(url)
    return parts.path in {"", "/"} and not parts.query


def _authority(parts: SplitResult, host: str, port: int | None) -> str:
    user = parts.netloc.rpartition("@")[0]
    name = f"[{host}]" if ":" in host else host
    return f"{f'{user}@' if user else ''}{name}{f':{port}' if port is not None else ''}"
