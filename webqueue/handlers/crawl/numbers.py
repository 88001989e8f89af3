"""List pages that are told apart by a number in their URL."""

from __future__ import annotations

from dataclasses import dataclass

from webqueue.handlers.crawl.listing import ListPage
from webqueue.handlers.crawl.parameters import PAGE
from webqueue.handlers.crawl.urls import join
from webqueue.sentences import stored


@dataclass(frozen=True)
class Numbers:
    """How the number of a list page becomes its URL.

    Attributes:
        template: URL, relative to `base_url`, in which `{page}` stands for the number.
        base_url: of the site.
        page_start: the number of page 1.
        first: URL of page 1, where it has one of its own.
        field: the parameter that holds the template, for messages.
    """

    template: str
    base_url: str
    page_start: int = 1
    first: str | None = None
    field: str = "list_url"

    def page(self, number: int) -> ListPage:
        """List page `number`.

        Raises:
            ValueError: its URL cannot be used.
        """
        template = self.first if number == 1 and self.first else self.template
        # Replaced, not formatted: other braces in a URL mean nothing here.
        link = template.replace(PAGE, str(self.page_start + number - 1))
        url = join(self.base_url, link)
        if url is None:
            raise ValueError(
                stored(
                    "List page %(page)s has no usable URL: %(link)s on the site %(site)s. Check %(field)s "
                    "and the site's base_url.",
                    page=number,
                    link=repr(link),
                    site=repr(self.base_url),
                    field=self.field,
                )
            )
        return ListPage(number, url)
