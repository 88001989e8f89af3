"""How sites show what they publish: one adapter each (DESIGN section 8, `adapter`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from webqueue.errors import InvalidInputError, NotBuiltError
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.crawl.run import ListCrawl
from webqueue.handlers.crawl.trial import run_trial
from webqueue.handlers.protocol import Context, Parameters
from webqueue.outcomes import Outcome


@dataclass(frozen=True)
class Adapter:
    """One way to crawl.

    Attributes:
        parameters: what its targets say.
        crawl: runs a job.
        try_out: runs a job that stores nothing.
    """

    parameters: type[Parameters]
    crawl: Callable[[Context], Outcome]
    try_out: Callable[[Context], Outcome]


ADAPTERS: Final[Mapping[str, Adapter]] = {
    "list": Adapter(ListParameters, lambda ctx: ListCrawl(ctx).run(), run_trial),
}
NOT_BUILT: Final = ("feed", "sitemap", "json", "gkmlpt", "spider")


def get(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        NotBuiltError: it is in the specification, but this version does not have it.
        InvalidInputError: there is no such adapter.
    """
    adapter = ADAPTERS.get(name)
    if adapter is not None:
        return adapter
    built = ", ".join(ADAPTERS)
    if name in NOT_BUILT:
        raise NotBuiltError(f"The adapter {name!r} is not built yet; this version has: {built}.")
    raise InvalidInputError.of("adapter", f"there is no adapter {name!r}; this version has: {built}")
