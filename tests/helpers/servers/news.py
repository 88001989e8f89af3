"""A news site whose articles are added, changed, pinned and removed while it is being crawled."""

from __future__ import annotations

import hashlib
import html
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tests.helpers.servers.base import Exchange, Site, list_page, not_found

FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Article:
    """One article; `status` other than 200 means that it is gone."""

    number: int
    title: str
    text: str
    published: datetime
    status: int = 200


class NewsSite(Site):
    """List pages of articles, the newest first: `/news/index_1.html` (also `/news/index.html`), and so on.

    Links are found by `ul.list a`, the next page by `a.next`; on an article the title by `h1`, the text by
    `div.content`, and by `span.views` a counter that is different each time. The page after the last one has an
    empty list.

    Args:
        pages: full list pages at first.
        per_page: articles on a list page.
        etags: send an ETag and answer conditional requests.
        counter: show the counter of views.
        absolute_base: links are absolute URLs that begin so, instead of relative ones.
    """

    def __init__(
        self,
        pages: int = 3,
        per_page: int = 5,
        *,
        etags: bool = False,
        counter: bool = False,
        absolute_base: str = "",
    ) -> None:
        self.per_page = per_page
        self.etags = etags
        self.counter = counter
        self.absolute_base = absolute_base
        self._lock = threading.Lock()
        self._articles: dict[int, Article] = {}
        self._pinned: list[int] = []
        self._views = 0
        for _ in range(pages * per_page):
            self.add()

    @property
    def articles(self) -> list[Article]:
        """The listed articles, the newest first."""
        with self._lock:
            return [
                article
                for _, article in sorted(self._articles.items(), reverse=True)
                if article.status == 200
            ]

    @property
    def list_pages(self) -> int:
        """How many list pages have articles."""
        return -(-len(self.articles) // self.per_page)

    def article(self, number: int) -> Article:
        """The article as it stands."""
        with self._lock:
            return self._articles[number]

    def path_of(self, number: int) -> str:
        """The path of an article."""
        return f"/news/article_{number}.html"

    def add(self, title: str | None = None, text: str | None = None) -> Article:
        """Publish a new article, which comes first in the list."""
        with self._lock:
            number = len(self._articles) + 1
            article = Article(
                number,
                title or f"Report {number} of the harbour office",
                text or story(number),
                FIRST_DAY + timedelta(days=number),
            )
            self._articles[number] = article
            return article

    def change(self, number: int, *, title: str | None = None, text: str | None = None) -> Article:
        """Rewrite an article; what is left out stays."""
        with self._lock:
            old = self._articles[number]
            self._articles[number] = replace(old, title=title or old.title, text=text or old.text)
            return self._articles[number]

    def remove(self, number: int, *, status: int = 404) -> None:
        """Take an article off the list, and answer `status` for it."""
        with self._lock:
            self._articles[number] = replace(self._articles[number], status=status)

    def pin(self, number: int) -> None:
        """Show an article at the top of every list page, too."""
        with self._lock:
            self._pinned.append(number)

    def respond(self, exchange: Exchange) -> None:
        name = exchange.request.path.removeprefix("/news/").removesuffix(".html")
        kind, _, number = name.partition("_")
        if name == "index":
            self._send_list(exchange, 1)
        elif kind == "index" and number.isdecimal() and int(number) >= 1:
            self._send_list(exchange, int(number))
        elif kind == "article" and number.isdecimal():
            self._send_article(exchange, int(number))
        else:
            not_found(exchange)

    def _send_list(self, exchange: Exchange, page: int) -> None:
        listed = self.articles
        first = (page - 1) * self.per_page
        shown = listed[first : first + self.per_page]
        pinned = [self.article(number) for number in self._pinned]
        links = [
            (f"{self.absolute_base}{self.path_of(article.number)}", article.title)
            for article in (*(pinned if shown else ()), *shown)
        ]
        more = len(listed) > first + self.per_page
        exchange.send(list_page(links, next_url=f"/news/index_{page + 1}.html" if more else None))

    def _send_article(self, exchange: Exchange, number: int) -> None:
        with self._lock:
            article = self._articles.get(number)
            self._views += 1
            views = self._views
        if article is None or article.status != 200:
            exchange.send("<!doctype html><title>Gone</title>", status=article.status if article else 404)
            return
        body = article_page(article, views if self.counter else None)
        etag = f'"{hashlib.sha256(body.encode()).hexdigest()[:16]}"' if self.etags else None
        exchange.send(body, etag=etag)


def story(number: int) -> str:
    """A text long enough to be taken for an article, different for each number."""
    return "\n".join(
        f"In paragraph {part} of report {number} the harbour office tells how many ships came in, what they carried, "
        f"and why the tide of day {number * 7 + part} kept {number + part} of them waiting outside the mole."
        for part in range(1, 5)
    )


def article_page(article: Article, views: int | None = None) -> str:
    """An article as a page."""
    paragraphs = "\n".join(f"<p>{html.escape(line)}</p>" for line in article.text.splitlines())
    counter = f'<p>Seen <span class="views">{views}</span> times</p>' if views is not None else ""
    title = html.escape(article.title)
    day = article.published.date().isoformat()
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title} - Harbour news</title>\n'
        f'<meta property="article:published_time" content="{article.published.isoformat()}"></head>\n<body>\n'
        f'<nav><a href="/news/index.html">News</a> <a href="/">Home</a></nav>\n<article>\n<h1>{title}</h1>\n'
        f'<time datetime="{day}">{day}</time>\n<div class="content">\n{paragraphs}\n{counter}\n</div>\n</article>\n'
        f"<footer>The harbour office</footer>\n</body>\n</html>\n"
    )
