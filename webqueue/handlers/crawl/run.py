"""Runs of crawls: what all of them share, and the run from list page to list page (DESIGN section 6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.fetching import Articles, Met
from webqueue.handlers.crawl.history import History
from webqueue.handlers.crawl.listing import (
    Listed,
    Listing,
    ListPage,
    ListPageError,
    UnchangedError,
    check_not_empty,
)
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.pages import Link
from webqueue.handlers.protocol import BlockedError, Context, Known, StopRequested, StoredTimes
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, Outcome
from webqueue.sentences import Sentence, stored

# Dead links come in rows on old sites; a server that does not answer at all is another matter.
_SILENT_ARTICLES_IN_A_ROW: Final = 10
_LINKS_AT_ONCE: Final = 200
_MOST_RECHECKED: Final = 500
_CLOCKS_DIFFER: Final = timedelta(days=1)
_ENDS_OF_LISTS: Final = frozenset({"empty_page", "last_page", "no_such_page", "repeated_page"})


class Run(ABC):
    """One run of a crawl: it resumes from the checkpoint, and says in the end what it found.

    Args:
        ctx: of the job.
        memory: of the target's list pages.
        counters: of the run.
    """

    def __init__(self, ctx: Context, memory: Memory, counters: Counters) -> None:
        self._ctx = ctx
        self._memory = memory
        self._counters = counters
        self._articles = Articles(ctx, ctx.params, counters)
        self._history = History(ctx)
        self._resumed = ctx.checkpoint_at_start if ctx.target.track_checkpoint else Checkpoint()
        self._checkpoint = self._resumed
        self._held: Checkpoint | None = None

    def run(self) -> Outcome:
        """Crawl until a reason to stop; the outcome has the counters and names the reason."""
        try:
            return self._run()
        except BlockedError as error:
            checkpoint = self._checkpoint if self._ctx.target.track_checkpoint else None
            result = self._result("blocked")
            return Blocked(error.reason, error.retry_after, checkpoint, result, error.rate_key)
        except StopRequested:
            return Cancelled(self._result("stop_requested"))
        except ListPageError as error:
            return Failed(str(error), {**self._result("failed"), **error.details})

    @abstractmethod
    def _run(self) -> Outcome:
        """Crawl."""

    def _poll(self) -> None:
        if self._ctx.should_stop():
            raise StopRequested

    def _commit(self, page: int, data: Mapping[str, Any]) -> None:
        """Commit that a page is completed; held back while its last articles may have met the beginning of a block."""
        self._held = Checkpoint(page, data)
        if not self._articles.in_doubt:
            self._release()

    def _release(self) -> None:
        """Commit what was held back: a later answer has shown that nothing was blocked."""
        if self._held is not None and self._ctx.target.track_checkpoint:
            self._ctx.checkpoint(self._held.page, self._held.data)
            self._checkpoint = self._held
        self._held = None

    def _check_silence(self, where: str) -> None:
        if self._articles.silent_in_a_row >= _SILENT_ARTICLES_IN_A_ROW:
            raise ListPageError(
                stored(
                    "%(count)s articles in a row got no answer, the last %(where)s: %(why)s",
                    count=_SILENT_ARTICLES_IN_A_ROW,
                    where=where,
                    why=self._articles.last_failure,
                )
            )

    def _finish(self, reason: str) -> Outcome:
        counters = self._counters
        nothing_good = not (counters.fetched or counters.known or counters.in_chain or self._resumed.page)
        if counters.failed and nothing_good:
            return Failed(
                stored(
                    "None of the %(count)s articles could be fetched; the first: %(why)s",
                    count=counters.failed,
                    why=counters.failures[0],
                ),
                self._result("failed"),
            )
        # A resumed run may have little left to do; what its chain found is in the runs before it.
        unusual = self._history.attention(counters)
        attention = None
        if counters.links or not self._resumed.page:
            attention = counters.attention() or self._attention(reason)
        attention = attention or unusual
        result = self._result(reason)
        if not self._resumed.page and not counters.incomplete:
            result |= self._memory.result()
        return Done(result, attention)

    def _attention(self, reason: str) -> str | None:
        """Why a person should look at it, beyond what the counters say."""
        return None

    def _result(self, reason: str) -> dict[str, Any]:
        return {**self._counters.result(reason), **self._history.result()}


class ListCrawl(Run):
    """A run from list page to list page, and from article to article; it commits a checkpoint after each list page.

    Args:
        ctx: of the job.
        listing: the target's list pages.
        memory: of the target.
        counters: of the run.
    """

    def __init__(self, ctx: Context, listing: Listing, memory: Memory, counters: Counters) -> None:
        super().__init__(ctx, memory, counters)
        self._listing = listing
        self._first = self._resumed.page + 1 if self._resumed.page else max(ctx.job.from_page, 1)
        self._met: set[str] = set()
        self._links_before: list[str] = []
        self._list_has_articles = False
        days = ctx.params.recheck_days
        now = ctx.now()
        self._recent_since = now - timedelta(days=days) if days else None
        self._latest = now + _CLOCKS_DIFFER  # sites that date changes into the future say nothing by it

    def _run(self) -> Outcome:
        if self._first > self._listing.max_pages:
            if self._resumed.page:
                return self._finish("max_pages")
            raise ListPageError(
                stored(
                    "from_page is %(page)s, but max_pages is %(most)s.",
                    page=self._first,
                    most=self._listing.max_pages,
                )
            )
        listed: ListPage | None = self._start()
        ended = "no_next_link"
        while listed is not None:
            self._poll()
            try:
                page = self._listing.read(listed)
            except UnchangedError:
                return self._finish("not_modified")
            if page is None:
                return self._no_such_page(listed)
            ended = page.ended
            if listed.number >= self._first:  # else it is only walked through, on the way to from_page
                before = replace(self._counters)
                stop = self._read(listed, page)
                self._ctx.log(_told(listed, page, self._counters.since(before)))
                self._commit(listed.number, self._listing.checkpoint_data(page.following))
                if stop is not None:
                    return self._finish(stop)
            listed = page.following
        return self._finish(ended)

    def _finish(self, reason: str) -> Outcome:
        self._recheck_unmet()
        return super()._finish(reason)

    def _recheck_unmet(self) -> None:
        """Fetch the recent articles that no list page of this run led to: what a site takes down leaves its lists first."""
        if self._recent_since is None or self._list_has_articles:
            return
        for url in self._ctx.recent_unmet(self._recent_since, _MOST_RECHECKED):
            if url in self._met or url in self._articles.stored:
                continue
            self._poll()
            self._counters.rechecked += 1
            self._articles.crawl(Link(url, ""), is_stored=True)
            self._check_silence(stored("among the recent ones"))

    def _start(self) -> ListPage:
        try:
            return self._listing.start(self._first, self._resumed.data)
        except ValueError as error:
            raise ListPageError(str(error)) from None

    def _read(self, listed: ListPage, page: Listed) -> str | None:
        """Crawl the articles of a list page; why the crawl stops here, or None."""
        self._release()
        self._ctx.page(listed.number)
        counters = self._counters
        counters.pages += 1
        counters.links += len(page.links)
        counters.without_link += page.without_link
        counters.total = page.total if page.total is not None else counters.total
        if listed.number == 1:
            counters.links_on_page_1 = len(page.links)
        if not page.links:
            check_not_empty(self._ctx, listed, page)
            return "empty_page"
        urls = [link.url for link in page.links]
        if urls == self._links_before and self._listing.stops_at_known:
            return "repeated_page"  # the server answers the last page for every number beyond it
        self._links_before = urls
        self._list_has_articles |= any(link.html is not None for link in page.links)
        goes_on = self._crawl_links(listed, page.links)
        if self._listing.stops_at_known and not goes_on and not self._ctx.force:
            return "known_pages"
        return "max_pages" if listed.number >= self._listing.max_pages and page.following else None

    def _crawl_links(self, listed: ListPage, links: list[Link]) -> bool:
        """Crawl the articles; whether they are a reason to read the next list page."""
        met: set[Met] = set()
        position = 0
        for some in _in_groups(links):
            states = self._ctx.known_all([link.url for link in some])
            times = self._times_of([link for link in some if states[link.url] == Known.KNOWN])
            for link in some:
                self._poll()
                position += 1
                self._ctx.progress(
                    position,
                    len(links),
                    stored(
                        "articles of list page %(page)s: %(title)s",
                        page=listed.number,
                        title=link.text or link.url,
                    )[:200],
                )
                met.add(self._crawl_link(link, states[link.url], times.get(link.url)))
                self._check_silence(stored("on list page %(page)s", page=listed.number))
        # One new link is enough to go on, whatever is pinned above it; so is a page that only leads elsewhere.
        return bool(met & {Met.NEW, Met.RECENT}) or met == {Met.ELSEWHERE}

    def _crawl_link(self, link: Link, state: str, times: StoredTimes | None) -> Met:
        if link.url in self._met or link.url in self._articles.stored:
            self._counters.duplicates += 1
            return Met.OLD
        self._met.add(link.url)
        if state == Known.IN_CHAIN:
            self._counters.in_chain += 1
            return Met.NEW
        if state == Known.NEW or self._ctx.force:
            return self._articles.crawl(link, is_stored=state == Known.KNOWN)
        recent = times is not None and self._is_recent(times)
        if recent or (times is not None and self._is_newer(link, times)):
            self._counters.rechecked += 1
            self._articles.crawl(link, is_stored=True)
        else:
            self._counters.known += 1
        return Met.RECENT if recent else Met.OLD

    def _times_of(self, known: list[Link]) -> Mapping[str, StoredTimes]:
        """When known links were stored, where that decides whether they are fetched again."""
        if self._ctx.force:
            return {}
        wanted = known if self._recent_since else [link for link in known if link.changed_at or link.html]
        return self._ctx.stored_times([link.url for link in wanted]) if wanted else {}

    def _is_recent(self, times: StoredTimes) -> bool:
        return (
            self._recent_since is not None
            and (times.published_at or times.first_seen_at) >= self._recent_since
        )

    def _is_newer(self, link: Link, times: StoredTimes) -> bool:
        """Whether the list says that an article was changed since it was fetched; its own text costs nothing."""
        if link.changed_at is None:
            return link.html is not None
        return times.last_seen_at < link.changed_at <= self._latest

    def _attention(self, reason: str) -> str | None:
        counters = self._counters
        whole = self._first == 1 and reason in _ENDS_OF_LISTS
        if whole and counters.total is not None and counters.links * 2 < counters.total:
            return stored(
                "The site says that it has %(count)s articles; its list pages name %(links)s.",
                count=counters.total,
                links=counters.links,
            )
        return None

    def _no_such_page(self, listed: ListPage) -> Outcome:
        """Page numbers beyond the last one answer 404 on many sites; on the first page of a crawl it is a fault."""
        if listed.number > 1 and (self._counters.pages or self._resumed.page):
            self._ctx.log(
                stored(
                    "List page %(page)s does not exist (%(url)s): the list ends before it.",
                    page=listed.number,
                    url=listed.url,
                )
            )
            return self._finish("no_such_page")
        raise ListPageError(
            stored(
                "List page %(page)s does not exist: HTTP 404 or 410 from %(url)s.",
                page=listed.number,
                url=listed.url,
            )
        )


def _told(listed: ListPage, page: Listed, came_of_it: Sentence | None) -> Sentence:
    facts = {"page": listed.number, "links": len(page.links)}
    if came_of_it is None:
        return stored("List page %(page)s: %(links)s links", **facts)
    return stored("List page %(page)s: %(links)s links, %(what)s", **facts, what=came_of_it)


def _in_groups(links: list[Link]) -> Iterator[list[Link]]:
    for start in range(0, len(links), _LINKS_AT_ONCE):
        yield links[start : start + _LINKS_AT_ONCE]
