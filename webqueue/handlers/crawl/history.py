"""What a target's runs found before, so that a run that finds far less is not plainly done (DESIGN P12).

It is carried from result to result, so that it costs one read of the last one and survives the deletion of old jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, Final

from webqueue.handlers.crawl.counters import Counters
from webqueue.handlers.protocol import Context
from webqueue.sentences import Sentence, part, stored, stored_some

RESULT_KEY: Final = "history"
LAST_RUNS: Final = 10
# "From the fifth on": a run is judged when four are before it; a gap is usual when four are known.
BEFORE_JUDGED: Final = 4
PATIENCE: Final = 3  # times the usual gap


class History:
    """How many links list page 1 had in the last runs, and when runs found something new.

    Args:
        ctx: of the job.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        said = ctx.previous_result().get(RESULT_KEY)
        said = said if isinstance(said, Mapping) else {}
        self._links = [count for count in _list(said, "links_on_page_1") if _is_count(count)]
        self._found = [moment for text in _list(said, "found_at") if (moment := _moment(text)) is not None]

    def attention(self, counters: Counters) -> str | None:
        """Why a person should look at a run that is done, by what was usual before; to be asked once, at its end."""
        fewer = self._fewer_links(counters)
        self._note_find()
        return fewer or self._nothing_new()

    def result(self) -> dict[str, Any]:
        """What the result of a run has to say for the next ones."""
        return {
            RESULT_KEY: {
                "links_on_page_1": self._links[-LAST_RUNS:],
                "found_at": [moment.isoformat() for moment in self._found[-LAST_RUNS - 1 :]],
            }
        }

    def _fewer_links(self, counters: Counters) -> str | None:
        """Links on page 1 under half the median; a run that did not read page 1 whole neither is judged nor counts."""
        found, before = counters.links_on_page_1, self._links[-LAST_RUNS:]
        if found is None or counters.files_unchanged:
            return None
        self._links.append(found)
        if len(before) < BEFORE_JUDGED:
            return None
        usual = median(before)
        if found * 2 >= usual:
            return None
        return stored_some(
            "List page 1 has %(count)s link; usual are %(most)s (the median of the last %(all)s runs), and under half of "
            "that is suspicious. Look whether the site was changed, and whether the target still finds all of its links. "
            "When this is how it is now, the median follows within a few runs.",
            "List page 1 has %(count)s links; usual are %(most)s (the median of the last %(all)s runs), and under half of "
            "that is suspicious. Look whether the site was changed, and whether the target still finds all of its links. "
            "When this is how it is now, the median follows within a few runs.",
            found,
            most=f"{usual:g}",
            all=len(before),
        )

    def _note_find(self) -> None:
        """Note when the newest document came, by whichever run, also one that failed later."""
        newest = self._ctx.last_found_at()
        if newest is not None and (not self._found or newest > self._found[-1]):
            self._found.append(newest)

    def _nothing_new(self) -> str | None:
        finds = self._found[-LAST_RUNS - 1 :]
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(finds)]
        if len(gaps) < BEFORE_JUDGED:
            return None
        usual, silent = median(gaps), (self._ctx.now() - finds[-1]).total_seconds()
        if silent <= PATIENCE * usual:
            return None
        return stored(
            "Nothing new for %(silent)s, since %(time)s UTC; usually something new comes every %(usual)s. Look whether the "
            "site still publishes here.",
            silent=_told(silent),
            time=f"{finds[-1]:%Y-%m-%d %H:%M}",
            usual=_told(usual),
        )


def _list(said: Mapping[str, Any], name: str) -> list[Any]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _told(seconds: float) -> Sentence:
    """`12 days`, `3 hours`, `40 minutes`, `20 seconds`."""
    if seconds >= 2 * 86_400:
        return part("%(count)s days", count=f"{seconds / 86_400:.0f}")
    if seconds >= 2 * 3_600:
        return part("%(count)s hours", count=f"{seconds / 3_600:.0f}")
    if seconds >= 2 * 60:
        return part("%(count)s minutes", count=f"{seconds / 60:.0f}")
    return part("%(count)s seconds", count=f"{seconds:.0f}")
