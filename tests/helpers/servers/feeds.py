"""A site with feeds, and feeds by the piece."""

from __future__ import annotations

import html

from tests.helpers.servers.base import Exchange, Site


def rss(*entries: str, more: str = "") -> str:
    """An RSS feed; `more` stands in its channel."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">'
        f"<channel><title>Harbour</title>{more}{''.join(entries)}</channel></rss>"
    )


def item(link: str, title: str = "Title", **fields: str) -> str:
    """An entry of one."""
    more = "".join(f"<{name}>{html.escape(text)}</{name}>" for name, text in fields.items())
    return f"<item><title>{html.escape(title)}</title><link>{html.escape(link)}</link>{more}</item>"


def atom(*entries: str) -> str:
    """An Atom feed, whose links are relative to http://127.0.0.1/."""
    return (
        '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://127.0.0.1/">'
        f"<title>Harbour</title>{''.join(entries)}</feed>"
    )


class FeedSite(Site):
    """Feeds by path, and an article at every other path.

    Args:
        etags: send an ETag with everything.
        feeds: by path, without the slash.
    """

    def __init__(self, *, etags: bool = False, **feeds: str | bytes) -> None:
        self.feeds: dict[str, str | bytes] = {f"/{name}": body for name, body in feeds.items()}
        self.articles: dict[str, str] = {}
        self.etags = etags

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in self.feeds:
            body, content_type = self.feeds[path], "application/rss+xml"
        else:
            body = (
                self.articles.get(path) or f"<title>Page {path}</title><p>The text of the article {path}.</p>"
            )
            content_type = "text/html; charset=utf-8"
        exchange.send(body, content_type=content_type, etag=f'"{hash(body)}"' if self.etags else None)
