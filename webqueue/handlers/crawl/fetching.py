"""Fetching articles, and storing them."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

from webqueue.handlers.crawl.articles import Article, Extractor, canonical_url, whole_text
from webqueue.handlers.crawl.attachments import Attachments, file_draft, files_of
from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.listing import MISSING
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.parameters import ArticleParameters
from webqueue.handlers.protocol import Context, DocumentDraft, FetchError, Request, Response
from webqueue.sentences import stored

_WEB_PAGES: Final = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_NO_ANSWER: Final = frozenset({"network", "timeout"})
_LONGEST_PREVIEW: Final = 20_000  # characters of text in the result of a trial
_LOGGED_ELSEWHERE: Final = 20


class Met(Enum):
    """What a link was to the run."""

    NEW = "new"
    OLD = "old"
    RECENT = "recent"  # known, and young enough to be fetched again
    ELSEWHERE = "elsewhere"  # a host of another rate key


class Articles:
    """Fetches, reads and stores the articles of one run.

    Args:
        ctx: of the job.
        params: of the target.
        counters: of the run, written here.

    Attributes:
        stored: URLs of the documents that this run stored.
        silent_in_a_row: articles that got no answer since the last one that did.
        in_doubt: the last articles got none, or HTTP 403: perhaps a block begins, and they have to be asked for again.
        last_failure: what was wrong with the last article that failed.
    """

    def __init__(self, ctx: Context, params: ArticleParameters, counters: Counters) -> None:
        self._ctx = ctx
        self._params = params
        self._counters = counters
        self._extractor = Extractor(
            title_selector=params.title_selector,
            content_selector=params.content_selector,
            ignore_selectors=params.ignore_selectors,
            timezone=ctx.site.timezone,
        )
        self._attachments = (
            Attachments(ctx, params.attachment_max_mb, counters) if params.attachments else None
        )
        self.stored: set[str] = set()
        self.silent_in_a_row = 0
        self.in_doubt = False
        self.last_failure = ""

    def crawl(self, link: Link, *, is_stored: bool) -> Met:
        """Fetch one article and store it; a stored one is fetched on condition that it changed.

        An article that cannot be fetched is counted and logged, and the crawl goes on.
        """
        if link.html is not None:
            what = self._store(self._draft_of_list(link, link.html))
            return Met.OLD if is_stored and what == "unchanged" else Met.NEW
        response = self.fetch(link, is_stored=is_stored)
        if isinstance(response, Met):
            return response
        self.take(link, response)
        return Met.NEW

    def fetch(self, link: Link, *, is_stored: bool, conditional: bool = True) -> Response | Met:
        """The page of an article; what the link was to the run, when there is nothing to store."""
        headers = self._ctx.validators(link.url) if is_stored and conditional else {}
        try:
            response = self._ctx.fetch(Request(link.url, headers=headers))
        except FetchError as error:
            if error.kind == "other_key":
                self._skip(link)
                return Met.ELSEWHERE
            self.silent_in_a_row = self.silent_in_a_row + 1 if error.kind in _NO_ANSWER else 0
            self.in_doubt = self.silent_in_a_row > 0
            self.fail(str(error))
            return Met.NEW
        self.silent_in_a_row = 0
        self.in_doubt = response.status == HTTPStatus.FORBIDDEN
        if response.status == HTTPStatus.NOT_MODIFIED and is_stored:
            self._ctx.seen(link.url)
            self._counters.unchanged += 1
            return Met.OLD
        if response.status in MISSING and is_stored:
            self._miss(link, response)
            return Met.OLD
        if response.status != HTTPStatus.OK:
            self.fail(stored("HTTP %(status)s from %(url)s", status=response.status, url=link.url))
            return Met.NEW
        return response

    def take(self, link: Link, response: Response) -> Page | None:
        """Store the article of a response; its page, None when it is a file."""
        page = None
        if is_web_page(response):
            page = Page(response)
            draft = self._draft(link, page)
        else:
            draft = _file(link, response, keep=self._attachments is not None)
        self._store(draft)
        return page

    def preview(self, link: Link) -> dict[str, Any] | None:
        """The article of a link as it would be stored; None when it cannot be fetched (then it is counted)."""
        if link.html is not None:
            draft = self._draft_of_list(link, link.html)
        else:
            response = self.fetch(link, is_stored=False)
            if isinstance(response, Met):
                return None
            is_page = is_web_page(response)
            draft = self._draft(link, Page(response)) if is_page else _file(link, response, keep=False)
        return {
            "url": draft.url,
            "title": draft.title,
            "text": draft.text[:_LONGEST_PREVIEW],
            "published_at": draft.published_at.isoformat() if draft.published_at else None,
        }

    def fail(self, message: str) -> None:
        """Count and log an article that could not be fetched."""
        self.last_failure = message
        self._counters.fail(message)
        self._ctx.log(stored("Article failed: %(why)s", why=message), level="warning")

    def _miss(self, link: Link, response: Response) -> None:
        """Note that a stored article is not there any more; the second run in a row that says so marks it gone."""
        self._counters.missing += 1
        gone = self._ctx.missing(link.url)
        self._counters.gone += gone
        facts = {"status": response.status, "url": link.url}
        self._ctx.log(
            stored("HTTP %(status)s from a stored article, it is gone now, and kept: %(url)s", **facts)
            if gone
            else stored(
                "HTTP %(status)s from a stored article, once more, and it counts as gone: %(url)s", **facts
            )
        )

    def _skip(self, link: Link) -> None:
        self._counters.skipped_other_key += 1
        if self._counters.skipped_other_key <= _LOGGED_ELSEWHERE:
            self._ctx.log(stored("Skipped, because its host has another rate key: %(url)s", url=link.url))

    def _store(self, draft: DocumentDraft) -> str:
        what = self._ctx.store(draft).what
        counters = self._counters
        if draft.url in self.stored:
            counters.duplicates += 1  # another link to a page of this run, told by its canonical address
            return what
        self.stored.add(draft.url)
        if what == "new":
            counters.new += 1
        elif what == "changed":
            counters.changed += 1
        else:
            counters.unchanged += 1
        return what

    def _draft(self, link: Link, page: Page) -> DocumentDraft:
        response = page.response
        article = self._extractor.extract(page)
        self._count_texts(article)
        self._keep_files(page, link)
        canonical = canonical_url(page) or link.url
        return DocumentDraft(
            url=canonical,
            title=article.title or link.text,
            text=article.text,
            published_at=article.published_at or link.published_at,
            hashed_text=article.hashed_text,
            original=response.body,
            content_type=response.headers.get("content-type") or "text/html",
            aliases=(link.url,) if canonical != link.url else (),
            etag=response.headers.get("etag"),
            last_modified=response.headers.get("last-modified"),
        )

    def _draft_of_list(self, link: Link, html: str) -> DocumentDraft:
        """The article as the list itself has it."""
        page = Page(
            Response(link.url, HTTPStatus.OK, {"content-type": "text/html; charset=utf-8"}, html.encode(), 0)
        )
        article = Article(link.text, whole_text(page.tree), link.published_at)
        self._count_texts(article)
        self._keep_files(page, replace(link, html=None))
        return DocumentDraft(
            url=link.url,
            title=link.text or article.text[:200] or link.url,
            text=article.text,
            published_at=link.published_at,
            original=page.response.body,
            content_type="text/html; charset=utf-8",
        )

    def _keep_files(self, page: Page, link: Link) -> None:
        """Keep what belongs to an article before the article itself: one that is stored is complete."""
        if self._attachments is not None and not self._ctx.job.is_trial:
            files = dict(files_of(page, self._params.content_selector)) | dict(link.files)
            files.pop(link.url, None)
            self._attachments.store(files.items())

    def _count_texts(self, article: Article) -> None:
        self._counters.read += 1
        self._counters.empty += not article.text
        self._counters.selector_missed += article.missed


def is_web_page(response: Response) -> bool:
    """Whether the server says that it is a page, and no file of another kind."""
    return media_type(response) in _WEB_PAGES


def media_type(response: Response) -> str:
    """What kind of file the server says it is, `text/html` for instance."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _file(link: Link, response: Response, *, keep: bool) -> DocumentDraft:
    """What is no web page is a document too, so that it is known the next time."""
    draft = replace(file_draft(link.url, link.text, response, keep=keep), published_at=link.published_at)
    if media_type(response).startswith("text/"):
        text = decode(response.body, response.headers.get("content-type")).text
        return replace(draft, text=text, hashed_text=None) if text else draft
    return draft
