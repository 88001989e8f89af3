"""What the demo's sites publish: made from numbers, so that a page is the same whenever it is asked for."""

from __future__ import annotations

import random
from dataclasses import dataclass
from html import escape
from typing import Final

PER_PAGE: Final = 6
PAGES: Final = 6

_TOPICS: Final = (
    "harbour dredging", "school meals", "river levels", "night buses", "library hours", "tree felling", "road repairs",
    "drinking water", "market days", "street lighting", "building permits", "flood barriers", "bicycle lanes",
    "waste collection", "public archives", "fishing quotas", "ferry timetables", "playgrounds",
)  # fmt: skip
_ACTS: Final = (
    "Notice on",
    "Decision about",
    "Report on",
    "Consultation on",
    "Call for tenders:",
    "Budget for",
)
_SENTENCES: Final = (
    "The office publishes this notice so that everybody concerned can prepare in time.",
    "Work begins on Monday and is expected to take {n} days, weather permitting.",
    "The council heard {n} speakers and adopted the proposal with a large majority.",
    "Written comments are taken until the end of the month and will be answered one by one.",
    "Measurements at {n} stations show values within the usual range of the season.",
    "A map of the area and the full text lie open for inspection during office hours.",
    "Costs are estimated at {n} thousand and are covered by the running budget.",
    "Residents of the streets named in the annex receive a letter with further details.",
    "Compared with last year the number of applications rose by {n} per cent.",
    "The next public meeting takes place in the town hall and is also streamed.",
)


@dataclass(frozen=True)
class Site:
    """One of the demo's sites.

    Attributes:
        most_in_30_sec: it blocks whoever asks more often, for a while; 0 = nobody. A crawl that has learned a longer
            interval stays below.
        publish_every_sec: a new notice appears this often, so that the scheduled crawls find something.
        empty: its list lost all its links, as after a redesign.
        scripted: its articles are drawn by a script in the browser, so that their pages have no text.
    """

    code: str
    name: str
    address: str
    most_in_30_sec: int = 0
    publish_every_sec: int = 60
    empty: bool = False
    scripted: bool = False


SITES: Final = (
    Site("gazette", "Northfield Gazette", "127.0.0.2"),
    Site("rivers", "Ministry of Rivers", "127.0.0.3"),
    Site("forests", "Ministry of Forests", "127.0.0.4"),
    Site("harbour", "Harbour Office", "127.0.0.5", most_in_30_sec=24, publish_every_sec=2),
    Site("registry", "Old Registry", "127.0.0.6", empty=True),
    Site("museum", "City Museum", "127.0.0.7", publish_every_sec=300, scripted=True),
)


def title(site: Site, number: int) -> str:
    """The title of an article."""
    dice = random.Random(f"{site.code}/{number}")  # noqa: S311 - varied texts, no secrets
    return f"{dice.choice(_ACTS)} {dice.choice(_TOPICS)}, no. {number}"


def list_page(site: Site, page: int, newest: int) -> str:
    """List page `page`, newest articles first; the last one has an empty list behind it."""
    first = newest - (page - 1) * PER_PAGE
    numbers = (
        []
        if site.empty or page > PAGES
        else [number for number in range(first, first - PER_PAGE, -1) if number > 0]
    )
    links = "\n".join(
        f'<li><a href="/notices/{number}.html">{escape(title(site, number))}</a></li>' for number in numbers
    )
    body = f'<h1>{escape(site.name)}: notices</h1>\n<ul class="notices">\n{links}\n</ul>'
    if site.empty:
        body = f"<h1>{escape(site.name)}</h1>\n<p>We have a new web site! Please use the search form.</p>"
    return _page(f"{site.name}, page {page}", body)


def article(site: Site, number: int) -> str:
    """One article."""
    if site.scripted:
        return _page(site.name, f'<div id="app" data-notice="{number}"></div><script src="/app.js"></script>')
    dice = random.Random(f"{site.code}/{number}/text")  # noqa: S311 - varied texts, no secrets
    paragraphs = "\n".join(
        "<p>"
        + " ".join(sentence.format(n=dice.randint(2, 90)) for sentence in dice.sample(_SENTENCES, 4))
        + "</p>"
        for _ in range(3)
    )
    heading = escape(title(site, number))
    return _page(title(site, number), f"<article><h1>{heading}</h1>\n{paragraphs}</article>")


def _page(heading: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(heading)}</title></head>\n<body>\n{body}\n</body></html>\n"
    )
