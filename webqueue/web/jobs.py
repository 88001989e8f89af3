"""Jobs: the list with its filters, one job with everything about it, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, current_app, render_template, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError
from webqueue.models import JobSource
from webqueue.queries import JobRow
from webqueue.queries.stopping import stopping
from webqueue.queries.waiting import ordinal
from webqueue.web import answers, confirm, job_filters, live, log_lines
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.figures import figures_of
from webqueue.web.languages import between_sentences, gettext, told, told_error
from webqueue.web.log_lines import LEVEL_WORDS, filter_of
from webqueue.worker.liveness import life_in

pages = Blueprint("jobs", __name__)

DOCUMENTS_SHOWN = 20


@pages.get("/jobs")
def index() -> Response:
    """Every job, newest first."""
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    chosen = job_filters.chosen_in(request.args)
    filters = job_filters.filter_of(chosen, clock.now(session))
    page = queries.list_jobs(session, filters, cursor=request.args.get("cursor"))
    # While jobs are ticked the rows stand still: a swap would take the ticks away.
    selecting = "select" in request.args
    return live.page(
        "jobs.html",
        version=version,
        blocks=() if selecting else ("rows",),
        section="jobs",
        page=page,
        chosen=chosen,
        chips=job_filters.chips(chosen),
        url=_url_with({**chosen, "select": "1"} if selecting else chosen),
        list_url=job_filters.list_url(chosen),
        selecting=selecting,
        matching=queries.count_jobs(session, filters) if selecting else 0,
        most=queries.MAX_CHOSEN,
        periods=job_filters.PERIOD_WORDS,
        statuses=queries.JOB_STATUSES,
    )


@pages.get("/jobs/<name>")
def show(name: str) -> Response:
    """One job: why, timeline, progress, chain, counters, log, documents, parameters."""
    session = reading()
    job = queries.get_job(session, name)
    version = queries.job_version(session, job.seq)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    after = request.args.get("after", type=int)
    only = filter_of(request.args)
    line = request.args.get("line", type=int)
    if after is not None and after >= 0:
        log = queries.job_log(session, job.seq, after=after, only=only)
    elif line is not None and line > 0:
        log = queries.job_log_around(session, job.seq, line, only=only)
    else:
        log = queries.job_log_tail(session, job.seq, only=only)
    appended = None
    if live.is_poll() and log.lines:
        appended = ("log-lines", Markup(render_template("_log_lines.html", lines=log.lines, job=job)))  # noqa: S704 - own template
    chain = queries.chain(session, job.root_id)
    documents = queries.list_documents(session, queries.DocumentFilter(job=job.id), limit=DOCUMENTS_SHOWN)
    return live.page(
        "job.html",
        version=version,
        blocks=("head", "why", "timeline", "counters", "chain", "result", "documents", "rag_export"),
        busy=not job.is_final,
        carry={"after": str(log.next_offset)},
        section="jobs",
        job=job,
        log=log,
        log_only=only,
        log_levels=LEVEL_WORDS,
        appended=appended,
        chain=chain if len(chain) > 1 else (),
        most_attempts=current_app.extensions["webqueue_settings"].cooldown_auto_retry_max + 1,
        documents=documents.items,
        more_documents=documents.next_cursor is not None,
        trial=_trial(job),
        figures=figures_of(job),
        kept_page=_kept_page(job),
        stopping=stopping(session, job.seq),
        parameters=config.masked(queries.get_target(session, job.target).params),
    )


@pages.get("/jobs/<name>/log.txt")
def log_text(name: str) -> Response:
    """The whole log of a job as plain text."""
    return log_lines.as_text(queries.get_job(reading(), name))


@pages.post("/jobs/<name>/cancel")
@needs(Action.CANCEL)
def cancel(name: str) -> AnyResponse:
    """Cancel a job; a running one after asking once."""
    job = queries.get_job(reading(), name)
    here = url_for("jobs.show", name=job.id)
    if job.status == "running" and not confirm.given():
        question = gettext(
            "#%(seq)s %(target)s is running. It stops after the request in flight, and starts no retry.",
            seq=job.seq,
            target=job.target,
        )
        return confirm.ask(question, gettext("Cancel job"), here)
    by = user_name()
    life = worker_life()
    return acted(
        here,
        lambda: database().run(lambda s: jobs.cancel(s, job.id, by=by, life=life)),
        lambda came: (
            gettext("#%(seq)s is cancelled.", seq=job.seq)
            if came == "cancelled"
            else gettext("#%(seq)s is being cancelled.", seq=job.seq)
        ),
    )


@pages.post("/jobs/<name>/force-stop")
@needs(Action.CANCEL)
def force_stop(name: str) -> AnyResponse:
    """Stop a job whose handler does not listen to its cancel, after telling what that does."""
    job = queries.get_job(reading(), name)
    here = url_for("jobs.show", name=job.id)
    state = stopping(reading(), job.seq)
    if state is not None and not confirm.given():
        question = gettext(
            "#%(seq)s %(target)s. %(does)s", seq=job.seq, target=job.target, does=told(state.force_does)
        )
        return confirm.ask(question, gettext("Force stop"), here)
    by = user_name()
    life = worker_life()
    return acted(
        here,
        lambda: database().run(lambda s: jobs.force_stop(s, job.id, by=by, life=life)),
        lambda came: (
            gettext("#%(seq)s is cancelled.", seq=job.seq)
            if came == "cancelled"
            else gettext("#%(seq)s is being forced to stop.", seq=job.seq)
        ),
    )


@pages.post("/jobs/<name>/retry")
@needs(Action.RETRY)
def retry(name: str) -> AnyResponse:
    """Run a failed or cancelled job again, from its checkpoint."""
    job = queries.get_job(reading(), name)
    by, new_id = user_name(), jobs.new_job_id()
    return acted(
        url_for("jobs.show", name=job.id),
        lambda: database().run(lambda s: jobs.retry(s, job.id, by=by, new_id=new_id)),
        queued_words,
    )


@pages.post("/jobs/<name>/front")
@needs(Action.FRONT)
def front(name: str) -> AnyResponse:
    """Let a queued job be the next of its key."""
    job = queries.get_job(reading(), name)
    by = user_name()
    return acted(
        url_for("jobs.show", name=job.id),
        lambda: database().run(lambda s: jobs.move_to_front(s, job.id, by=by)),
        lambda _: gettext("#%(seq)s is the next of %(key)s.", seq=job.seq, key=job.rate_key),
    )


def worker_life() -> Callable[[str], jobs.Life]:
    """What is known of workers: a job of a dead one is cancelled at once, nobody is left who would stop it (P8)."""
    return life_in(database().instance_path)


def submit_trial(target: str) -> AnyResponse:
    """Queue a try of a target, and lead to its job, where the result appears."""
    by, new_id = user_name(), jobs.new_job_id()
    try:
        submitted = database().run(
            lambda s: jobs.submit(s, target, source=JobSource.TRY, by=by, new_id=new_id)
        )
    except ConflictError as error:
        return answers.refused(told_error(error), url_for("targets.show", code=target))
    read_anew()
    return answers.go(url_for("jobs.show", name=submitted.id), queued_words(submitted))


def queued_words(submitted: jobs.Submitted) -> str:
    """`Queued, 3rd, behind #8123 news` or `Already queued as #8123`."""
    if submitted.deduplicated:
        job = queries.get_job(reading(), submitted.id)
        if job.status == "queued":
            return gettext("Already queued as #%(seq)s.", seq=submitted.seq)
        return gettext("Already running as #%(seq)s.", seq=submitted.seq)
    job = queries.get_job(reading(), submitted.id)
    waiting = job.waiting
    if waiting is None or (waiting.behind is None and waiting.position <= 1):
        words = gettext("Queued as #%(seq)s.", seq=submitted.seq)
    elif waiting.behind is None:
        place = told(ordinal(waiting.position))
        words = gettext("Queued as #%(seq)s, %(place)s.", seq=submitted.seq, place=place)
    else:
        words = gettext(
            "Queued as #%(seq)s, %(place)s, behind #%(first)s %(target)s.",
            seq=submitted.seq,
            place=told(ordinal(waiting.position)),
            first=waiting.behind.seq,
            target=waiting.behind.target,
        )
    if waiting is None or waiting.reason in {"behind", "starting"}:
        return words
    return f"{words}{between_sentences()}{told(waiting.message)}"


def _url_with(chosen: dict[str, str]) -> Callable[..., str]:
    """Makes the address of this list with its filters and some more."""
    return lambda **more: job_filters.list_url({**chosen, **more})


def _trial(job: JobRow) -> dict[str, Any] | None:
    return job.result if job.source == "try" and job.result else None


def _kept_page(job: JobRow) -> str | None:
    """The key of the copy of a page that the run kept for a person to look at (P12)."""
    kept = (job.result or {}).get("kept_page")
    return kept if isinstance(kept, str) else None
