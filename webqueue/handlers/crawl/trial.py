"""Trials: what the parameters of a target find, before anything is stored (DESIGN section 8, `try`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.fetching import Articles
from webqueue.handlers.crawl.listing import Listed, Listing, ListPageError, check_not_empty
from webqueue.handlers.protocol import BlockedError, Context, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome
from webqueue.sentences import stored


def run_trial(ctx: Context, make_listing: Callable[[], Listing]) -> Outcome:
    """Read list page 1 and its first article, and store nothing; the result shows what was found.

    Args:
        ctx: of the job.
        make_listing: the target's list pages; what is wrong with its URLs is told as everything else.
    """
    try:
        return _try_out(ctx, make_listing())
    except BlockedError as error:
        return Blocked(error.reason, error.retry_after, rate_key=error.rate_key)
    except StopRequested:
        return Cancelled()
    except ListPageError as error:
        return Failed(str(error), error.details)
    except ValueError as error:  # the URL of list page 1
        return Failed(str(error))


def _try_out(ctx: Context, listing: Listing) -> Outcome:
    first = listing.start(1, {})
    page = listing.read(first)
    if page is None:
        return Failed(stored("List page 1 does not exist: HTTP 404 or 410 from %(url)s.", url=first.url))
    if not page.links:
        check_not_empty(ctx, first, page)
    return _show(ctx, page)


def _show(ctx: Context, page: Listed) -> Outcome:
    counters = Counters()
    articles = Articles(ctx, ctx.params, counters)
    result: dict[str, Any] = {
        "list_url": page.url,
        "links": [
            {"url": link.url, "text": link.text}
            | ({"published_at": link.published_at.isoformat()} if link.published_at else {})
            for link in page.links
        ],
        "total": page.total,
        "article": None,
    }
    for link in page.links:
        if ctx.should_stop():
            return Cancelled(result)
        result["article"] = articles.preview(link)
        if result["article"] is not None:
            return Done(result, counters.attention())
        if counters.failed:
            return Failed(
                stored("The first article could not be fetched: %(why)s", why=counters.failures[0]), result
            )
    return Done(result, stored("Every link leads to the host of another rate key; no article was fetched."))
