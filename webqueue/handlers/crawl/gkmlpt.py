"""The adapter `gkmlpt`: the open government platform of Guangdong, whose sites list their articles as JSON.

Each of its columns answers at `gkmlpt/api/all/COLUMN?page=N&sid=SITE`, below the folder of the department where
several share a host, with `articles` and their `total`.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Self
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from webqueue.handlers.crawl.json_lists import JsonListing, JsonParameters
from webqueue.handlers.crawl.json_paths import JsonPath
from webqueue.handlers.crawl.memory import Memory
from webqueue.handlers.crawl.parameters import PAGE, ArticleParameters, OptionalUrl, wrong
from webqueue.handlers.protocol import Context, Parameters
from webqueue.sentences import say

_NUMBER: Final = re.compile(r"[0-9]{1,18}")
# A page of the platform as a browser shows it: the column stands behind the #.
_INDEX: Final = re.compile(r"(?P<folder>.*?)gkmlpt/(?:index|policy|guide)?/?", re.DOTALL)


def _as_text(value: object) -> object:
    """Column 5 is written as a number as often as a text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if isinstance(value, str) and not value.strip() else value


def _checked_number(value: str | None) -> str | None:
    if value is not None and not _NUMBER.fullmatch(value.strip()):
        raise ValueError(
            say("%(value)s is no number; it stands in the addresses of the platform", value=repr(value))
        )
    return None if value is None else value.strip()


_Number = Annotated[str | None, BeforeValidator(_as_text), AfterValidator(_checked_number)]


class GkmlptFields(Parameters):
    """Where a target of the adapter `gkmlpt` finds its articles."""

    column_id: _Number = Field(
        None, description="The column: the number behind gkmlpt/index# in a browser. 0 is every column."
    )
    site_id: _Number = Field(None, description="The site's number on the platform (sid).")
    list_url: OptionalUrl = Field(
        None,
        description="Instead of column_id: address of a column (…/gkmlpt/index#5), or of its JSON with {page}.",
    )
    page_start: int = Field(1, ge=0, le=1_000_000, description="What {page} is on list page 1.")
    max_pages: int = Field(
        50, ge=1, le=100_000, title="List pages at most", description="The last list page that is fetched."
    )
    items_path: JsonPath = Field("articles", description="Where the articles stand in the JSON.")
    url_path: JsonPath = Field("url", description="An article's URL.")
    title_path: JsonPath = Field("title", description="An article's title.")
    published_path: JsonPath = Field("display_publish_time", description="When an article was published.")
    total_path: JsonPath = Field("total", description="How many articles the column has.")


class GkmlptParameters(ArticleParameters, GkmlptFields):
    """What a `crawl` target of a site with the adapter `gkmlpt` says: a column, or the address of its list."""

    @model_validator(mode="after")
    def _check_column(self) -> Self:
        if self.column_id is None and self.list_url is None:
            raise wrong("column_id", say("is required, or list_url instead of it"))
        if self.column_id is not None and self.list_url is not None:
            raise wrong("list_url", say("says the column once more; write column_id or list_url"))
        if self.list_url is not None and PAGE not in self.list_url and _column_of(self.list_url) is None:
            raise wrong(
                "list_url",
                say(
                    "names no column; write an address such as gkmlpt/index#5, or that of the JSON with "
                    "%(page)s",
                    page=PAGE,
                ),
            )
        return self

    def as_json(self) -> JsonParameters:
        """The same list in the words of the adapter `json`."""
        shared = self.model_dump(include=set(JsonParameters.model_fields) - {"list_url"})
        return JsonParameters(**shared, list_url=self._list_url())

    def _list_url(self) -> str:
        if self.list_url is not None and PAGE in self.list_url:
            return self.list_url
        folder, column = (
            ("", self.column_id) if self.list_url is None else _column_of(self.list_url) or ("", None)
        )
        site = f"&sid={self.site_id}" if self.site_id is not None else ""
        return f"{folder}gkmlpt/api/all/{column}?page={PAGE}{site}"


class GkmlptListing(JsonListing):
    """The list pages of a target with the adapter `gkmlpt`.

    Args:
        ctx: of the job; its parameters are `GkmlptParameters`.
        memory: of the target.
    """

    def __init__(self, ctx: Context, memory: Memory) -> None:
        super().__init__(ctx, memory, ctx.params.as_json())


def _column_of(url: str) -> tuple[str, str] | None:
    """Folder and column of an address such as `http://www.example.gov.cn/office/gkmlpt/index#5`."""
    parts = urlsplit(url.strip())
    match = _INDEX.fullmatch(parts.path)
    if match is None or not _NUMBER.fullmatch(parts.fragment):
        return None
    folder = match["folder"]
    if parts.netloc:
        folder = urljoin(f"{parts.scheme}://{parts.netloc}/", folder)
    return folder, parts.fragment
