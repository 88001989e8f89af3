"""A site with sitemaps."""

from __future__ import annotations

from typing import Any

from tests.helpers.servers.base import Exchange, Site, not_found


class MappedSite(Site):
    """A site with sitemaps, whose pages are wherever they say.

    Attributes:
        maps: bodies by path; lists become a <urlset> of (path, lastmod), dicts a <sitemapindex> of path: lastmod.
        articles: pages that are not the usual one.
        etags: send an ETag with sitemaps and pages.
    """

    def __init__(self, maps: dict[str, Any], *, etags: bool = False) -> None:
        self.maps = maps
        self.articles: dict[str, str] = {}
        self.missing: set[str] = set()
        self.etags = etags

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        body: str | bytes
        if path in self.missing:
            not_found(exchange)
            return
        if path in self.maps:
            body = self._map(self.maps[path], f"http://{exchange.request.headers['host']}")
            content_type = "application/octet-stream" if path.endswith(".gz") else "application/xml"
        else:
            body = self.articles.get(path) or f"<title>{path}</title><p>The text of the page {path}.</p>"
            content_type = "text/html; charset=utf-8"
        exchange.send(body, content_type=content_type, etag=f'"{hash(body)}"' if self.etags else None)

    def _map(self, said: Any, host: str) -> str | bytes:
        if isinstance(said, str | bytes):
            return said
        outer, inner = ("urlset", "url") if isinstance(said, list) else ("sitemapindex", "sitemap")
        pairs = [pair if isinstance(pair, tuple) else (pair, "") for pair in said]
        pairs = pairs if isinstance(said, list) else list(said.items())
        pairs = [pair if isinstance(pair, tuple) else (pair, "") for pair in pairs]
        entries = "".join(
            f"<{inner}><loc>{host if loc.startswith('/') else ''}{loc}</loc>"
            + (f"<lastmod>{lastmod}</lastmod>" if lastmod else "")
            + f"</{inner}>"
            for loc, lastmod in pairs
        )
        return f"<{outer}>{entries}</{outer}>"
