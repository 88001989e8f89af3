"""The function of the targets that "Load the demo" makes: a walk through the demo's pages, which are part of webqueue.

No request leaves the machine and no document is stored, so that it may run in any installation; all else is what a crawl
does: list pages and checkpoints, progress, counters, a block with its cooldown, a failure, a run that asks to be looked at.
"""

from __future__ import annotations

import time
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from webqueue.demo import content
from webqueue.handlers.protocol import Context
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome
from webqueue.sentences import stored

BLOCK_SEC: Final = 30
_NEWEST: Final = content.PER_PAGE * content.PAGES
# A walk that is to stop does not wait out its interval.
_STEP_SEC: Final = 0.1
_SITES: Final = {site.code: site for site in content.SITES}


def walk(ctx: Context, *, site: str, pages: int = content.PAGES, blocks_after: int = 0) -> Outcome:
    """Read the list pages of one of the demo's sites and the notices on them, at the interval of the target.

    Args:
        ctx: of the job.
        site: its code in `content.SITES`.
        pages: how many list pages; a trial reads one.
        blocks_after: the walk is turned away behind this page, and goes on from there after the cooldown; 0 = never.
    """
    published = _SITES[site]
    pages = 1 if ctx.job.is_trial else pages
    read = empty = 0
    for page in range(ctx.checkpoint_at_start.page + 1, pages + 1):
        ctx.page(page)
        notices = _notices(published, page)
        if not notices:
            return Failed(
                stored(
                    "No link to a notice on list page %(page)s of %(site)s: its site was redesigned. A "
                    "target of your own would get another item selector now; this one belongs to the demo.",
                    page=page,
                    site=published.name,
                )
            )
        for place, (number, title) in enumerate(notices, start=1):
            if not _waited(ctx):
                return Cancelled({"notices": read})
            read += 1
            empty += not _has_text(published, number)
            ctx.log(stored("read: %(title)s", title=title))
            ctx.progress((page - 1) * content.PER_PAGE + place, pages * content.PER_PAGE, title)
        ctx.checkpoint(page)
        if page == blocks_after:
            return Blocked(
                stored("%(site)s turned the walk away, as the demo has it", site=published.name), BLOCK_SEC
            )
    if read and empty == read:
        return Done(
            {"notices": read}, stored("None of the notices has a text: a script in the browser draws them.")
        )
    return Done({"notices": read})


def _notices(site: content.Site, page: int) -> list[tuple[int, str]]:
    """Numbers and titles of the notices that a list page links to."""
    html = LexborHTMLParser(content.list_page(site, page, _NEWEST))
    links = [(link.attributes["href"] or "", link.text()) for link in html.css("ul.notices a")]
    return [(int(address.rpartition("/")[2].removesuffix(".html")), title) for address, title in links]


def _has_text(site: content.Site, number: int) -> bool:
    return LexborHTMLParser(content.article(site, number)).css_first("article p") is not None


def _waited(ctx: Context) -> bool:
    """Keep the interval, as between two requests; False when the walk is to stop."""
    until = time.monotonic() + ctx.target.interval_sec
    while not ctx.should_stop():
        left = until - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, _STEP_SEC))
    return False
