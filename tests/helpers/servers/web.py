"""A site whose pages link to each other."""

from __future__ import annotations

from tests.helpers.servers.base import Exchange, Site, not_found


class WebSite(Site):
    """Pages that link to each other.

    Attributes:
        links: of each page, by path; every other path is 404.
        texts: of pages that have another one than usual.
        redirects: path to location.
        etags: send an ETag with pages.
    """

    def __init__(self, links: dict[str, list[str]], *, etags: bool = False) -> None:
        self.links = links
        self.texts: dict[str, str] = {}
        self.redirects: dict[str, str] = {}
        self.etags = etags

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in self.redirects:
            exchange.redirect(self.redirects[path])
        elif path in self.links:
            links = " ".join(f'<a href="{link}">to {link}</a>' for link in self.links[path])
            text = self.texts.get(path, f"The text of the page {path}, which is long enough to be one.")
            body = f"<title>Page {path}</title><article><p>{text}</p></article><nav>{links}</nav>"
            exchange.send(body, etag=f'"{hash(body)}"' if self.etags else None)
        else:
            not_found(exchange)


def tree(width: int, depth: int, path: str = "/docs/") -> dict[str, list[str]]:
    """Pages with `width` links each, `depth` levels below the first; every page links back to the first."""
    if depth == 0:
        return {path: ["/docs/"]}
    children = [f"{path}{number}/" for number in range(width)]
    found = {path: [*children, "/docs/", f"{path}#part", "/elsewhere", "mailto:x@example.org"]}
    for child in children:
        found |= tree(width, depth - 1, child)
    return found
