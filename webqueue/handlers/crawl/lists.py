"""The adapter `list`: pages of links, found by number in the URL or from link to link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webqueue.handlers.crawl.listing import Listed, ListPage, fetch_list_page
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.numbers import Numbers
from webqueue.handlers.crawl.pages import Page
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context
from webqueue.sentences import stored

NEXT_URL: Final = "next_url"


class HtmlListing:
    """The list pages of a target with the adapter `list`.

    Args:
        ctx: of the job; its parameters are `ListParameters`.
        memory: of the target.
    """

    stops_at_known: bool = True

    def __init__(self, ctx: Context, memory: Memory) -> None:
        self._ctx = ctx
        self._memory = memory
        self._params: ListParameters = ctx.params
        self._numbers = Numbers(
            self._params.list_url, ctx.site.base_url, self._params.page_start, self._params.first_list_url
        )
        self._visited: set[str] = set()

    @property
    def max_pages(self) -> int:
        """See `Listing`."""
        return self._params.max_pages

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """See `Listing`; where pages are found by links and no checkpoint knows the URL, page 1."""
        if self._params.next_selector is not None and number > 1:
            return next_by_checkpoint(number, data) or self._numbers.page(1)
        return self._numbers.page(number)

    def read(self, listed: ListPage) -> Listed | None:
        """See `Listing`."""
        response = fetch_list_page(self._ctx, listed, self._memory, may_be_unchanged=listed.number == 1)
        if response is None:
            return None
        page = Page(response)
        return Listed(
            url=page.url,
            body=response.body,
            links=page.links(self._params.item_selector),
            following=self._after(listed, page),
            ended="no_next_link",
            nothing=stored(
                "item_selector %(selector)s matches no link", selector=repr(self._params.item_selector)
            ),
        )

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """See `Listing`."""
        return {NEXT_URL: following.url} if self._params.next_selector is not None and following else {}

    def _after(self, listed: ListPage, page: Page) -> ListPage | None:
        self._visited.add(listed.url)
        if self._params.next_selector is None:
            return self._numbers.page(listed.number + 1)
        url = page.next_url(self._params.next_selector)
        # A link back to an earlier page is how some sites say that there is no next one.
        return None if url is None or url in self._visited else ListPage(listed.number + 1, url)


def next_by_checkpoint(number: int, data: Mapping[str, Any]) -> ListPage | None:
    """The page that a checkpoint names as the next one, None where it names none that can be used."""
    url = data.get(NEXT_URL)
    return ListPage(number, url) if isinstance(url, str) and join(url, "") is not None else None
