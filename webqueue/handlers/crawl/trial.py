"""A trial of the adapter `list`: what the selectors find, before anything is stored (DESIGN section 8, `try`)."""

from __future__ import annotations

from typing import Any

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.crawl.fetching import Articles, ListPageError, check_not_empty, fetch_list_page
from webqueue.handlers.crawl.lists import ListPages
from webqueue.handlers.crawl.parameters import ListParameters
from webqueue.handlers.protocol import BlockedError, Context, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome


def run_trial(ctx: Context) -> Outcome:
    """Read list page 1 and its first article, and store nothing; the result shows what was found."""
    try:
        return _try_out(ctx, ctx.params)
    except BlockedError as error:
        return Blocked(error.reason, error.retry_after)
    except StopRequested:
        return Cancelled()
    except ListPageError as error:
        return Failed(str(error), error.details)
    except ValueError as error:  # the URL of list page 1
        return Failed(f"{error} Check list_url and the site's base_url.")


def _try_out(ctx: Context, params: ListParameters) -> Outcome:
    listed = ListPages(params, ctx.site.base_url).start(1, {})
    page = fetch_list_page(ctx, listed.number, listed.url)
    if page is None:
        return Failed(f"List page 1 does not exist: HTTP 404 or 410 from {listed.url}.")
    links = page.links(params.item_selector)
    if not links:
        check_not_empty(ctx, params, listed.number, page)
    counters = Counters()
    articles = Articles(ctx, params, counters)
    result: dict[str, Any] = {
        "list_url": page.url,
        "links": [{"url": link.url, "text": link.text} for link in links],
        "article": None,
    }
    for link in links:
        if ctx.should_stop():
            return Cancelled(result)
        result["article"] = articles.preview(link)
        if result["article"] is not None:
            return Done(result, counters.attention())
        if counters.failed:
            return Failed(f"The first article could not be fetched: {counters.failures[0]}", result)
    return Done(result, "Every link leads to the host of another rate key; no article was fetched.")
