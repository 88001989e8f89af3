"""The adapter `spider`: every page below an address, from link to link, breadth first, down to a depth."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Final

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.fetching import Met, is_web_page
from webqueue.handlers.crawl.hashes import short_hash
from webqueue.handlers.crawl.listing import ListPage, ListPageError, check_not_empty, fetch_list_page
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.pages import Link, Page
from webqueue.handlers.crawl.run import Run
from webqueue.handlers.crawl.spider_web import SpiderParameters, Web
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context, Known, Response
from webqueue.outcomes import Outcome
from webqueue.sentences import stored

QUEUE: Final = "queue"
MET: Final = "met"
# What waits is written with each checkpoint, so that it has to stay small.
_LONGEST_QUEUE: Final = 300_000  # characters of all URLs together


class Spider(Run):
    """A run from page to page; it commits a checkpoint after each, with the pages that wait.

    Args:
        ctx: of the job; its parameters are `SpiderParameters`.
        memory: of the target.
        counters: of the run.
    """

    def __init__(self, ctx: Context, memory: Memory, counters: Counters) -> None:
        super().__init__(ctx, memory, counters)
        self._params: SpiderParameters = ctx.params
        self._queue: deque[tuple[str, int]] = deque()
        self._met: set[str] = set()
        self._known: set[str] = set()
        self._length = 0
        self._done = self._resumed.page
        days = self._params.recheck_days
        self._recent_since = ctx.now() - timedelta(days=days) if days else None

    def _run(self) -> Outcome:
        self._web = Web(self._params, self._ctx.site.base_url)
        if not self._resume():
            if self._ctx.job.from_page > 1 and not self._resumed.page:
                raise ListPageError(
                    stored("from_page means nothing to a spider, which has no list pages; leave it out.")
                )
            for url in self._web.start_urls:
                self._enqueue(url, 0)
        while self._queue:
            self._poll()
            url, depth = self._queue[0]
            self._ctx.page(self._done + 1)
            self._ctx.progress(
                self._done,
                self._done + len(self._queue),
                stored("depth %(depth)s: %(url)s", depth=depth, url=url)[:200],
            )
            self._visit(url, depth)
            self._check_silence(stored("at depth %(depth)s", depth=depth))
            self._queue.popleft()
            self._length -= len(url)
            self._done += 1
            self._commit(
                self._done, {QUEUE: [list(waiting) for waiting in self._queue], MET: sorted(self._met)}
            )
        if self._counters.left_out:
            self._ctx.log(
                stored(
                    "%(count)s links were not followed: max_pages is %(most)s.",
                    count=self._counters.left_out,
                    most=self._params.max_pages,
                )
            )
        return self._finish("max_pages" if self._counters.left_out else "no_link_left")

    def _resume(self) -> bool:
        """Take up what the checkpoint says is waiting; False when it says nothing that can be used."""
        data = self._resumed.data
        queue, met = data.get(QUEUE), data.get(MET)
        if not isinstance(queue, list) or not isinstance(met, list):
            return False
        self._met = {name for name in met if isinstance(name, str)}
        for waiting in queue:
            match waiting:
                case [str() as url, int() as depth] if self._web.has(url) or depth == 0:
                    self._queue.append((url, depth))
                    self._length += len(url)
        return True

    def _enqueue(self, url: str, depth: int) -> None:
        if len(self._met) >= self._params.max_pages or self._length + len(url) > _LONGEST_QUEUE:
            self._counters.left_out += 1
            return
        self._met.add(short_hash(url))
        self._queue.append((url, depth))
        self._length += len(url)

    def _visit(self, url: str, depth: int) -> None:
        """Fetch a page, store it when it is an article, and take up its links."""
        if url in self._articles.stored:
            self._counters.duplicates += 1  # the canonical address of a page that was met under another one
            return
        follow = depth < self._params.max_depth
        state = self._ctx.known(url)
        if state == Known.IN_CHAIN and not follow:
            self._counters.in_chain += 1
            return
        self._counters.pages += 1
        response = self._fetched(url, depth, is_stored=state != Known.NEW, conditional=not follow)
        if response is None or not self._belongs(url, response):
            return
        page = None
        if self._web.is_article(url):
            page = self._articles.take(Link(url, ""), response)
        elif is_web_page(response):
            page = Page(response)
        if page is not None and follow:
            self._take_up(self._web.links(page), depth + 1)

    def _fetched(self, url: str, depth: int, *, is_stored: bool, conditional: bool) -> Response | None:
        if depth > 0:
            # On a page that did not change there is nothing to be found; one whose links are wanted is asked for whole.
            response = self._articles.fetch(Link(url, ""), is_stored=is_stored, conditional=conditional)
            return None if isinstance(response, Met) else response
        try:
            return self._start_page(url)
        except ListPageError as error:
            if url == self._web.start_urls[0]:
                raise
            self._articles.fail(str(error))
            return None

    def _start_page(self, url: str) -> Response:
        listed = ListPage(1, url)
        response = fetch_list_page(self._ctx, listed, self._memory, may_be_unchanged=False)
        if response is None:
            raise ListPageError(stored("The start page %(url)s does not exist: HTTP 404 or 410.", url=url))
        page = self._web.listed(response)
        if self._counters.links_on_page_1 is None:
            self._counters.links_on_page_1 = len(page.links)
        if not page.links and self._params.max_depth:
            check_not_empty(self._ctx, listed, page)
        return response

    def _belongs(self, url: str, response: Response) -> bool:
        """Whether what answered is a page of this target that was not met yet: redirects lead anywhere."""
        answered = join(response.url, "") or url
        if answered == url:
            return True
        if answered in self._web.start_urls or short_hash(answered) in self._met:
            self._counters.duplicates += 1
            return url in self._web.start_urls
        self._met.add(short_hash(answered))
        if not self._web.has(answered) and url not in self._web.start_urls:
            self._ctx.log(stored("Left out, because it leads to %(other)s: %(url)s", other=answered, url=url))
            return False
        return True

    def _take_up(self, links: list[Link], depth: int) -> None:
        """Let the pages wait that were not met yet; known ones only where something can have changed."""
        new = [
            link.url
            for link in links
            if short_hash(link.url) not in self._met and link.url not in self._known
        ]
        self._counters.links += len(links)
        self._counters.duplicates += len(links) - len(new)
        states = self._ctx.known_all(new) if new else {}
        recent = self._recent([url for url in new if states[url] == Known.KNOWN])
        for url in new:
            is_hub = depth <= self._params.hub_depth and depth < self._params.max_depth
            if states[url] != Known.KNOWN or is_hub or self._ctx.force:
                self._enqueue(url, depth)
            elif url in recent:
                self._counters.rechecked += 1
                self._enqueue(url, depth)
            else:
                self._known.add(url)
                self._counters.known += 1

    def _recent(self, known: list[str]) -> set[str]:
        if self._recent_since is None or not known:
            return set()
        times = self._ctx.stored_times(known)
        return {
            url
            for url, stored in times.items()
            if (stored.published_at or stored.first_seen_at) >= self._recent_since
        }
