"""What every adapter with list pages has: pages in an order, links on each, and a way to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.pages import Link
from webqueue.handlers.protocol import Context, FetchError, Request, Response
from webqueue.sentences import stored

MISSING: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class ListPageError(Exception):
    """The list could not be read, so that the crawl cannot go on; the text is for the operator.

    Attributes:
        details: what the job's result says of it.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class UnchangedError(Exception):
    """The list is as the target's last complete run had it (HTTP 304): there is nothing to do."""


@dataclass(frozen=True)
class ListPage:
    """One list page: its number, counted from 1, and where it is.

    Attributes:
        offset: links of the file at `url` that belong to earlier pages, for lists that come in large files.
    """

    number: int
    url: str
    offset: int = 0


@dataclass(frozen=True)
class Listed:
    """What was found on a list page.

    Attributes:
        url: that answered.
        body: as it came, for a copy.
        links: to articles, in order, each URL once.
        following: the next list page, None when this is the last.
        ended: why there is no next one, as the result names it.
        nothing: what was looked for, in the words of an error: `item_selector 'a' matches no link`.
        kept_as: file name of a copy.
        without_link: items whose link could not be made out.
        total: how many items the site says it has.
    """

    url: str
    body: bytes
    links: list[Link]
    following: ListPage | None
    ended: str
    nothing: str
    kept_as: str = "list-page-1.html"
    without_link: int = 0
    total: int | None = None


class Listing(Protocol):
    """The list pages of a target, by whatever way its site shows them."""

    @property
    def max_pages(self) -> int:
        """The last list page that is read."""

    @property
    def stops_at_known(self) -> bool:
        """Whether the newest comes first, so that a page without a new link is a reason to stop (DESIGN section 6)."""

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """The page to begin with: page `number`, or one from which the crawl walks there.

        Args:
            number: the first page that is wanted.
            data: of the checkpoint that the page before it left.

        Raises:
            ValueError: its URL cannot be used.
        """

    def read(self, listed: ListPage) -> Listed | None:
        """Fetch a list page and find its links; None when the server says that there is no such page.

        Raises:
            ListPageError: it could not be read.
            UnchangedError: it is as the last complete run had it.
        """

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """What `start` needs to go on with `following`."""


def fetch_list_page(
    ctx: Context,
    listed: ListPage,
    memory: Memory,
    *,
    accept: str | None = None,
    max_bytes: int = 20_000_000,
    may_be_unchanged: bool = True,
    note: bool = True,
) -> Response | None:
    """Fetch a list page; None when the server says that there is none (404, 410).

    Args:
        ctx: of the job.
        listed: which one.
        memory: of the target; a page that it knows is asked for conditionally, and noted for the next run.
        accept: media types, other than those of web pages.
        max_bytes: size at which the page is refused.
        may_be_unchanged: ask conditionally, where the target knows the page's version.
        note: keep that version for the next run; without it, the caller does.

    Raises:
        ListPageError: it could not be read.
        UnchangedError: it is as the target's last complete run had it.
    """
    headers = dict(memory.validators(listed.url)) if may_be_unchanged else {}
    if accept is not None:
        headers["accept"] = accept
    try:
        response = ctx.fetch(Request(listed.url, headers=headers, is_list_page=True, max_bytes=max_bytes))
    except FetchError as error:
        raise ListPageError(
            stored("List page %(page)s could not be read: %(why)s", page=listed.number, why=str(error))
        ) from None
    if response.status in MISSING:
        return None
    if response.status == HTTPStatus.NOT_MODIFIED and headers:
        if note:
            memory.keep(listed.url)
        raise UnchangedError
    if response.status != HTTPStatus.OK:
        raise ListPageError(
            stored(
                "List page %(page)s could not be read: HTTP %(status)s from %(url)s.",
                page=listed.number,
                status=response.status,
                url=response.url,
            )
        )
    if may_be_unchanged and note:
        memory.note(listed.url, response)
    return response


def unreadable(ctx: Context, listed: ListPage, response: Response, why: str, kept_as: str) -> ListPageError:
    """The error of a list page that is not what its adapter reads; a copy of it is kept."""
    kept = ctx.keep_page(kept_as, response.body)
    return ListPageError(
        stored(
            "List page %(page)s could not be read: %(url)s %(why)s. A copy of it was kept.",
            page=listed.number,
            url=response.url,
            why=why,
        ),
        kept_page=kept,
        url=response.url,
    )


def check_not_empty(ctx: Context, listed: ListPage, page: Listed) -> None:
    """Refuse list page 1 without a link (DESIGN P12); a later page without one is the end of the list.

    Raises:
        ListPageError: it names what was looked for, the URL, and the copy that was kept.
    """
    if listed.number > 1:
        return
    kept = ctx.keep_page(page.kept_as, page.body)
    raise ListPageError(
        stored(
            "No link on list page 1: %(nothing)s at %(url)s. Compare it with the copy of the page "
            "that was kept.",
            nothing=page.nothing,
            url=page.url,
        ),
        kept_page=kept,
        url=page.url,
    )
