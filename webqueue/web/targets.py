"""Targets: the list, one target, and what can be done with it."""

from __future__ import annotations

from flask import Blueprint, Response, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs, queries
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.errors import InvalidInputError
from webqueue.models import JobSource
from webqueue.queries.numbers import whole
from webqueue.web import answers, confirm, live, schedules, target_form, target_list
from webqueue.web.answers import acted
from webqueue.web.auth import may, needs, user_name
from webqueue.web.forms import Form
from webqueue.web.jobs import queued_words, submit_trial
from webqueue.web.languages import gettext
from webqueue.web.undo import with_undo

pages = Blueprint("targets", __name__)
target_form.add_to(pages)

RUNS_SHOWN = 50
EDITS_SHOWN = 5
MAX_PAGE_NUMBER = 1_000_000


@pages.get("/targets")
def index() -> Response:
    """Every target: schedule, next run, last result, Run now."""
    return target_list.looked_at()


@pages.get("/targets/<code>")
def show(code: str) -> Response:
    """One target: schedule, runs, interval, configuration."""
    session = reading()
    target = queries.get_target(session, code)
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    return _target_page(session, target, version)


def _target_page(
    session: Session, target: queries.TargetRow, version: str, run_with: Form | None = None
) -> Response:
    """The page of a target; `run_with` is how it should have been run, and was refused."""
    code = target.code
    return live.page(
        "target.html",
        version=version,
        blocks=("head", "now", "runs", "interval"),
        section="targets",
        target=target,
        run_with=run_with or Form({}),
        preview=schedules.preview(target.schedule, target.timezone, clock.now(session)),
        runs=queries.last_runs(session, code, length=RUNS_SHOWN),
        jobs=queries.list_jobs(session, queries.JobFilter(target=code), limit=10).items,
        changes=queries.interval_changes(session, code),
        params=config.masked(target.params),
        edits=_edits(session, code),
        can_undo=config.can_undo,
        overlap_words=target_form.OVERLAP_WORDS,
        catch_up_words=target_form.CATCH_UP_WORDS,
    )


def _edits(session: Session, code: str) -> tuple[queries.AuditRow, ...]:
    """Who changed the target last, for those who may read the audit log."""
    if not may(Action.AUDIT):
        return ()
    return queries.list_audit(session, queries.AuditFilter(kind="target", name=code), limit=EDITS_SHOWN).items


@pages.post("/targets/<code>/run")
@needs(Action.RUN)
def run(code: str) -> AnyResponse:
    """Queue a job; an equal one that stands is named instead."""
    by, force = user_name(), bool(request.form.get("force"))
    try:
        from_page = _from_page()
    except InvalidInputError as error:
        if answers.by_htmx():
            raise  # the form stays where it is, and a sentence is told
        return _refused_run(code, error)
    new_id = jobs.new_job_id()
    return acted(
        url_for("targets.show", code=code),
        lambda: database().run(
            lambda s: jobs.submit(
                s, code, source=JobSource.MANUAL, by=by, force=force, from_page=from_page, new_id=new_id
            )
        ),
        queued_words,
    )


@pages.post("/targets/<code>/try")
@needs(Action.RUN)
def try_out(code: str) -> AnyResponse:
    """Queue a job that stores nothing, and show its page, where the result appears."""
    return submit_trial(code)


@pages.post("/targets/<code>/pause")
@needs(Action.PAUSE)
def pause(code: str) -> AnyResponse:
    """Let the schedule rest."""
    by = user_name()
    return acted(
        url_for("targets.show", code=code),
        lambda: database().run(lambda s: config.pause_target(s, code, by=by, now=clock.now(s))),
        lambda _: gettext("The schedule of %(code)s is paused. Run now still works.", code=code),
    )


@pages.post("/targets/<code>/resume")
@needs(Action.PAUSE)
def resume(code: str) -> AnyResponse:
    """Let the schedule go on from now."""
    by = user_name()
    return acted(
        url_for("targets.show", code=code),
        lambda: database().run(lambda s: config.resume_target(s, code, by=by, now=clock.now(s))),
        lambda _: gettext("The schedule of %(code)s goes on.", code=code),
    )


@pages.post("/targets/<code>/delete")
@needs(Action.CONFIGURE)
def delete(code: str) -> AnyResponse:
    """Delete a target that has neither jobs nor documents, after asking."""
    if not confirm.given():
        question = gettext(
            "Delete the target %(code)s? It goes only where it has neither jobs nor documents.", code=code
        )
        return confirm.ask(question, gettext("Delete target"), url_for("targets.show", code=code))
    by = user_name()
    return acted(
        url_for("targets.index"),
        lambda: database().run(lambda s: config.delete_target(s, code, by=by, now=clock.now(s))),
        lambda _: with_undo(gettext("The target %(code)s is deleted.", code=code), "target", code),
        leave=True,
    )


def _refused_run(code: str, error: InvalidInputError) -> Response:
    form = Form.sent(request.form)
    form.shown = {"from_page", "force"}
    form.refuse(error)
    session = reading()
    target = queries.get_target(session, code)
    response = _target_page(session, target, queries.state_version(session), form)
    response.status_code = 422
    return response


def _from_page() -> int:
    text = request.form.get("from_page", "").strip() or "0"
    number = whole(text, 0, MAX_PAGE_NUMBER)
    if number is None:
        raise InvalidInputError.of(
            "from_page", gettext("%(value)s is no page number.", value=repr(text[:40]))
        )
    return number
