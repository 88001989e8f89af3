"""Fetching list pages and articles, and storing the articles."""

from __future__ import annotations

import hashlib
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

from webqueue.handlers.crawl.articles import Article, Extractor, canonical_url
from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.protocol import Context, DocumentDraft, FetchError, Request, Response

_MISSING: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_WEB_PAGES: Final = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_NO_ANSWER: Final = frozenset({"network", "timeout"})
_LONGEST_PREVIEW: Final = 20_000  # characters of text in the result of a trial


class ListPageError(Exception):
    """The list could not be read, so that the crawl cannot go on; the text is for the operator.

    Attributes:
        details: what the job's result says of it.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class Met(Enum):
    """What a link was to the run."""

    NEW = "new"
    OLD = "old"
    ELSEWHERE = "elsewhere"  # a host of another rate key


def fetch_list_page(ctx: Context, number: int, url: str) -> Page | None:
    """Fetch list page `number`; None when the server says that there is no such page (404, 410).

    Raises:
        ListPageError: it could not be read.
    """
    try:
        response = ctx.fetch(Request(url, is_list_page=True))
    except FetchError as error:
        raise ListPageError(f"List page {number} could not be read: {error}") from None
    if response.status in _MISSING:
        return None
    if response.status != HTTPStatus.OK:
        raise ListPageError(
            f"List page {number} could not be read: HTTP {response.status} from {response.url}."
        )
    return Page(response)


def check_not_empty(ctx: Context, params: ListParameters, number: int, page: Page) -> None:
    """Refuse list page 1 without a link (DESIGN P12); a later page without one is the end of the list.

    Raises:
        ListPageError: it names the selector, the URL, and the copy that was kept.
    """
    if number > 1:
        return
    kept = ctx.keep_page("list-page-1.html", page.response.body)
    raise ListPageError(
        f"No link on list page 1: item_selector {params.item_selector!r} matches no link at {page.url}. "
        f"Compare it with the copy of the page that was kept as {kept}.",
        kept_page=kept,
        url=page.url,
    )


class Articles:
    """Fetches, reads and stores the articles of one run.

    Args:
        ctx: of the job.
        params: of the target.
        counters: of the run, written here.
    """

    def __init__(self, ctx: Context, params: ListParameters, counters: Counters) -> None:
        self._ctx = ctx
        self._counters = counters
        self._extractor = Extractor(
            title_selector=params.title_selector,
            content_selector=params.content_selector,
            ignore_selectors=params.ignore_selectors,
            timezone=ctx.site.timezone,
        )
        self._stored: set[str] = set()
        self.silent_in_a_row = 0
        self.last_failure = ""

    def crawl(self, link: Link, *, is_stored: bool) -> Met:
        """Fetch one article and store it; a stored one is fetched on condition that it changed.

        An article that cannot be fetched is counted and logged, and the crawl goes on.
        """
        response = self._fetch(link, is_stored=is_stored)
        if isinstance(response, Met):
            return response
        if response.status == HTTPStatus.NOT_MODIFIED and is_stored:
            self._ctx.seen(link.url)
            self._counters.unchanged += 1
            return Met.OLD
        if response.status in _MISSING and is_stored:
            self._ctx.missing(link.url)
        if response.status != HTTPStatus.OK:
            self._fail(f"HTTP {response.status} from {link.url}")
            return Met.NEW
        self._store(link, response)
        return Met.NEW

    def preview(self, link: Link) -> dict[str, Any] | None:
        """The article of a link as it would be stored; None when it cannot be fetched (then it is counted)."""
        response = self._fetch(link, is_stored=False)
        if isinstance(response, Met):
            return None
        if response.status != HTTPStatus.OK:
            self._fail(f"HTTP {response.status} from {link.url}")
            return None
        draft = self._draft(link, response)
        return {
            "url": draft.url,
            "title": draft.title,
            "text": draft.text[:_LONGEST_PREVIEW],
            "published_at": draft.published_at.isoformat() if draft.published_at else None,
        }

    def _fetch(self, link: Link, *, is_stored: bool) -> Response | Met:
        headers = self._ctx.validators(link.url) if is_stored else {}
        try:
            response = self._ctx.fetch(Request(link.url, headers=headers))
        except FetchError as error:
            if error.kind == "other_key":
                self._counters.skipped_other_key += 1
                self._ctx.log(f"Skipped, because its host has another rate key: {link.url}")
                return Met.ELSEWHERE
            self.silent_in_a_row = self.silent_in_a_row + 1 if error.kind in _NO_ANSWER else 0
            self._fail(str(error))
            return Met.NEW
        self.silent_in_a_row = 0
        return response

    def _fail(self, message: str) -> None:
        self.last_failure = message
        self._counters.fail(message)
        self._ctx.log(f"Article failed: {message}", level="warning")

    def _store(self, link: Link, response: Response) -> None:
        draft = self._draft(link, response)
        what = self._ctx.store(draft).what
        counters = self._counters
        if draft.url in self._stored:
            counters.duplicates += 1  # another link to a page of this run, told by its canonical address
            return
        self._stored.add(draft.url)
        if what == "new":
            counters.new += 1
        elif what == "changed":
            counters.changed += 1
        else:
            counters.unchanged += 1

    def _draft(self, link: Link, response: Response) -> DocumentDraft:
        content_type = response.headers.get("content-type", "")
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type not in _WEB_PAGES:
            return _file(link, response, media_type)
        page = Page(response)
        article = self._extractor.extract(page)
        self._count_texts(article)
        canonical = canonical_url(page) or link.url
        return DocumentDraft(
            url=canonical,
            title=article.title or link.text,
            text=article.text,
            published_at=article.published_at,
            hashed_text=article.hashed_text,
            original=response.body,
            content_type=content_type or "text/html",
            aliases=(link.url,) if canonical != link.url else (),
            etag=response.headers.get("etag"),
            last_modified=response.headers.get("last-modified"),
        )

    def _count_texts(self, article: Article) -> None:
        self._counters.read += 1
        self._counters.empty += not article.text
        self._counters.selector_missed += article.missed


def _file(link: Link, response: Response, media_type: str) -> DocumentDraft:
    """What is no web page is a document too, so that it is known the next time; its bytes are not kept."""
    text = ""
    if media_type.startswith("text/"):
        text = decode(response.body, response.headers.get("content-type")).text
    return DocumentDraft(
        url=link.url,
        title=link.text or link.url.rpartition("/")[2],
        text=text,
        hashed_text=None if text else hashlib.sha256(response.body).hexdigest(),
        content_type=media_type,
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
    )
