"""RSS and Atom feeds, as feedparser reads them."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from time import struct_time
from typing import Any, Final

from webqueue.handlers.crawl import dates
from webqueue.handlers.crawl.articles import plain_line
from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Response
from webqueue.sentences import stored

# What stands before the first element; possessive, so that no input makes it try again.
_PROLOG: Final = re.compile(
    r"(?:\s++|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:\[.*?\]\s*+)?>)*+", re.DOTALL | re.IGNORECASE
)
_MARKUP: Final = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<(/?)[A-Za-z][^<>]*>", re.DOTALL)
_LONGEST_TITLE: Final = 500
# feedparser looks through all open elements at each new one, and no feed nests like this.
_DEEPEST: Final = 300


@dataclass(frozen=True)
class Feed:
    """A feed: its entries as links, and the page of older ones (RFC 5005).

    Attributes:
        without_link: entries that lead nowhere.
    """

    links: list[Link]
    without_link: int
    next_url: str | None


def read(response: Response, zone: tzinfo, *, with_texts: bool) -> Feed:
    """Read a feed; damaged ones as far as they can be.

    Args:
        response: with the feed.
        zone: of the site, for times without an offset.
        with_texts: the entries' own texts stand for the articles.

    Raises:
        ValueError: it is none; the text says what it is.
    """
    import feedparser  # slow to import, and forms never need it

    text = decode(response.body, response.headers.get("content-type")).text
    _check_nesting(text)
    parsed = feedparser.parse(
        # As a stream: what looks like a URL or a path would be opened. Our reading of the encoding, as for every page.
        # Without its prolog: entities that stand for much more than they take are of no use in a feed.
        io.BytesIO(_PROLOG.sub("", text, count=1).encode("utf-8", "replace")),
        response_headers={"content-type": "application/xml; charset=utf-8", "content-location": response.url},
        sanitize_html=False,  # texts are taken out of the markup, and markup is never shown
        resolve_relative_uris=False,
    )
    if not parsed.entries and not parsed.get("version"):
        raise ValueError(_what_it_is(response, text))
    entries = [_link(entry, response.url, zone, with_text=with_texts) for entry in parsed.entries]
    links: dict[str, Link] = {}
    for link in entries:
        if link is not None:
            links.setdefault(link.url, link)
    return Feed(list(links.values()), entries.count(None), _next_url(parsed.get("feed", {}), response.url))


def _check_nesting(text: str) -> None:
    """Raises ValueError for elements nested without end; markup within CDATA is no element of the feed."""
    depth = 0
    for match in _MARKUP.finditer(text):
        tag = match.group()
        if match.group(1):
            depth = max(depth - 1, 0)
        elif not tag.endswith("/>") and not tag.startswith("<!"):
            depth += 1
            if depth > _DEEPEST:
                raise ValueError(
                    stored("is nested more than %(count)s elements deep, as no feed is", count=_DEEPEST)
                )


def _link(entry: Any, base: str, zone: tzinfo, *, with_text: bool) -> Link | None:
    files = _files(entry, base)
    address = entry.get("link") or (entry.get("id") if str(entry.get("id", "")).startswith("http") else "")
    url = join(base, str(address)) if address else None
    if url is None and files:
        url = files[0][0]
    if url is None:
        return None
    published = _time(entry, "published", zone) or _time(entry, "created", zone)
    changed = _time(entry, "updated", zone)
    html = _html(entry) if with_text else None
    return Link(
        url,
        plain_line(str(entry.get("title", "")))[:_LONGEST_TITLE],
        published_at=published or changed,
        changed_at=changed,
        html=html,
        files=files,
    )


def _files(entry: Any, base: str) -> tuple[tuple[str, str], ...]:
    found = [
        (join(base, str(enclosure.get("href") or "")), plain_line(str(enclosure.get("title") or "")))
        for enclosure in entry.get("enclosures", [])
        if enclosure.get("href")
    ]
    return tuple((url, name) for url, name in found if url is not None)


def _html(entry: Any) -> str | None:
    """The longest text that an entry has; None when it has none, so that its page is fetched."""
    texts = [str(content.get("value") or "") for content in entry.get("content", [])]
    texts.append(str(entry.get("summary") or ""))
    longest = max(texts, key=len)
    return longest if longest.strip() else None


def _time(entry: Any, name: str, zone: tzinfo) -> datetime | None:
    # A key that a feed does not have is answered by another one's value, for the sake of old programs.
    if name not in entry.keys():  # noqa: SIM118 - `in` alone follows those other keys
        return None
    found = dates.parse(str(entry.get(name) or ""), zone)
    parsed = entry.get(f"{name}_parsed")
    if found is None and isinstance(parsed, struct_time):
        try:
            return datetime(*parsed[:5], min(parsed[5], 59), tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
    return found


def _next_url(feed: Any, base: str) -> str | None:
    for link in feed.get("links", []):
        if link.get("rel") == "next" and link.get("href"):
            return join(base, str(link["href"]))
    return None


def _what_it_is(response: Response, text: str) -> str:
    """What stands in the place of a feed, and where the feed may be."""
    begins = " ".join(text[:240].split())[:60]
    page = Page(response)
    for node in page.tree.css('link[rel~="alternate"][href]'):
        if (node.attributes.get("type") or "").lower() in {"application/rss+xml", "application/atom+xml"}:
            url = page.join(node.attributes.get("href") or "")
            if url is not None:
                return stored("is a web page and no feed; it names the feed %(url)s", url=url)
    return stored("is no feed (RSS or Atom); it begins with %(begins)s", begins=repr(begins))
