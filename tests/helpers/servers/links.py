"""A site of pages that are given one by one."""

from __future__ import annotations

from tests.helpers.servers.base import Exchange, Site


class LinksSite(Site):
    """List pages by path, and an article at every other path."""

    def __init__(self, **pages: str) -> None:
        self.pages = {f"/{name}": body for name, body in pages.items()}
        self.articles: dict[str, str] = {}

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in self.pages:
            exchange.send(self.pages[path])
        else:
            exchange.send(
                self.articles.get(path) or f"<title>{path}</title><p>The text of the article {path}.</p>"
            )
