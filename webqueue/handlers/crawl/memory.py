"""What a target's last complete run learned of its list pages, so that unchanged ones are not sent again.

The validators (RFC 9110 section 8.8) stand in the result of the job. They count only where that run read its pages to
the end and lost no article, and only for the same parameters: HTTP 304 must never hide what was not stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from webqueue.handlers.protocol import Context, Response

RESULT_KEY: Final = "list_pages"
_MOST_PAGES: Final = 200
_LONGEST: Final = 500  # characters of a validator; longer ones are mistakes


class Memory:
    """The validators of list pages, from the last complete run and for the next one.

    Args:
        ctx: of the job.
        conditional: False: every page is fetched whole, because its known links matter too.
    """

    def __init__(self, ctx: Context, *, conditional: bool = True) -> None:
        self._parameters = _fingerprint(ctx)
        self._before = _pages_of(ctx.previous_result(), self._parameters) if conditional else {}
        self._now: dict[str, dict[str, str]] = {}

    def validators(self, url: str) -> Mapping[str, str]:
        """Headers that make a request for a list page conditional; empty where nothing is known of it."""
        known = self._before.get(url, {})
        headers = {"if-none-match": known.get("etag"), "if-modified-since": known.get("last_modified")}
        return {name: value for name, value in headers.items() if value}

    def same_lastmod(self, url: str, lastmod: str) -> bool:
        """Whether the last complete run read the file when it had this `lastmod`."""
        return bool(lastmod) and self._before.get(url, {}).get("lastmod") == lastmod

    def note(self, url: str, response: Response, *, lastmod: str = "") -> None:
        """Note the validators of a page that was fetched."""
        found = {
            "etag": response.headers.get("etag", ""),
            "last_modified": response.headers.get("last-modified", ""),
            "lastmod": lastmod,
        }
        self._add(url, {name: value for name, value in found.items() if 0 < len(value) <= _LONGEST})

    def keep(self, url: str, *, lastmod: str = "") -> None:
        """Note that a page is as it was."""
        self._add(url, self._before.get(url, {}) | ({"lastmod": lastmod} if lastmod else {}))

    def result(self) -> dict[str, Any]:
        """What the result of a complete run has to say for the next one."""
        if not self._now:
            return {}
        return {RESULT_KEY: {"parameters": self._parameters, "pages": self._now}}

    def _add(self, url: str, found: dict[str, str]) -> None:
        if found and len(self._now) < _MOST_PAGES:
            self._now[url] = found


def _pages_of(result: Mapping[str, Any], parameters: str) -> dict[str, dict[str, str]]:
    """The pages that a result speaks of; anything that is not as it was written counts as nothing."""
    said = result.get(RESULT_KEY)
    if not isinstance(said, dict) or said.get("parameters") != parameters:
        return {}
    pages = said.get("pages")
    if not isinstance(pages, dict):
        return {}
    return {
        url: {name: value for name, value in page.items() if isinstance(value, str)}
        for url, page in pages.items()
        if isinstance(page, dict)
    }


def _fingerprint(ctx: Context) -> str:
    said = [ctx.site.adapter, ctx.site.base_url, ctx.params.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
