"""The parameters of `crawl` targets, checked when they are saved (DESIGN section 8, the import file)."""

from __future__ import annotations

from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from webqueue.handlers.protocol import Parameters
from webqueue.sentences import say

PAGE: Final = "{page}"
_LONGEST_SELECTOR: Final = 2_000


def _nothing_for_blank(value: object) -> object:
    """A form sends an empty text for a field that was left out."""
    return None if isinstance(value, str) and not value.strip() else value


def checked_selector(value: str) -> str:
    """`value`, when it is a CSS selector that can be used.

    Raises:
        ValueError: it is not; the text says what may be wrong.
    """
    value = value.strip()
    if not value:
        raise ValueError(say("must not be empty"))
    if len(value) > _LONGEST_SELECTOR:
        raise ValueError(
            say("is longer than %(longest_selector)s characters", longest_selector=_LONGEST_SELECTOR)
        )
    try:
        LexborHTMLParser("<p></p>").css(value)
    except (SelectolaxError, ValueError):
        raise ValueError(
            say(
                "%(value)s is no CSS selector that can be read; check its brackets and commas "
                "(pseudo-elements like ::text, and :contains() of jQuery, are not CSS)",
                value=repr(value),
            )
        ) from None
    return value


def checked_url(value: str) -> str:
    """`value`, when it can be a URL: absolute, or relative to the site's.

    Raises:
        ValueError: it cannot.
    """
    value = value.strip()
    if not value:
        raise ValueError(say("must not be empty"))
    try:
        scheme = urlsplit(value).scheme
    except ValueError as error:
        raise ValueError(say("%(value)s is no URL: %(error)s", value=repr(value), error=str(error))) from None
    if scheme not in {"", "http", "https"}:
        raise ValueError(
            say(
                "%(value)s has the scheme %(scheme)s; only http and https can be crawled",
                value=repr(value),
                scheme=repr(scheme),
            )
        )
    return value


OptionalText = Annotated[str | None, BeforeValidator(_nothing_for_blank)]
Selector = Annotated[str, AfterValidator(checked_selector)]
OptionalSelector = Annotated[Selector | None, BeforeValidator(_nothing_for_blank)]
Url = Annotated[str, AfterValidator(checked_url)]
OptionalUrl = Annotated[Url | None, BeforeValidator(_nothing_for_blank)]


class ArticleParameters(Parameters):
    """What every adapter's targets say of their articles.

    Adapters name it before their own fields' class, so that forms show its fields after those.
    """

    title_selector: OptionalSelector = Field(
        None, description="CSS: an article's title; else it is found by itself."
    )
    content_selector: OptionalSelector = Field(
        None, description="CSS: an article's text; else it is found by itself."
    )
    ignore_selectors: tuple[Selector, ...] = Field(
        (), max_length=100, description="CSS: parts of an article that make no new version when they change."
    )
    recheck_days: int = Field(
        0,
        ge=0,
        le=3_650,
        title="Look again for (days)",
        description="Articles that are younger are fetched again, and get a version when they changed.",
    )
    attachments: bool = Field(
        False, description="Keep the files that articles link to (pdf, doc, xls …) as documents too."
    )
    attachment_max_mb: int = Field(
        20,
        ge=1,
        le=200,
        title="Largest attachment (MB)",
        description="Larger files are left out and counted.",
    )
    warc: bool = Field(
        False,
        title="Keep as WARC",
        description="Also keep requests and answers as WARC files, where the installation allows it (WEBQUEUE_WARC).",
    )


class ListFields(Parameters):
    """Where a target of the adapter `list` finds its articles."""

    list_url: Url = Field(
        description="URL of the list pages, absolute or relative to the site's base URL; {page} is the number."
    )
    first_list_url: OptionalUrl = Field(None, description="URL of list page 1, when it has one of its own.")
    page_start: int = Field(
        1, ge=0, le=1_000_000, title="First {page}", description="What {page} is on list page 1."
    )
    next_selector: OptionalSelector = Field(
        None, description="CSS: the link to the next list page, instead of {page}."
    )
    max_pages: int = Field(
        50, ge=1, le=100_000, title="List pages at most", description="The last list page that is fetched."
    )
    item_selector: Selector = Field(description="CSS: the links to articles on a list page.")


class ListParameters(ArticleParameters, ListFields):
    """What a `crawl` target of a site with the adapter `list` says."""

    @model_validator(mode="after")
    def _check_paging(self) -> Self:
        if self.first_list_url and PAGE in self.first_list_url:
            raise wrong(
                "first_list_url",
                say("is the URL of list page 1 alone, so %(page)s cannot stand in it", page=PAGE),
            )
        if PAGE in self.list_url and self.next_selector:
            raise wrong(
                "next_selector",
                say("list_url has %(page)s already: only one of them can lead to the next page", page=PAGE),
            )
        if PAGE not in self.list_url and not self.next_selector and self.max_pages > 1:
            raise wrong(
                "list_url",
                say(
                    "nothing leads to list page 2: write %(page)s into list_url, set next_selector, or set "
                    "max_pages to 1",
                    page=PAGE,
                ),
            )
        return self


def wrong(field: str, message: str) -> PydanticCustomError:
    """An error of two fields together, shown at one of them."""
    return PydanticCustomError("crawl_parameters", "{message}", {"field": field, "message": message})
