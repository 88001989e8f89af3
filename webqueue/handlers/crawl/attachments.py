"""Files that articles link to: kept as documents of their own, with their bytes and without a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.pages import Page, one_line
from webqueue.handlers.protocol import Context, DocumentDraft, FetchError, Known, Request, Response
from webqueue.sentences import stored

_ENDINGS: Final = (
    ".pdf", ".ofd", ".ceb", ".doc", ".docx", ".wps", ".rtf", ".odt", ".xls", ".xlsx", ".et", ".ods", ".csv", ".ppt",
    ".pptx", ".odp", ".zip", ".rar", ".7z", ".gz", ".epub",
)  # fmt: skip
_MOST_OF_AN_ARTICLE: Final = 100
_LONGEST_NAME: Final = 300
_FILENAME: Final = re.compile(r"filename\*?=(?:UTF-8'[^']*')?\"?([^\";]+)", re.IGNORECASE)
_MEGABYTE: Final = 1_000_000


class Attachments:
    """Fetches and stores the files of the articles of one run; one that cannot be had spoils no article.

    Args:
        ctx: of the job.
        max_mb: larger files are left out (megabytes).
        counters: of the run, written here.
    """

    def __init__(self, ctx: Context, max_mb: int, counters: Counters) -> None:
        self._ctx = ctx
        self._max_bytes = max_mb * _MEGABYTE
        self._counters = counters
        self._met: set[str] = set()

    def store(self, files: Iterable[tuple[str, str]]) -> None:
        """Fetch and store files that are not known yet; with force, known ones that changed too.

        Args:
            files: (URL, text of the link) of each.
        """
        for number, (url, name) in enumerate(files):
            if number >= _MOST_OF_AN_ARTICLE:
                self._ctx.log(
                    stored(
                        "More than %(count)s files at one article; the rest is left out.",
                        count=_MOST_OF_AN_ARTICLE,
                    )
                )
                return
            if url not in self._met:
                self._met.add(url)
                self._store(url, name)

    def _store(self, url: str, name: str) -> None:
        state = self._ctx.known(url)
        if state == Known.IN_CHAIN or (state == Known.KNOWN and not self._ctx.force):
            return
        is_stored = state == Known.KNOWN
        headers = self._ctx.validators(url) if is_stored else {}
        try:
            response = self._ctx.fetch(Request(url, headers=headers, max_bytes=self._max_bytes))
        except FetchError as error:
            if error.kind == "other_key":
                self._counters.skipped_other_key += 1
            else:
                self._fail(str(error))
            return
        if response.status == HTTPStatus.NOT_MODIFIED and is_stored:
            self._ctx.seen(url)
        elif response.status == HTTPStatus.OK:
            self._ctx.store(file_draft(url, name, response, keep=True))
            self._counters.attachments += 1
        else:
            self._fail(stored("HTTP %(status)s from %(url)s", status=response.status, url=url))

    def _fail(self, message: str) -> None:
        self._counters.attachments_failed += 1
        self._ctx.log(stored("Attachment left out: %(why)s", why=message), level="warning")


def files_of(page: Page, content_selector: str | None) -> list[tuple[str, str]]:
    """(URL, text of the link) of the files that an article links to, in order, each once.

    Args:
        page: with the article.
        content_selector: where its text is; None or without a match: the whole page.
    """
    parts: list[LexborHTMLParser | LexborNode] = (
        list(page.tree.css(content_selector)) if content_selector else []
    )
    found: dict[str, str] = {}
    for part in parts or [page.tree]:
        for node in part.css("a[href]"):
            url = page.join(node.attributes.get("href") or "")
            if url is not None and is_file(url):
                found.setdefault(url, one_line(node.text()))
    return list(found.items())


def is_file(url: str) -> bool:
    """Whether a URL looks like that of a file to be kept, by the ending of its path."""
    return urlsplit(url).path.lower().endswith(_ENDINGS)


def file_draft(url: str, name: str, response: Response, *, keep: bool) -> DocumentDraft:
    """The document of what is no web page.

    Args:
        url: of the link.
        name: its text; else the name that the server gives the file, else the end of its URL.
        response: with the file.
        keep: whether its bytes are kept.
    """
    title = name or _name_by_server(response) or unquote(urlsplit(url).path.rpartition("/")[2]) or url
    return DocumentDraft(
        url=url,
        title=title[:_LONGEST_NAME],
        text="",
        hashed_text=hashlib.sha256(response.body).hexdigest(),
        original=response.body if keep else None,
        content_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
    )


def _name_by_server(response: Response) -> str:
    match = _FILENAME.search(response.headers.get("content-disposition", ""))
    return one_line(unquote(match.group(1))) if match else ""
