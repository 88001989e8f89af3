"""Why a key waits and an interval changed, in the words that are stored.

They stay English in the database, the API, the logs and the messages; pages know them again, and say them in the
language of their reader (docs/decisions/0013-two-languages.md).
"""

from __future__ import annotations

from typing import Final

from webqueue.sentences import stored_message

# What a server does that wants to be left alone.
LIST_PAGE_REFUSED: Final = stored_message("HTTP %(status)s for a list page from %(host)s")
REFUSED_IN_A_ROW: Final = stored_message("HTTP %(status)s %(count)s times in a row from %(host)s")
ANSWERED: Final = stored_message("HTTP %(status)s from %(host)s")
CHALLENGED: Final = stored_message("challenge page (%(firewall)s, HTTP %(status)s) from %(host)s")
DISCONNECTED: Final = stored_message("connection refused or reset %(count)s times by %(host)s")

# What a gap is kept for.
RUN_ENDED: Final = stored_message("end of the last run")
BETWEEN_JOBS: Final = stored_message("gap between two jobs of the key")
NOT_STOPPED: Final = stored_message("a handler that did not stop")
AFTER_REQUEST: Final = stored_message("%(interval)s after the last request")
AFTER_LOST_WORKER: Final = stored_message("%(interval)s after a lost worker")
OWN_INTERVAL: Final = stored_message("interval of the target (%(seconds)s s)")
LEARNED_INTERVAL: Final = stored_message("learned interval (%(seconds)s s)")
CRAWL_DELAY: Final = stored_message("Crawl-delay of robots.txt (%(seconds)s s)")
INTERVAL: Final = stored_message("interval (%(seconds)s s)")

CLEAN_RUN: Final = stored_message("clean run %(count)s in a row")

# Notes of events.
COOLING_DOWN: Final = stored_message("%(cause)s; cooling down for %(seconds)s s")
HANDED_BACK: Final = stored_message("handler did not stop; handed back")
