"""One run of the adapter `list`: from list page to list page, and from article to article (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.fetching import Articles, ListPageError, Met, check_not_empty, fetch_list_page
from webqueue.handlers.crawl.lists import NEXT_URL, ListPage, ListPages
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.protocol import BlockedError, Context, Known, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, Outcome

# Dead links come in rows on old sites; a server that does not answer at all is another matter.
_SILENT_ARTICLES_IN_A_ROW: Final = 10


class ListCrawl:
    """One run. It resumes after the last completed list page, and commits a checkpoint after each.

    Args:
        ctx: of the job; its parameters are `ListParameters`.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._params: ListParameters = ctx.params
        self._counters = Counters()
        self._pages = ListPages(self._params, ctx.site.base_url)
        self._articles = Articles(ctx, self._params, self._counters)
        self._resumed = ctx.checkpoint_at_start if ctx.target.track_checkpoint else Checkpoint()
        self._checkpoint = self._resumed
        self._first = self._resumed.page + 1 if self._resumed.page else max(ctx.job.from_page, 1)
        self._met: set[str] = set()
        self._links_before: list[str] = []

    def run(self) -> Outcome:
        """Crawl until a reason to stop; the outcome has the counters and names the reason."""
        try:
            return self._run()
        except BlockedError as error:
            checkpoint = self._checkpoint if self._ctx.target.track_checkpoint else None
            return Blocked(error.reason, error.retry_after, checkpoint, self._result("blocked"))
        except StopRequested:
            return Cancelled(self._result("stop_requested"))
        except ListPageError as error:
            return Failed(str(error), {**self._result("failed"), **error.details})

    def _run(self) -> Outcome:
        if self._first > self._params.max_pages:
            if self._resumed.page:
                return self._finish("max_pages")
            raise ListPageError(f"from_page is {self._first}, but max_pages is {self._params.max_pages}.")
        listed = self._start()
        while listed is not None:
            self._poll()
            page = fetch_list_page(self._ctx, listed.number, listed.url)
            if page is None:
                return self._no_such_page(listed)
            following = self._pages.after(listed, page)
            if listed.number >= self._first:  # else it is only walked through, on the way to from_page
                stop = self._read(listed, page)
                self._complete(listed, following)
                if stop is not None:
                    return self._finish(stop)
            listed = following
        return self._finish("no_next_link")

    def _start(self) -> ListPage | None:
        try:
            return self._pages.start(self._first, self._resumed.data)
        except ValueError as error:
            raise ListPageError(f"{error} Check list_url and the site's base_url.") from None

    def _poll(self) -> None:
        if self._ctx.should_stop():
            raise StopRequested

    def _read(self, listed: ListPage, page: Page) -> str | None:
        """Crawl the articles of a list page; why the crawl stops here, or None."""
        self._ctx.page(listed.number)
        links = page.links(self._params.item_selector)
        self._counters.pages += 1
        self._counters.links += len(links)
        if listed.number == 1:
            self._counters.links_on_page_1 = len(links)
        if not links:
            check_not_empty(self._ctx, self._params, listed.number, page)
            return "empty_page"
        urls = [link.url for link in links]
        if urls == self._links_before:
            return "repeated_page"  # the server answers the last page for every number beyond it
        self._links_before = urls
        goes_on = self._crawl_links(listed, links)
        if not goes_on and not self._ctx.force:
            return "known_pages"
        return "max_pages" if listed.number >= self._params.max_pages else None

    def _crawl_links(self, listed: ListPage, links: list[Link]) -> bool:
        """Crawl the articles; whether they are a reason to read the next list page."""
        met: set[Met] = set()
        for position, link in enumerate(links, start=1):
            self._poll()
            self._ctx.progress(position, len(links), f"list page {listed.number}: {link.text}"[:200])
            met.add(self._crawl_link(link))
            if self._articles.silent_in_a_row >= _SILENT_ARTICLES_IN_A_ROW:
                raise ListPageError(
                    f"{_SILENT_ARTICLES_IN_A_ROW} articles in a row got no answer, the last on list page "
                    f"{listed.number}: {self._articles.last_failure}"
                )
        # One new link is enough to go on, whatever is pinned above it; so is a page that only leads elsewhere.
        return Met.NEW in met or met == {Met.ELSEWHERE}

    def _crawl_link(self, link: Link) -> Met:
        if link.url in self._met:
            self._counters.duplicates += 1
            return Met.OLD
        self._met.add(link.url)
        state = self._ctx.known(link.url)
        if state == Known.IN_CHAIN:
            self._counters.in_chain += 1
            return Met.NEW
        if state == Known.KNOWN and not self._ctx.force:
            self._counters.known += 1
            return Met.OLD
        return self._articles.crawl(link, is_stored=state == Known.KNOWN)

    def _no_such_page(self, listed: ListPage) -> Outcome:
        """Page numbers beyond the last one answer 404 on many sites; on the first page of a crawl it is a fault."""
        if listed.number > 1 and (self._counters.pages or self._resumed.page):
            self._ctx.log(
                f"List page {listed.number} does not exist ({listed.url}): the list ends before it."
            )
            return self._finish("no_such_page")
        raise ListPageError(f"List page {listed.number} does not exist: HTTP 404 or 410 from {listed.url}.")

    def _complete(self, listed: ListPage, following: ListPage | None) -> None:
        if not self._ctx.target.track_checkpoint:
            return
        data: Mapping[str, Any] = {NEXT_URL: following.url} if self._pages.by_links and following else {}
        self._ctx.checkpoint(listed.number, data)
        self._checkpoint = Checkpoint(listed.number, data)

    def _finish(self, reason: str) -> Outcome:
        counters = self._counters
        nothing_good = not (counters.fetched or counters.known or counters.in_chain or self._resumed.page)
        if counters.failed and nothing_good:
            return Failed(
                f"None of the {counters.failed} articles could be fetched; the first: {counters.failures[0]}",
                self._result("failed"),
            )
        # A resumed run may have little left to do; what its chain found is in the runs before it.
        attention = None if self._resumed.page and not counters.links else counters.attention()
        return Done(self._result(reason), attention)

    def _result(self, reason: str) -> dict[str, Any]:
        return self._counters.result(reason)
