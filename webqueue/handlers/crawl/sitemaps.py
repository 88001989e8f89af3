"""The adapter `sitemap`: every page that a site's sitemap names, in pages of 100 addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from webqueue.handlers.crawl import dates
from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.hashes import short_hash
from webqueue.handlers.crawl.listing import (
    Listed,
    ListPage,
    ListPageError,
    UnchangedError,
    fetch_list_page,
    unreadable,
)
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.numbers import Numbers
from webqueue.handlers.crawl.pages import Link
from webqueue.handlers.crawl.parameters import ArticleParameters, Url
from webqueue.handlers.crawl.patterns import Chooser, Patterns
from webqueue.handlers.crawl.sitemap_files import (
    LARGEST_FILE,
    Entry,
    NoSitemapError,
    SitemapFile,
    read,
)
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context, Parameters, Response, StopRequested
from webqueue.sentences import stored

ADDRESSES_OF_A_PAGE: Final = 100
_ACCEPT: Final = "application/xml, text/xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
_LONGEST_LASTMOD: Final = 40


class SitemapFields(Parameters):
    """Where a target of the adapter `sitemap` finds its articles."""

    sitemap_url: Url = Field(
        "/sitemap.xml",
        description="URL of the sitemap or of its index; also packed (.gz), or one URL a line.",
    )
    include: Patterns = Field(
        (),
        description="Only pages that match one of these patterns, e.g. /news/*; empty: every page.",
    )
    exclude: Patterns = Field((), description="No page that matches one of these patterns.")
    max_files: int = Field(500, ge=1, le=2_000, description="Files of the sitemap that are read at most.")
    max_pages: int = Field(
        1_000, ge=1, le=100_000, description="Pages of 100 addresses that are crawled at most."
    )


class SitemapParameters(ArticleParameters, SitemapFields):
    """What a `crawl` target of a site with the adapter `sitemap` says."""


@dataclass(frozen=True)
class _Open:
    """A file that was fetched, and what it links to."""

    url: str
    response: Response
    links: list[Link]


class SitemapListing:
    """The addresses of a sitemap, 100 a page, file after file in the order of the index.

    The newest is not first, so that known pages are no reason to stop; instead, files whose `lastmod` in the index is
    the one of the last complete run, and files that the server calls unchanged, are not read again.

    Args:
        ctx: of the job; its parameters are `SitemapParameters`.
        memory: of the target.
        counters: of the run, written here.
    """

    stops_at_known: bool = False

    def __init__(self, ctx: Context, memory: Memory, counters: Counters) -> None:
        self._ctx = ctx
        self._memory = memory
        self._counters = counters
        self._params: SitemapParameters = ctx.params
        self._zone = dates.zone(ctx.site.timezone)
        self._chooser = Chooser(self._params.include, self._params.exclude)
        self._files: list[Entry] = []
        self._met: set[str] = set()
        self._open: _Open | None = None
        self._left_out = 0

    @property
    def max_pages(self) -> int:
        """See `Listing`."""
        return self._params.max_pages

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """See `Listing`; without a checkpoint, the first page, from which the crawl walks to `number`."""
        self._met = {name for name in data.get("met", []) if isinstance(name, str)}
        self._files = [
            Entry(file[0], file[1])
            for file in data.get("files", [])
            if isinstance(file, list) and len(file) == 2 and all(isinstance(part, str) for part in file)
        ]
        url, offset = data.get("url"), data.get("offset")
        if number > 1 and isinstance(url, str) and isinstance(offset, int) and join(url, "") is not None:
            return ListPage(number, url, offset)
        first = Numbers(self._params.sitemap_url, self._ctx.site.base_url, field="sitemap_url").page(1)
        self._met = {short_hash(first.url)}
        return first

    def read(self, listed: ListPage) -> Listed | None:
        """See `Listing`; it goes on to the first file that has an address."""
        file, offset = Entry(listed.url, ""), listed.offset
        if self._files and self._files[0].loc == listed.url:
            file = self._files.pop(0)
        while True:
            if self._ctx.should_stop():
                raise StopRequested
            opened = self._opened(file, listed.number)
            if opened is not None and (len(opened.links) > offset or not self._files):
                return self._page(listed.number, offset, opened)
            if not self._files:
                return self._nothing_left(listed)
            file, offset = self._files.pop(0), 0

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """See `Listing`: the files that are left, and how far the one being read is."""
        if following is None:
            return {}
        return {
            "url": following.url,
            "offset": following.offset,
            "files": [[file.loc, file.lastmod] for file in self._files],
            "met": sorted(self._met),
        }

    def _opened(self, file: Entry, number: int) -> _Open | None:
        """A file and its links, none for an index; None when it has nothing for this run."""
        if self._open is not None and self._open.url == file.loc:
            return self._open
        try:
            response = self._fetched(file, number)
            found = self._content(file, number, response)
        except UnchangedError:
            self._memory.keep(file.loc, lastmod=file.lastmod)
            self._counters.files_unchanged += 1
            return None
        except ListPageError as error:
            if self._is_whole_sitemap:
                raise
            self._counters.files_failed += 1
            self._ctx.log(stored("File of the sitemap left out: %(why)s", why=str(error)), level="warning")
            return None
        if found.is_index:
            self._enqueue(found.entries, response.url)
            return _Open(file.loc, response, [])
        # Of an index nothing is noted: that it did not change says nothing of its files.
        self._memory.note(file.loc, response, lastmod=file.lastmod)
        self._open = _Open(file.loc, response, self._links(found.entries, response.url))
        return self._open

    @property
    def _is_whole_sitemap(self) -> bool:
        """Whether nothing but the file that the target names was met so far."""
        return len(self._met) <= 1

    def _fetched(self, file: Entry, number: int) -> Response:
        if self._memory.same_lastmod(file.loc, file.lastmod):
            raise UnchangedError
        page = ListPage(number, file.loc)
        response = fetch_list_page(
            self._ctx, page, self._memory, accept=_ACCEPT, max_bytes=LARGEST_FILE, note=False
        )
        if response is None:
            raise ListPageError(stored("The sitemap %(url)s does not exist: HTTP 404 or 410.", url=file.loc))
        return response

    def _content(self, file: Entry, number: int, response: Response) -> SitemapFile:
        try:
            found = read(response.body, response.headers.get("content-type"))
        except NoSitemapError as error:
            page = ListPage(number, file.loc)
            raise unreadable(self._ctx, page, response, str(error), "sitemap.xml") from None
        if found.damaged:
            self._ctx.log(
                stored(
                    "%(url)s is damaged or too long; %(count)s entries were read.",
                    url=file.loc,
                    count=len(found.entries),
                ),
                level="warning",
            )
        return found

    def _enqueue(self, entries: list[Entry], base: str) -> None:
        """Put an index's files behind those that wait; one that was met before, in a loop say, is left out."""
        for entry in entries:
            url = join(base, entry.loc)
            if url is None or short_hash(url) in self._met:
                continue
            if len(self._met) > self._params.max_files:
                self._left_out += 1
                continue
            self._met.add(short_hash(url))
            self._files.append(Entry(url, entry.lastmod[:_LONGEST_LASTMOD]))
        if self._left_out:
            self._ctx.log(
                stored(
                    "%(count)s files of the sitemap are left out: max_files is %(most)s.",
                    count=self._left_out,
                    most=self._params.max_files,
                ),
                level="warning",
            )

    def _links(self, entries: list[Entry], base: str) -> list[Link]:
        links: dict[str, Link] = {}
        for entry in entries:
            url = join(base, entry.loc)
            if url is not None and self._chooser.wants(url):
                links.setdefault(url, Link(url, "", changed_at=dates.changed_at(entry.lastmod, self._zone)))
        return list(links.values())

    def _page(self, number: int, offset: int, opened: _Open) -> Listed:
        end = offset + ADDRESSES_OF_A_PAGE
        following: ListPage | None = None
        if end < len(opened.links):
            following = ListPage(number + 1, opened.url, end)
        elif self._files:
            following = ListPage(number + 1, self._files[0].loc)
        return Listed(
            url=opened.response.url,
            body=opened.response.body,
            links=opened.links[offset:end],
            following=following,
            ended="end_of_sitemap",
            nothing=self._nothing(),
            kept_as="sitemap.xml",
        )

    def _nothing_left(self, listed: ListPage) -> Listed:
        """The rest of the sitemap has no address; all of it has none, perhaps because nothing changed."""
        if listed.number == 1 and self._counters.files_unchanged:
            raise UnchangedError
        if listed.number == 1 and self._counters.files_failed:
            raise ListPageError(
                stored(
                    "No file of the sitemap %(url)s could be read; the job's log names all %(count)s.",
                    url=listed.url,
                    count=self._counters.files_failed,
                )
            )
        return Listed(
            url=listed.url,
            body=b"",
            links=[],
            following=None,
            ended="end_of_sitemap",
            nothing=self._nothing(),
        )

    def _nothing(self) -> str:
        if self._params.include or self._params.exclude:
            return stored("no <loc> of the sitemap matches include and exclude")
        return stored("the sitemap has no page (<url> with <loc>)")
