"""What a job counted, in the words and the order in which people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webqueue.queries import JobRow
from webqueue.sentences import StoredText, say
from webqueue.web import words
from webqueue.web.languages import told

# The figures of crawls; what another handler counts is shown under its own name.
_LABELS: Final = {
    "pages": say("List pages"),
    "links": say("Links"),
    "new": say("New"),
    "changed": say("Changed"),
    "unchanged": say("Unchanged"),
    "known": say("Known"),
    "rechecked": say("Known, fetched again"),
    "in_chain": say("From an earlier run"),
    "duplicates": say("Duplicates"),
    "attachments": say("Attachments"),
    "attachments_failed": say("Attachments not fetched"),
    "without_link": say("Items without link"),
    "left_out": say("Links not followed"),
    "files_unchanged": say("Sitemap files unchanged"),
    "files_failed": say("Sitemap files not read"),
    "total": say("Articles, says the site"),
    "failed": say("Not fetched"),
    "empty": say("Without text"),
    "selector_missed": say("Selector missed"),
    "skipped_other_key": say("Other hosts, skipped"),
    "missing": say("Not found any more"),
    "gone": say("Gone"),
    "requests": say("Requests"),
    "retried": say("Repeated requests"),
    "bytes": say("Bytes"),
    "status": say("HTTP answers"),
}
_LEFT_OUT: Final = frozenset({"links_on_page_1", "read"})
# Told also when nothing was counted: nought new articles is an answer.
_ALWAYS: Final = frozenset({"pages", "new"})
_LONGEST_LIST: Final = 20


@dataclass(frozen=True)
class Figures:
    """Numbers with their labels; counts within counts (`Statuses` 200: 31); and the first failures as texts."""

    numbers: list[tuple[str, int | float]] = field(default_factory=list)
    groups: list[tuple[str, list[tuple[str, Any]]]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopped_because: str = ""


def figures_of(job: JobRow) -> Figures:
    """The counters of the run so far, and those of its result."""
    counted: dict[str, Any] = {**_numbers_of(job.result or {}), **job.counters}
    ordered = sorted(counted.items(), key=lambda item: _place(item[0]))
    failures = (job.result or {}).get("failures")
    because = (job.result or {}).get("stopped_because")
    return Figures(
        numbers=[
            (_label(name), value)
            for name, value in ordered
            if _is_number(value) and name not in _LEFT_OUT and (value or name in _ALWAYS)
        ],
        groups=[(_label(name), list(value.items())) for name, value in ordered if isinstance(value, Mapping)],
        failures=[StoredText(failure) for failure in failures[:_LONGEST_LIST]]
        if isinstance(failures, list)
        else [],
        stopped_because=_because(because) if isinstance(because, str) else "",
    )


def _numbers_of(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name in _LABELS and _is_number(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _place(name: str) -> int:
    names = list(_LABELS)
    return names.index(name) if name in _LABELS else len(names)


def _label(name: str) -> str:
    return told(_LABELS[name]) if name in _LABELS else name.replace("_", " ").capitalize()


def _because(code: str) -> str:
    return told(words.ENDS[code]) if code in words.ENDS else told(StoredText(code)).replace("_", " ")
