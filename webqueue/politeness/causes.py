"""Why a key waits and an interval changed, in the words that are stored: written here, and known again by whoever reads them.

They stay English in the database, the API, the logs and the messages; pages say those that are known here in the
language of their reader (docs/decisions/0013-two-languages.md).
"""

from __future__ import annotations

from typing import Final

from webqueue.sentences import Sentence, message, recalled

# What a server does that wants to be left alone.
LIST_PAGE_REFUSED: Final = message("HTTP %(status)s for a list page from %(host)s")
REFUSED_IN_A_ROW: Final = message("HTTP %(status)s %(count)s times in a row from %(host)s")
ANSWERED: Final = message("HTTP %(status)s from %(host)s")
CHALLENGED: Final = message("challenge page (%(firewall)s, HTTP %(status)s) from %(host)s")
DISCONNECTED: Final = message("connection refused or reset %(count)s times by %(host)s")

# What a gap is kept for.
RUN_ENDED: Final = message("end of the last run")
BETWEEN_JOBS: Final = message("gap between two jobs of the key")
NOT_STOPPED: Final = message("a handler that did not stop")
AFTER_REQUEST: Final = message("%(interval)s after the last request")
OWN_INTERVAL: Final = message("interval of the target (%(seconds)s s)")
LEARNED_INTERVAL: Final = message("learned interval (%(seconds)s s)")
CRAWL_DELAY: Final = message("Crawl-delay of robots.txt (%(seconds)s s)")
INTERVAL: Final = message("interval (%(seconds)s s)")

CLEAN_RUN: Final = message("clean run %(count)s in a row")

# Notes of events.
COOLING_DOWN: Final = message("%(cause)s; cooling down for %(seconds)s s")
HANDED_BACK: Final = message("handler did not stop; handed back")

# The narrower before the wider: the first that fits is taken.
_KNOWN: Final = (
    COOLING_DOWN, LIST_PAGE_REFUSED, REFUSED_IN_A_ROW, CHALLENGED, ANSWERED, DISCONNECTED, RUN_ENDED, BETWEEN_JOBS,
    NOT_STOPPED, AFTER_REQUEST, OWN_INTERVAL, LEARNED_INTERVAL, CRAWL_DELAY, INTERVAL, CLEAN_RUN, HANDED_BACK,
)  # fmt: skip
_WITHIN: Final = ("cause", "interval")


def known(text: str) -> str:
    """A stored cause as the Sentence that it was made as; what a handler or a person wrote stays as it is."""
    found = recalled(text, _KNOWN)
    if not isinstance(found, Sentence):
        return text
    values = {name: known(str(value)) if name in _WITHIN else value for name, value in found.values.items()}
    return Sentence(text, found.message, values=values)
