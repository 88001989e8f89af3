"""The handler of `crawl` targets."""

from __future__ import annotations

from typing import ClassVar

from webqueue.handlers.crawl import adapters
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.protocol import Context, Parameters
from webqueue.outcomes import Outcome


class CrawlHandler:
    """Crawls a site by the adapter that the site names."""

    kind: ClassVar[str] = "crawl"
    parameters: ClassVar[type[Parameters]] = ListParameters

    def parameters_for(self, adapter: str) -> type[Parameters]:
        """The parameters of targets on a site with this adapter.

        Raises:
            InvalidInputError: there is no such adapter.
        """
        return adapters.get(adapter).parameters

    def run(self, ctx: Context) -> Outcome:
        """Crawl, or try out when the job is a trial."""
        adapter = adapters.get(ctx.site.adapter)
        return adapter.try_out(ctx) if ctx.job.is_trial else adapter.crawl(ctx)
