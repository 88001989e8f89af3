"""Which browser it is, in a few words, from what it says of itself: to be recognised by a person, no more."""

from __future__ import annotations

import re
from typing import Final

from webqueue.web.languages import gettext

# The first that fits: nearly all of them also claim to be what they descend from.
_BROWSERS: Final = (
    (re.compile(r"MicroMessenger/"), "WeChat"),
    (re.compile(r"QQBrowser/"), "QQ Browser"),
    (re.compile(r"\bEdg(e|A|iOS)?/"), "Edge"),
    (re.compile(r"\b(OPR|Opera)/"), "Opera"),
    (re.compile(r"\b(Firefox|FxiOS)/"), "Firefox"),
    (re.compile(r"\b(Chrome|Chromium|CriOS|HeadlessChrome)/"), "Chrome"),
    (re.compile(r"Version/.*\bSafari/"), "Safari"),
    (re.compile(r"^curl/"), "curl"),
    (re.compile(r"^(python|Python|Werkzeug)"), "Python"),
)
_SYSTEMS: Final = (
    (re.compile(r"iPhone"), "iPhone"),
    (re.compile(r"iPad"), "iPad"),
    (re.compile(r"Android"), "Android"),
    (re.compile(r"Windows"), "Windows"),
    (re.compile(r"Mac OS X|Macintosh"), "macOS"),
    (re.compile(r"CrOS"), "ChromeOS"),
    (re.compile(r"Linux|X11"), "Linux"),
)
_LONGEST: Final = 40


def browser_words(agent: str) -> str:
    """`Firefox on Linux`; the beginning of what it says where that is no browser that is known."""
    browser = next((name for pattern, name in _BROWSERS if pattern.search(agent)), None)
    system = next((name for pattern, name in _SYSTEMS if pattern.search(agent)), None)
    if browser is None:
        shown = agent if len(agent) <= _LONGEST else f"{agent[:_LONGEST]}…"
        return shown or gettext("a program that does not say what it is")
    if system is None:
        return browser
    return gettext("%(browser)s on %(system)s", browser=browser, system=system)
