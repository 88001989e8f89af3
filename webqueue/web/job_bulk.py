"""Many jobs at once: cancelled or run again, those that are ticked or all that match; and the list as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from flask import Blueprint, Response, request
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.queries import ChosenJob, JobFilter, JobRow
from webqueue.queries.csv_lines import csv_line, for_spreadsheets
from webqueue.web import answers, confirm, job_filters
from webqueue.web.auth import needs, user_name
from webqueue.web.jobs import worker_life

pages = Blueprint("job_bulk", __name__)

CSV_FIELDS: Final = (
    "seq", "id", "status", "attention", "site", "target", "rate_key", "source", "created_by", "enqueued_at",
    "due_at", "started_at", "finished_at", "running_for_sec", "last_completed_page", "error_msg",
)  # fmt: skip
CSV_PAGE: Final = queries.MAX_LIMIT
CSV_MOST: Final = 100_000


@pages.get("/jobs.csv")
def as_csv() -> Response:
    """The jobs that match the filters, newest first, at most 100,000."""
    filters = job_filters.filter_of(job_filters.chosen_in(request.args), clock.now(reading()))
    db = database()  # the generator runs when the request is over

    def rows() -> Iterator[str]:
        yield csv_line(CSV_FIELDS)
        cursor: str | None = None
        for _ in range(CSV_MOST // CSV_PAGE):
            # A read of its own for each page: one that lasted minutes would keep old rows alive.
            with db.reading() as session:
                page = queries.list_jobs(session, filters, cursor=cursor, limit=CSV_PAGE)
            yield "".join(csv_line([_cell(job, name) for name in CSV_FIELDS]) for job in page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    return Response(
        for_spreadsheets(rows()),
        mimetype="text/csv",
        headers={"Content-Disposition": 'attachment; filename="jobs.csv"'},
    )


@pages.post("/bulk/jobs/cancel")
@needs(Action.CANCEL)
def cancel() -> AnyResponse:
    """Cancel many jobs, after naming how many."""
    by, life = user_name(), worker_life()
    return _act(
        "Cancel",
        queries.CANCELLABLE,
        lambda job: database().run(lambda s: jobs.cancel(s, job.id, by=by, life=life)),
        {"cancelled": "cancelled", "cancelling": "being cancelled"},
    )


@pages.post("/bulk/jobs/retry")
@needs(Action.RETRY)
def retry() -> AnyResponse:
    """Run many failed or cancelled jobs again, after naming how many."""
    by = user_name()

    def again(job: ChosenJob) -> str:
        new_id = jobs.new_job_id()
        submitted = database().run(lambda s: jobs.retry(s, job.id, by=by, new_id=new_id))
        return "standing" if submitted.deduplicated else "queued"

    return _act(
        "Run again",
        queries.REPEATABLE,
        again,
        {"queued": "queued again", "standing": "not queued, an equal job stands already"},
    )


def number_of(count: int, word: str) -> str:
    """`1 job`, `1,204 jobs`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _act(
    verb: str,
    statuses: Sequence[str],
    act: Callable[[ChosenJob], str],
    words: dict[str, str],
) -> AnyResponse:
    fallback = job_filters.list_url({})
    chosen, asked = _chosen(statuses)
    if not chosen:
        what = "queued or running" if statuses is queries.CANCELLABLE else "failed or cancelled"
        return answers.refused(f"None of the chosen jobs is {what}. Tick some, and try again.", fallback)
    if not confirm.given():
        left = asked - len(chosen)
        question = f"{verb} {number_of(len(chosen), 'job')}? {_examples(chosen)}"
        if left > 0:
            question += f" The other {left:,} chosen are left alone: their state does not allow it."
        if len(chosen) == queries.MAX_CHOSEN:
            question += f" More than {queries.MAX_CHOSEN:,} are not taken at once."
        newest = str(queries.newest_number(reading()))
        more = {} if "up_to" in request.form else {"up_to": newest}
        return confirm.ask(question, f"{verb}: {number_of(len(chosen), 'job')}", fallback, more)
    told: Counter[str] = Counter()
    for job in chosen:
        try:
            told[act(job)] += 1
        except (ConflictError, NotFoundError):
            told["refused"] += 1  # it ended, or went on, since the question was asked
    read_anew()
    words = {**words, "refused": "left alone, their state has changed"}
    parts = [f"{number_of(count, 'job')} {words[name]}" for name, count in told.items()]
    return answers.done(f"{'; '.join(parts)}.", fallback)


def _chosen(statuses: Sequence[str]) -> tuple[tuple[ChosenJob, ...], int]:
    """The jobs that the form is about in these statuses, and how many were chosen in any status."""
    session = reading()
    if "all" not in request.form:
        ids = set(request.form.getlist("job")[: queries.MAX_CHOSEN])
        return queries.chosen_jobs(session, ids, statuses), len(ids)
    filters: JobFilter = job_filters.filter_of(job_filters.chosen_in(request.form), clock.now(session))
    up_to = request.form.get("up_to")
    if up_to is not None and not (up_to.isascii() and up_to.isdigit() and len(up_to) <= 18):
        raise InvalidInputError.of("up_to", f"{up_to[:40]!r} is no number of a job.")
    found = queries.matching_jobs(session, filters, statuses, up_to=None if up_to is None else int(up_to))
    return found, queries.count_jobs(session, filters)


def _examples(chosen: Sequence[ChosenJob], shown: int = 3) -> str:
    named = ", ".join(f"#{job.seq} {job.target}" for job in chosen[:shown])
    return f"They are {named} and {len(chosen) - shown:,} more." if len(chosen) > shown else f"{named}."


def _cell(job: JobRow, name: str) -> str:
    value: Any = getattr(job, name)
    if value is None:
        return ""
    if name.endswith("_at"):
        return str(value.isoformat(timespec="seconds"))
    return f"{value:.1f}" if isinstance(value, float) else str(value)
