"""How sites show what they publish: one adapter each (DESIGN section 8, `adapter`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from webqueue.errors import InvalidInputError
from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.feeds import FeedListing, FeedParameters
from webqueue.handlers.crawl.gkmlpt import GkmlptListing, GkmlptParameters
from webqueue.handlers.crawl.json_lists import JsonListing, JsonParameters
from webqueue.handlers.crawl.listing import Listing
from webqueue.handlers.crawl.lists import HtmlListing
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.parameters import ArticleParameters, ListParameters
from webqueue.handlers.crawl.run import ListCrawl
from webqueue.handlers.crawl.sitemaps import SitemapListing, SitemapParameters
from webqueue.handlers.crawl.spider import Spider
from webqueue.handlers.crawl.spider_web import SpiderParameters, StartPages
from webqueue.handlers.crawl.trial import run_trial
from webqueue.handlers.protocol import Context
from webqueue.outcomes import Outcome
from webqueue.sentences import say


@dataclass(frozen=True)
class Adapter:
    """One way to crawl.

    Attributes:
        parameters: what its targets say.
        crawl: runs a job.
        try_out: runs a job that stores nothing.
    """

    parameters: type[ArticleParameters]
    crawl: Callable[[Context], Outcome]
    try_out: Callable[[Context], Outcome]


def _listed(
    parameters: type[ArticleParameters], listing: Callable[[Context, Memory, Counters], Listing]
) -> Adapter:
    """An adapter whose articles stand on list pages."""

    def crawl(ctx: Context) -> Outcome:
        # What a known page or a recent article needs is the list itself, not the news that it did not change.
        memory = Memory(
            ctx, conditional=not ctx.force and not ctx.params.recheck_days and ctx.job.from_page <= 1
        )
        counters = Counters()
        return ListCrawl(ctx, listing(ctx, memory, counters), memory, counters).run()

    def try_out(ctx: Context) -> Outcome:
        return run_trial(ctx, lambda: listing(ctx, Memory(ctx, conditional=False), Counters()))

    return Adapter(parameters, crawl, try_out)


ADAPTERS: Final[Mapping[str, Adapter]] = {
    "list": _listed(ListParameters, lambda ctx, memory, _: HtmlListing(ctx, memory)),
    "feed": _listed(FeedParameters, lambda ctx, memory, _: FeedListing(ctx, memory)),
    "sitemap": _listed(SitemapParameters, SitemapListing),
    "json": _listed(JsonParameters, lambda ctx, memory, _: JsonListing(ctx, memory, ctx.params)),
    "gkmlpt": _listed(GkmlptParameters, lambda ctx, memory, _: GkmlptListing(ctx, memory)),
    "spider": Adapter(
        SpiderParameters,
        lambda ctx: Spider(ctx, Memory(ctx, conditional=False), Counters()).run(),
        lambda ctx: run_trial(ctx, lambda: StartPages(ctx, Memory(ctx, conditional=False))),
    ),
}


def get(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        InvalidInputError: there is no such adapter.
    """
    adapter = ADAPTERS.get(name)
    if adapter is not None:
        return adapter
    built = ", ".join(ADAPTERS)
    raise InvalidInputError.of(
        "adapter",
        say("there is no adapter %(name)s; this version has: %(built)s", name=repr(name), built=built),
    )
