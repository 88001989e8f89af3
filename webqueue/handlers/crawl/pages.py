"""List pages: the links to articles, and the link to the next page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.nesting import tamed
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Response

_LONGEST_LINK_TEXT: Final = 500


@dataclass(frozen=True)
class Link:
    """A link to an article, with what the list says of it.

    Attributes:
        text: in one line; the title, where the article itself has none.
        published_at: when it was published.
        changed_at: when it was changed last; a stored one that was fetched before is fetched again, conditionally.
        html: the article itself, where the list has it: then its page is not fetched.
        files: (URL, name) of files that belong to it.
    """

    url: str
    text: str
    published_at: datetime | None = None
    changed_at: datetime | None = None
    html: str | None = None
    files: tuple[tuple[str, str], ...] = ()


class Page:
    """A page as it was fetched, decoded and parsed.

    Args:
        response: of the server.
    """

    def __init__(self, response: Response) -> None:
        self.response = response
        decoded = decode(response.body, response.headers.get("content-type"))
        self.text = tamed(decoded.text)
        self.encoding = decoded.encoding
        self.tree = LexborHTMLParser(self.text)
        self.base = self._base()

    @property
    def url(self) -> str:
        """The URL that answered."""
        return self.response.url

    def join(self, link: str) -> str | None:
        """The absolute URL of a link on this page, or None when it leads to no web page."""
        return join(self.base, link, encoding=self.encoding)

    def links(self, selector: str) -> list[Link]:
        """The links that `selector` matches, in order, each URL once.

        A matched element that is no link itself stands for the first link in it, so that `ul.list li` works too.
        """
        found: dict[str, Link] = {}
        for node in self.tree.css(selector):
            href = _href(node)
            url = self.join(href) if href else None
            if url is not None and url not in found:
                found[url] = Link(url, one_line(node.text())[:_LONGEST_LINK_TEXT])
        return list(found.values())

    def next_url(self, selector: str) -> str | None:
        """The URL of the next list page, by the first match of `selector` that is a link to another page."""
        for node in self.tree.css(selector):
            href = _href(node)
            url = self.join(href) if href else None
            if url is not None and url != join(self.url, ""):
                return url
        return None

    def _base(self) -> str:
        for node in self.tree.css("base[href]"):
            base = join(self.url, node.attributes.get("href") or "", encoding=self.encoding)
            return base or self.url
        return self.url


def one_line(text: str) -> str:
    """`text` with every run of white space made one blank."""
    return " ".join(text.split())


def _href(node: LexborNode) -> str | None:
    for candidate in _candidates(node):
        href = candidate.attributes.get("href")
        if href is not None and href.strip():
            return href
    return None


def _candidates(node: LexborNode) -> Iterator[LexborNode]:
    if node.tag in {"a", "area", "link"}:
        yield node
        return
    yield from node.css("a[href]")
