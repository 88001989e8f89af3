"""Which list pages there are: by number in the URL, or from link to link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webqueue.handlers.crawl.pages import Page
from webqueue.handlers.crawl.parameters import PAGE, ListParameters
from webqueue.handlers.crawl.urls import join

NEXT_URL: Final = "next_url"


@dataclass(frozen=True)
class ListPage:
    """One list page: its number, counted from 1, and where it is."""

    number: int
    url: str


class ListPages:
    """The list pages of a target.

    Args:
        params: of the target.
        base_url: of the site; list URLs may be relative to it.
    """

    def __init__(self, params: ListParameters, base_url: str) -> None:
        self._params = params
        self._base_url = base_url
        self._visited: set[str] = set()

    @property
    def by_links(self) -> bool:
        """Whether each page is only found through the one before it."""
        return self._params.next_selector is not None

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """The page to begin with.

        Args:
            number: the first page that is wanted.
            data: of the checkpoint that the page before it left.

        Returns:
            That page; where pages are found by links and no checkpoint knows its URL, page 1, from which the crawl
            has to walk.

        Raises:
            ValueError: its URL cannot be used.
        """
        known_url = data.get(NEXT_URL)
        if self.by_links and number > 1:
            if isinstance(known_url, str) and join(known_url, "") is not None:
                return ListPage(number, known_url)
            number = 1
        return self._numbered(number)

    def after(self, listed: ListPage, page: Page) -> ListPage | None:
        """The page after `listed`, or None when it is the last one."""
        self._visited.add(listed.url)
        if self._params.next_selector is None:
            return self._numbered(listed.number + 1)
        url = page.next_url(self._params.next_selector)
        # A link back to an earlier page is how some sites say that there is no next one.
        return None if url is None or url in self._visited else ListPage(listed.number + 1, url)

    def _numbered(self, number: int) -> ListPage:
        if number == 1 and self._params.first_list_url:
            template = self._params.first_list_url
        else:
            template = self._params.list_url
        # Replaced, not formatted: other braces in a URL mean nothing here.
        link = template.replace(PAGE, str(self._params.page_start + number - 1))
        url = join(self._base_url, link)
        if url is None:
            raise ValueError(
                f"List page {number} has no usable URL: {link!r} on the site {self._base_url!r}."
            )
        return ListPage(number, url)
