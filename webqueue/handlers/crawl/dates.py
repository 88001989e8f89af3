"""When an article was published, where its page says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from selectolax.lexbor import LexborHTMLParser

# Names of meta elements, in lower case; PubDate is what the standard for government sites of China asks for.
_META_NAMES: Final = frozenset(
    {
        "article:published_time",
        "og:published_time",
        "datepublished",
        "pubdate",
        "publishdate",
        "publish-date",
        "publish_date",
        "publication_date",
        "dc.date.issued",
        "dcterms.issued",
        "citation_publication_date",
    }
)
_DATE: Final = re.compile(
    r"\s*(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?"
    r"(?:[T\s]+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:[.,]\d+)?\s*(Z|[+-]\d{2}:?\d{2})?)?\s*"
)
_SECONDS: Final = re.compile(r"\d{9,16}(?:\.\d{1,9})?")
# 0 and small numbers mean "not set"; from 1973 to 2096 seconds cannot be taken for milliseconds.
_EARLIEST_STAMP: Final = 100_000_000
_LATEST_STAMP: Final = 4_000_000_000
_LAST_YEAR: Final = 9999
_LONGEST_JSON: Final = 200_000
_DEEPEST_JSON: Final = 20


def zone(name: str) -> tzinfo:
    """The time zone of a site; UTC when this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def published_at(tree: LexborHTMLParser, timezone: tzinfo) -> datetime | None:
    """The time of publication in the page's own data: meta elements, then JSON-LD, then `itemprop`; in UTC.

    Args:
        tree: the page.
        timezone: of the site, for times without an offset; a date alone is its midnight.
    """
    for text in (*_in_meta(tree), *_in_json_ld(tree), *_in_itemprop(tree)):
        found = parse(text, timezone)
        if found is not None:
            return found
    return None


def parse(text: str, timezone: tzinfo) -> datetime | None:
    """A date or time as pages write it (ISO 8601, slashes, Chinese), in UTC; None for anything else."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, offset = match.groups()
    try:
        local = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))  # noqa: DTZ001
        if offset is not None:
            zone_of_text = datetime.strptime(offset.replace("Z", "+0000"), "%z").tzinfo
            return local.replace(tzinfo=zone_of_text).astimezone(UTC)
        return local.replace(tzinfo=timezone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def of_value(value: Any, timezone: tzinfo) -> datetime | None:
    """A time as JSON has it, in UTC: a date as pages write it, or seconds, milliseconds or microseconds since 1970.

    Args:
        value: of whatever type; numbers may be texts.
        timezone: of the site, for dates without an offset.
    """
    if isinstance(value, str):
        text = value.strip()
        if not _SECONDS.fullmatch(text):
            return parse(text, timezone)
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for factor in (1, 1_000, 1_000_000):
        if _EARLIEST_STAMP <= value < _LATEST_STAMP * factor:
            return datetime.fromtimestamp(value / factor, UTC)
    return None


def changed_at(text: str, timezone: tzinfo) -> datetime | None:
    """The latest time that a date of change can mean, in UTC: a day alone is its last second."""
    found = parse(text, timezone)
    if found is not None and ":" not in text and found.year < _LAST_YEAR:
        found += timedelta(days=1, seconds=-1)
    return found


def _in_meta(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("meta[content]"):
        name = (
            node.attributes.get("property")
            or node.attributes.get("name")
            or node.attributes.get("itemprop")
            or ""
        )
        if name.strip().lower() in _META_NAMES:
            yield node.attributes.get("content") or ""


def _in_itemprop(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css('[itemprop="datePublished"]'):
        yield node.attributes.get("datetime") or node.attributes.get("content") or node.text()


def _in_json_ld(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css('script[type="application/ld+json"]'):
        source = node.text()
        if len(source) > _LONGEST_JSON:
            continue
        try:
            data = json.loads(source)
        except (ValueError, RecursionError):
            continue  # broken JSON-LD is common, and says nothing
        yield from _dates_published(data, _DEEPEST_JSON)


def _dates_published(data: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(data, dict):
        if isinstance(data.get("datePublished"), str):
            yield data["datePublished"]
        for value in data.values():
            yield from _dates_published(value, depth - 1)
    elif isinstance(data, list):
        for value in data:
            yield from _dates_published(value, depth - 1)
