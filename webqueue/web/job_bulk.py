"""Many jobs at once: cancelled or run again, those that are ticked or all that match; and the list as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flask import Blueprint, Response, request
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.queries import ChosenJob, JobFilter, JobRow
from webqueue.queries.numbers import LARGEST, whole
from webqueue.sentences import Sentence, say
from webqueue.web import answers, confirm, job_filters
from webqueue.web.auth import needs, user_name
from webqueue.web.csv_files import csv_file
from webqueue.web.jobs import worker_life
from webqueue.web.languages import between_sentences, gettext, ngettext, pgettext, told

pages = Blueprint("job_bulk", __name__)

CSV_FIELDS: Final = (
    "seq", "id", "status", "attention", "site", "target", "rate_key", "source", "created_by", "enqueued_at",
    "due_at", "started_at", "finished_at", "running_for_sec", "last_completed_page", "error_msg",
)  # fmt: skip


@pages.get("/jobs.csv")
def as_csv() -> Response:
    """The jobs that match the filters, newest first, at most 100,000."""
    filters = job_filters.filter_of(job_filters.chosen_in(request.args), clock.now(reading()))
    return csv_file(
        "jobs.csv",
        CSV_FIELDS,
        lambda s, cursor, limit: queries.list_jobs(s, filters, cursor=cursor, limit=limit),
        _cell,
    )


@pages.post("/bulk/jobs/cancel")
@needs(Action.CANCEL)
def cancel() -> AnyResponse:
    """Cancel many jobs, after naming how many."""
    by, life = user_name(), worker_life()
    return _act(
        _Verb(
            lambda count: ngettext("Cancel: %(count)s job", "Cancel: %(count)s jobs", count),
            say("None of the chosen jobs is queued or running. Tick some, and try again."),
            harmless=False,
        ),
        queries.CANCELLABLE,
        lambda job: database().run(lambda s: jobs.cancel(s, job.id, by=by, life=life)),
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
        _Verb(
            lambda count: ngettext("Run again: %(count)s job", "Run again: %(count)s jobs", count),
            say("None of the chosen jobs is failed or cancelled. Tick some, and try again."),
            harmless=True,
        ),
        queries.REPEATABLE,
        again,
    )


@dataclass(frozen=True)
class _Verb:
    """What is done to many jobs, in words: on the button, and where there is none to do it to."""

    button: Callable[[int], str]
    nothing: Sentence
    harmless: bool


def _told(came: str, count: int) -> str:
    """What came of `count` jobs."""
    if came == "cancelled":
        return ngettext("%(count)s job cancelled", "%(count)s jobs cancelled", count)
    if came == "cancelling":
        return ngettext("%(count)s job being cancelled", "%(count)s jobs being cancelled", count)
    if came == "queued":
        return ngettext("%(count)s job queued again", "%(count)s jobs queued again", count)
    if came == "standing":
        return ngettext(
            "%(count)s job not queued, an equal job stands already",
            "%(count)s jobs not queued, an equal job stands already",
            count,
        )
    return ngettext(
        "%(count)s job left alone, their state has changed",
        "%(count)s jobs left alone, their state has changed",
        count,
    )


def _act(verb: _Verb, statuses: Sequence[str], act: Callable[[ChosenJob], str]) -> AnyResponse:
    fallback = job_filters.list_url({})
    chosen, asked = _chosen(statuses)
    if not chosen:
        return answers.refused(told(verb.nothing), fallback)
    if not confirm.given():
        left = asked - len(chosen)
        question = [examples([f"#{job.seq} {job.target}" for job in chosen])]
        # Beyond this number nobody counts how many match.
        if left > 0 and asked <= queries.MAX_CHOSEN:
            question.append(
                ngettext(
                    "The other %(count)s is left alone: its state does not allow it.",
                    "The other %(count)s are left alone: their state does not allow it.",
                    left,
                )
            )
        elif left > 0:
            question.append(gettext("The others are left alone where their state does not allow it."))
        if len(chosen) == queries.MAX_CHOSEN:
            question.append(
                gettext("More than %(count)s are not taken at once.", count=f"{queries.MAX_CHOSEN:,}")
            )
        newest = str(queries.newest_number(reading()))
        more = [] if "up_to" in request.form else [("up_to", newest)]
        return confirm.ask(
            between_sentences().join(question),
            verb.button(len(chosen)),
            fallback,
            more,
            harmless=verb.harmless,
        )
    came: Counter[str] = Counter()
    for job in chosen:
        try:
            came[act(job)] += 1
        except (ConflictError, NotFoundError):
            came["refused"] += 1  # it ended, or went on, since the question was asked
    read_anew()
    return answers.done(as_one_sentence(_told(name, count) for name, count in came.items()), fallback)


def _chosen(statuses: Sequence[str]) -> tuple[tuple[ChosenJob, ...], int]:
    """The jobs that the form is about in these statuses, and how many were chosen in any status."""
    session = reading()
    if "all" not in request.form:
        ids = set(request.form.getlist("job")[: queries.MAX_CHOSEN])
        return queries.chosen_jobs(session, ids, statuses), len(ids)
    filters: JobFilter = job_filters.filter_of(job_filters.chosen_in(request.form), clock.now(session))
    up_to = request.form.get("up_to")
    last = None if up_to is None else whole(up_to, 0, LARGEST)
    if up_to is not None and last is None:
        raise InvalidInputError.of(
            "up_to", gettext("%(value)s is no number of a job.", value=repr(up_to[:40]))
        )
    found = queries.matching_jobs(session, filters, statuses, up_to=last)
    return found, queries.count_jobs(session, filters)


def as_one_sentence(parts: Iterable[str]) -> str:
    """What came of several things."""
    return f"{gettext('; ').join(parts)}{gettext('.')}"


def examples(names: Sequence[str], shown: int = 3) -> str:
    """The first of what was chosen, and how many more."""
    named = pgettext("list", ", ").join(names[:shown])
    if len(names) <= shown:
        return f"{named}{gettext('.')}"
    return gettext("They are %(names)s and %(count)s more.", names=named, count=f"{len(names) - shown:,}")


def _cell(job: JobRow, name: str) -> str:
    value: Any = getattr(job, name)
    if value is None:
        return ""
    if name.endswith("_at"):
        return str(value.isoformat(timespec="seconds"))
    return f"{value:.1f}" if isinstance(value, float) else str(value)
