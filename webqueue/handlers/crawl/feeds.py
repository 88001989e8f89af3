"""The adapter `feed`: RSS and Atom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import Field, model_validator

from webqueue.handlers.crawl import dates, feed_files
from webqueue.handlers.crawl.listing import Listed, ListPage, fetch_list_page, unreadable
from webqueue.handlers.crawl.lists import NEXT_URL, next_by_checkpoint
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.numbers import Numbers
from webqueue.handlers.crawl.parameters import PAGE, ArticleParameters, Url, wrong
from webqueue.handlers.protocol import Context, Parameters
from webqueue.sentences import say, stored

ACCEPT: Final = "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.8"
# feedparser takes about 3 s for a megabyte, and cannot be stopped meanwhile.
_LARGEST: Final = 3_000_000


class FeedFields(Parameters):
    """Where a target of the adapter `feed` finds its articles."""

    feed_url: Url = Field(
        description="URL of the feed (RSS or Atom), absolute or relative to the site's base URL; {page} is the number."
    )
    page_start: int = Field(1, ge=0, le=1_000_000, description="What {page} is on page 1 of the feed.")
    max_pages: int = Field(
        10,
        ge=1,
        le=100_000,
        description="Pages of the feed: by {page}, else by the feed's own link to older entries.",
    )
    fetch_articles: bool = Field(
        True, description="Fetch the page of each entry; else the entry's own text is the article."
    )


class FeedParameters(ArticleParameters, FeedFields):
    """What a `crawl` target of a site with the adapter `feed` says."""

    @model_validator(mode="after")
    def _check_selectors(self) -> Self:
        if not self.fetch_articles and (self.title_selector or self.content_selector):
            field = "title_selector" if self.title_selector else "content_selector"
            raise wrong(field, say("finds nothing in a feed; leave it out, or set fetch_articles"))
        return self


class FeedListing:
    """The pages of a feed.

    Args:
        ctx: of the job; its parameters are `FeedParameters`.
        memory: of the target.
    """

    stops_at_known: bool = True

    def __init__(self, ctx: Context, memory: Memory) -> None:
        self._ctx = ctx
        self._memory = memory
        self._params: FeedParameters = ctx.params
        self._numbers = Numbers(
            self._params.feed_url, ctx.site.base_url, self._params.page_start, field="feed_url"
        )
        self._zone = dates.zone(ctx.site.timezone)
        self._visited: set[str] = set()

    @property
    def max_pages(self) -> int:
        """See `Listing`."""
        return self._params.max_pages

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """See `Listing`; where the feed itself leads to older entries, and no checkpoint knows where, page 1."""
        if not self._is_numbered and number > 1:
            return next_by_checkpoint(number, data) or self._numbers.page(1)
        return self._numbers.page(number)

    def read(self, listed: ListPage) -> Listed | None:
        """See `Listing`."""
        response = fetch_list_page(
            self._ctx,
            listed,
            self._memory,
            accept=ACCEPT,
            max_bytes=_LARGEST,
            may_be_unchanged=listed.number == 1,
        )
        if response is None:
            return None
        try:
            feed = feed_files.read(response, self._zone, with_texts=not self._params.fetch_articles)
        except ValueError as error:
            raise unreadable(self._ctx, listed, response, str(error), "feed.xml") from None
        return Listed(
            url=response.url,
            body=response.body,
            links=feed.links,
            following=self._after(listed, feed.next_url),
            ended="last_page",
            nothing=stored("none of the feed's %(count)s entries has a link", count=feed.without_link)
            if feed.without_link
            else stored("the feed has no entry (<item> or <entry>)"),
            kept_as="feed.xml",
            without_link=feed.without_link,
        )

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """See `Listing`."""
        return {NEXT_URL: following.url} if following is not None and not self._is_numbered else {}

    @property
    def _is_numbered(self) -> bool:
        return PAGE in self._params.feed_url

    def _after(self, listed: ListPage, next_url: str | None) -> ListPage | None:
        if self._is_numbered:
            return self._numbers.page(listed.number + 1)
        self._visited.add(listed.url)
        return (
            None if next_url is None or next_url in self._visited else ListPage(listed.number + 1, next_url)
        )
