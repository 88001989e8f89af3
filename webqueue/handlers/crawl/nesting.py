"""Pages that would take a parser hours: elements nested without end, and tags that never end.

The rules of HTML make a parser look through all open elements at each new one, so that a megabyte of `<div>` costs
minutes. Browsers therefore stop nesting at a depth of 512, and so does this.
"""

from __future__ import annotations

import re
from typing import Final

DEEPEST: Final = 512
LONGEST_TAG: Final = (
    50_000  # characters; attributes are compared with each other, and pictures inside a tag are no text
)

_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)>")
_LONG_TAG: Final = re.compile(rf"<[a-zA-Z][^<>]{{{LONGEST_TAG},}}>?")
# Elements that hold nothing, or that the next one of their kind closes: pages leave their ends out.
_NOT_COUNTED: Final = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "html",
        "head",
        "body",
        "p",
        "li",
        "dt",
        "dd",
        "option",
        "optgroup",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "tfoot",
        "colgroup",
        "caption",
        "rp",
        "rt",
        "rb",
        "rtc",
    ]
)


def tamed(html: str) -> str:
    """`html` without the tags beyond the deepest nesting and without endless ones; ordinary pages stay as they are."""
    html = _LONG_TAG.sub("", html)
    if html.count("<") <= DEEPEST:
        return html
    depth = dropped = 0

    def keep_or_drop(match: re.Match[str]) -> str:
        nonlocal depth, dropped
        closing, name, rest = match.groups()
        name = name.lower()
        if name in _NOT_COUNTED or (name == "a" and rest.endswith("/")):
            return match.group()
        if closing:
            if dropped:
                dropped -= 1
                return ""
            depth = max(depth - 1, 0)
            return match.group()
        if depth >= DEEPEST:
            dropped += 1
            return ""
        depth += 1
        return match.group()

    return _TAG.sub(keep_or_drop, html)
