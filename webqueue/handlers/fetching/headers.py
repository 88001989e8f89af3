"""Which headers go to which server."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

from webqueue.handlers.fetching.decompression import ACCEPT_ENCODING
from webqueue.handlers.fetching.hops import Hop, parse_url, same_service
from webqueue.handlers.protocol import FetchError, SiteView

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

# What frames a message is HTTP's business: a wrong Host or length would send the request elsewhere, or two for one.
_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "accept-encoding",
        "user-agent",
    }
)
# Everything else may hold a secret (Authorization, Cookie, X-Api-Key, whatever a site calls it), so that what goes to
# other servers is listed, not what does not.
_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "pragma", "range", "referer"})
# These speak of one document, and say nothing about who asks.
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})


def user_agent_of(site: SiteView, default: str) -> str:
    """The user agent that the site's requests carry and its robots.txt is asked about."""
    named = {name.lower(): value for name, value in site.http.headers.items()}
    return site.http.user_agent or named.get("user-agent") or default


def headers_for(hop: Hop, site: SiteView, user_agent: str) -> dict[str, str]:
    """The headers of a request, names in lower case, the handler's over the site's.

    The site's own headers go to the site's own server, the handler's to the server that the handler asked for; other
    servers of the key (a redirect leads there) get of both only what is harmless.
    """
    headers = {"user-agent": user_agent, "accept": ACCEPT, "accept-encoding": ACCEPT_ENCODING}
    headers |= _allowed(site.http.headers, meant_for=_site_url(site), hop=hop)
    headers |= _allowed(hop.headers, meant_for=hop.origin, hop=hop)
    return headers


def kept_value(name: str, value: str) -> str:
    """The value of a request's header as an archive keeps it: whatever may be a secret is left out."""
    return value if name.lower() in _HARMLESS | _CONDITIONS | _OURS else "(left out)"


def _allowed(headers: Mapping[str, str], *, meant_for: httpx2.URL | None, hop: Hop) -> dict[str, str]:
    named = {name.lower(): value for name, value in headers.items() if name.lower() not in _OURS}
    if meant_for is not None and same_service(meant_for, hop.url):
        return named
    return {name: value for name, value in named.items() if name in _HARMLESS | _CONDITIONS}


def _site_url(site: SiteView) -> httpx2.URL | None:
    try:
        return parse_url(site.base_url)
    except FetchError:
        return None  # then no server is the site's own
