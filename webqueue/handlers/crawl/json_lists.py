"""The adapter `json`: lists that a site's own pages read as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self

from pydantic import Field, model_validator

from webqueue.handlers.crawl import dates
from webqueue.handlers.crawl.articles import plain_line
from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.json_paths import (
    OptionalPath,
    as_count,
    as_line,
    checked_path,
    fill,
    find,
    placeholders,
)
from webqueue.handlers.crawl.listing import Listed, ListPage, fetch_list_page, unreadable
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.numbers import Numbers
from webqueue.handlers.crawl.pages import Link
from webqueue.handlers.crawl.parameters import (
    PAGE,
    ArticleParameters,
    OptionalUrl,
    Url,
    wrong,
)
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context, Parameters, Response
from webqueue.sentences import part, said, say, stored

ACCEPT: Final = "application/json, text/plain;q=0.9, */*;q=0.8"
LISTED: Final = "listed"
_LONGEST_INTEGER: Final = 40  # digits; Python refuses thousands of them, and nobody means them
_CALLBACK: Final = re.compile(r"\s*[\w$.]{1,100}\s*\((.*)\)\s*;?\s*", re.DOTALL)
_SHOWN: Final = 60


class JsonFields(Parameters):
    """Where a target of the adapter `json` finds its articles."""

    list_url: Url = Field(
        description="URL of the JSON list, absolute or relative to the site's base URL; {page} is the number."
    )
    page_start: int = Field(1, ge=0, le=1_000_000, description="What {page} is on list page 1.")
    max_pages: int = Field(
        50, ge=1, le=100_000, title="List pages at most", description="The last list page that is fetched."
    )
    items_path: OptionalPath = Field(
        None, description="Where the items stand, e.g. data.list; empty: the document itself is the list."
    )
    url_path: OptionalPath = Field(None, description="An item's URL, e.g. link.href.")
    link_template: OptionalUrl = Field(
        None,
        description="Else its URL made of its fields, e.g. content/post_{id}.html; {a.b} is the field a.b.",
    )
    id_path: OptionalPath = Field(
        None, description="What {id} in link_template stands for; else the field id."
    )
    title_path: OptionalPath = Field(
        None, description="An item's title, for articles without one of their own."
    )
    published_path: OptionalPath = Field(
        None,
        description="When an item was published: a date, or a number of seconds or milliseconds since 1970.",
    )
    text_path: OptionalPath = Field(
        None, description="An item's text or HTML; when set, article pages are not fetched."
    )
    total_path: OptionalPath = Field(
        None,
        description="How many items there are in all; the crawl then ends without asking for a page too many.",
    )


class JsonParameters(ArticleParameters, JsonFields):
    """What a `crawl` target of a site with the adapter `json` says."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if PAGE not in self.list_url and self.max_pages > 1:
            raise wrong(
                "list_url",
                say("nothing leads to list page 2: write %(page)s into it, or set max_pages to 1", page=PAGE),
            )
        if (self.url_path is None) == (self.link_template is None):
            raise wrong(
                "url_path", say("either url_path or link_template leads to an item's page: set one of them")
            )
        if self.link_template is not None:
            _check_template(self.link_template)
        return self


def _check_template(template: str) -> None:
    paths = placeholders(template)
    if not paths:
        raise wrong("link_template", say("has no {field}, so that every item would have the same URL"))
    for path in paths:
        try:
            checked_path(path)
        except ValueError as error:
            raise wrong("link_template", said(error)) from None


class JsonListing:
    """The list pages of a target with the adapter `json`.

    Args:
        ctx: of the job.
        memory: of the target.
        params: where the items stand; the job's own may be those of an adapter on top of this one.
    """

    stops_at_known: bool = True

    def __init__(self, ctx: Context, memory: Memory, params: JsonParameters) -> None:
        self._ctx = ctx
        self._memory = memory
        self._params = params
        self._numbers = Numbers(params.list_url, ctx.site.base_url, params.page_start)
        self._zone = dates.zone(ctx.site.timezone)
        # The articles of the pages so far, for the comparison with the total; not known when earlier pages were not read.
        self._listed_before: int | None = None
        self._listed: set[str] = set()

    @property
    def max_pages(self) -> int:
        """See `Listing`."""
        return self._params.max_pages

    def start(self, number: int, data: Mapping[str, Any]) -> ListPage:
        """See `Listing`."""
        self._listed_before = 0 if number == 1 else as_count(data.get(LISTED))
        return self._numbers.page(number)

    def read(self, listed: ListPage) -> Listed | None:
        """See `Listing`."""
        response = fetch_list_page(
            self._ctx, listed, self._memory, accept=ACCEPT, may_be_unchanged=listed.number == 1
        )
        if response is None:
            return None
        try:
            data = parse(response)
        except ValueError as error:
            raise unreadable(self._ctx, listed, response, str(error), "list-page.json") from None
        items = self._items(data, listed, response)
        found = [self._link(item) for item in items]
        links = {link.url: link for link in found if link is not None}
        total = as_count(find(data, self._params.total_path)) if self._params.total_path else None
        return Listed(
            url=response.url,
            body=response.body,
            links=list(links.values()),
            following=self._after(listed, links, total),
            ended="last_page",
            nothing=self._nothing(items),
            kept_as="list-page-1.json",
            without_link=found.count(None),
            total=total,
        )

    def checkpoint_data(self, following: ListPage | None) -> Mapping[str, Any]:
        """See `Listing`."""
        count = self._count()
        return {} if count is None else {LISTED: count}

    def _items(self, data: Any, listed: ListPage, response: Response) -> list[Any]:
        items = find(data, self._params.items_path)
        if items is None and listed.number > 1:
            return []  # some sites leave the list out beyond the last page
        if isinstance(items, Mapping):
            items = list(items.values())
        if not isinstance(items, list):
            what = part("nothing") if items is None else part("a %(type)s", type=type(items).__name__)
            path = self._params.items_path
            where = (
                part("items_path %(path)s leads to %(what)s", path=repr(path), what=what)
                if path
                else part("is %(what)s", what=what)
            )
            raise unreadable(
                self._ctx,
                listed,
                response,
                stored("has no list of items: %(what)s", what=where),
                "list-page.json",
            )
        return items

    def _after(self, listed: ListPage, links: Mapping[str, Link], total: int | None) -> ListPage | None:
        # Counted, not worked out from the size of a page: pinned articles stand on several pages.
        self._listed.update(links)
        count = self._count()
        if PAGE not in self._params.list_url:
            return None
        # A total below what one page has is none, but the number of pages perhaps.
        if total is not None and count is not None and len(links) <= total <= count:
            return None
        return self._numbers.page(listed.number + 1)

    def _count(self) -> int | None:
        return None if self._listed_before is None else self._listed_before + len(self._listed)

    def _nothing(self, items: list[Any]) -> str:
        params = self._params
        if not items:
            return (
                stored("items_path %(path)s leads to an empty list", path=repr(params.items_path))
                if params.items_path
                else stored("an empty list")
            )
        if params.url_path is not None:
            return stored(
                "url_path %(path)s leads to no URL in any of %(count)s items",
                path=repr(params.url_path),
                count=len(items),
            )
        return stored(
            "link_template %(template)s cannot be filled for any of %(count)s items",
            template=repr(params.link_template),
            count=len(items),
        )

    def _link(self, item: Any) -> Link | None:
        params = self._params
        if params.link_template is not None:
            target = fill(params.link_template, item, {"id": params.id_path})
        else:
            target = as_line(find(item, params.url_path))
        url = join(self._ctx.site.base_url, target) if target else None
        if url is None:
            return None
        html = find(item, params.text_path) if params.text_path else None
        return Link(
            url,
            plain_line(as_line(find(item, params.title_path))) if params.title_path else "",
            published_at=self._published(item),
            html=html if isinstance(html, str) and html.strip() else None,
        )

    def _published(self, item: Any) -> datetime | None:
        path = self._params.published_path
        return dates.of_value(find(item, path), self._zone) if path else None


def parse(response: Response) -> Any:
    """The JSON of a response, in whatever encoding, also as the argument of a callback (JSONP).

    Raises:
        ValueError: it is none; the text says what it is.
    """
    text = decode(response.body, response.headers.get("content-type")).text
    callback = _CALLBACK.fullmatch(text)
    try:
        return json.loads(
            callback.group(1) if callback else text,
            parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INTEGER else digits,
            parse_constant=lambda _: None,
        )
    except RecursionError:
        raise ValueError(stored("is JSON that is nested too deeply")) from None
    except ValueError as error:
        begins = " ".join(text[: 4 * _SHOWN].split())[:_SHOWN]
        what = part("a web page") if begins.startswith("<") else f"{error}"
        raise ValueError(
            stored("is no JSON (%(why)s); it begins with %(begins)s", why=what, begins=repr(begins))
        ) from None
