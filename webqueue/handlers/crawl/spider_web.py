"""What of a site belongs to a target of the adapter `spider`, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field

from webqueue.handlers.crawl.attachments import is_file
from webqueue.handlers.crawl.listing import Listed, ListPage, ListPageError, fetch_list_page
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.parameters import ArticleParameters, OptionalUrl, Url
from webqueue.handlers.crawl.patterns import Chooser, Patterns
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context, Parameters, Response
from webqueue.sentences import stored

_LINKS: Final = "a[href], area[href]"
_NO_PAGES: Final = (
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".ico", ".bmp", ".tif", ".tiff", ".mp3", ".mp4", ".m4a", ".avi",
    ".mov", ".wmv", ".wav", ".flv", ".css", ".js", ".json", ".xml", ".rss", ".exe", ".apk", ".dmg", ".iso", ".tar",
)  # fmt: skip


class SpiderFields(Parameters):
    """Where a target of the adapter `spider` finds its pages."""

    start_urls: tuple[Url, ...] = Field(
        (), max_length=100, description="Where it begins; empty: the site's base URL."
    )
    prefix: OptionalUrl = Field(
        None,
        description="Only links that begin so are followed; empty: those below the folder of the first start URL.",
    )
    max_depth: int = Field(2, ge=0, le=50, description="How many links a page may lie behind a start page.")
    max_pages: int = Field(500, ge=1, le=5_000, description="Pages that one crawl fetches at most.")
    hub_depth: int = Field(
        1,
        ge=0,
        le=50,
        description="Pages down to this depth are fetched in every run, known or not, for new links.",
    )
    article_patterns: Patterns = Field(
        (),
        description="Only pages that match one of these patterns are stored, the others only followed; empty: all.",
    )
    exclude: Patterns = Field(
        (), description="Pages that match one of these patterns are neither stored nor followed."
    )


class SpiderParameters(ArticleParameters, SpiderFields):
    """What a `crawl` target of a site with the adapter `spider` says."""


class Web:
    """What of a site belongs to a target.

    Args:
        params: of the target.
        base_url: of the site.

    Raises:
        ListPageError: a start URL or the prefix cannot be used.
    """

    def __init__(self, params: SpiderParameters, base_url: str) -> None:
        self.start_urls = [_joined(base_url, url, "start_urls") for url in params.start_urls or ("",)]
        folder = self.start_urls[0].partition("?")[0]
        folder = folder[: folder.rindex("/") + 1]
        self.prefix = _joined(base_url, params.prefix, "prefix") if params.prefix else folder
        self._articles = Chooser(params.article_patterns)
        self._followed = Chooser((), params.exclude)

    def has(self, url: str) -> bool:
        """Whether a page belongs to it, by its URL."""
        path = urlsplit(url).path.lower()
        return url.startswith(self.prefix) and not path.endswith(_NO_PAGES) and self._followed.wants(url)

    def is_article(self, url: str) -> bool:
        """Whether a page of it is to be stored."""
        return self._articles.wants(url)

    def links(self, page: Page) -> list[Link]:
        """The links of a page that are to be followed; files are the articles' own matter."""
        return [link for link in page.links(_LINKS) if self.has(link.url) and not is_file(link.url)]

    def listed(self, response: Response) -> Listed:
        """A start page as a list of links."""
        page = Page(response)
        return Listed(
            url=page.url,
            body=response.body,
            links=[link for link in self.links(page) if link.url != join(page.url, "")],
            following=None,
            ended="no_link_left",
            nothing=stored("no link begins with %(prefix)s", prefix=repr(self.prefix)),
            kept_as="start-page.html",
        )


class StartPages:
    """The first start page as a list page, for a trial.

    Args:
        ctx: of the job; its parameters are `SpiderParameters`.
        memory: of the target.
    """

    stops_at_known: bool = False
    max_pages: int = 1

    def __init__(self, ctx: Context, memory: Memory) -> None:
        self._ctx = ctx
        self._memory = memory
        self._web = Web(ctx.params, ctx.site.base_url)

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """See `Listing`."""
        return ListPage(1, self._web.start_urls[0])

    def read(self, listed: ListPage) -> Listed | None:
        """See `Listing`."""
        response = fetch_list_page(self._ctx, listed, self._memory, may_be_unchanged=False)
        return None if response is None else self._web.listed(response)

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """See `Listing`."""
        return {}


def _joined(base_url: str, link: str, field: str) -> str:
    url = join(base_url, link)
    if url is None:
        raise ListPageError(
            stored(
                "%(field)s: %(link)s is no usable URL on the site %(site)s. Check it and base_url.",
                field=field,
                link=repr(link),
                site=repr(base_url),
            )
        )
    return url
