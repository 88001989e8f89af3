"""A job's log: which lines the page shows, and all of them as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from flask import Response

from webqueue import queries
from webqueue.database import Database
from webqueue.db import database
from webqueue.queries import JobRow
from webqueue.queries.logs import LEVELS, MAX_LINES, LogFilter
from webqueue.sentences import say

# The lowest level that is shown, and how the form says it.
LEVEL_WORDS: Final = (
    ("", say("Every level")),
    ("warning", say("Warnings and errors")),
    ("error", say("Errors")),
)
_LONGEST_TEXT: Final = 200


def filter_of(arguments: Mapping[str, str]) -> LogFilter:
    """What the address of the page asks for; an unknown level shows everything."""
    level = arguments.get("level", "")
    return LogFilter(
        level=level if level in LEVELS else None,
        text=arguments.get("q", "").replace("\0", "").strip()[:_LONGEST_TEXT],
    )


def as_text(job: JobRow) -> Response:
    """Every line, read in parts, as a file to download: never shown by the browser, whatever a crawl wrote there."""
    response = Response(_lines(database(), job.seq), mimetype="text/plain")
    response.headers["Content-Disposition"] = f'attachment; filename="job-{job.seq}.log"'
    return response


def _lines(from_database: Database, seq: int) -> Iterator[str]:
    after = 0
    while True:
        with from_database.reading() as session:
            page = queries.job_log(session, seq, after=after, limit=MAX_LINES)
        for line in page.lines:
            yield f"{line.at:%Y-%m-%dT%H:%M:%SZ} {line.level.upper():7} {line.message}\n"
        if not page.more:
            return
        after = page.next_offset
