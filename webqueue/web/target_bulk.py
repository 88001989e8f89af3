"""Many targets at once: run, paused, resumed, given a schedule; those that are ticked, or all that match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.models import JobSource
from webqueue.queries import TargetFilter
from webqueue.web import answers, confirm
from webqueue.web.auth import needs, user_name
from webqueue.web.job_bulk import number_of

pages = Blueprint("target_bulk", __name__)

FILTERS: Final = ("q", "site", "state")


@pages.post("/bulk/targets/run")
@needs(Action.RUN)
def run() -> AnyResponse:
    """Queue a job for each; where an equal one stands, none is added."""
    by = user_name()

    def submit(code: str) -> str:
        new_id = jobs.new_job_id()
        submitted = database().run(
            lambda s: jobs.submit(s, code, source=JobSource.MANUAL, by=by, new_id=new_id)
        )
        return "has a job already" if submitted.deduplicated else "queued"

    return _each("Run now", submit)


@pages.post("/bulk/targets/pause")
@needs(Action.PAUSE)
def pause() -> AnyResponse:
    """Let many schedules rest."""
    by = user_name()

    def rest(code: str) -> str:
        database().run(lambda s: config.pause_target(s, code, by=by, now=clock.now(s)))
        return "paused"

    return _each("Pause", rest)


@pages.post("/bulk/targets/resume")
@needs(Action.PAUSE)
def resume() -> AnyResponse:
    """Let many schedules go on from now."""
    by = user_name()

    def go_on(code: str) -> str:
        database().run(lambda s: config.resume_target(s, code, by=by, now=clock.now(s)))
        return "resumed"

    return _each("Resume", go_on)


@pages.post("/bulk/targets/schedule")
@needs(Action.CONFIGURE)
def schedule() -> AnyResponse:
    """Give many targets the same schedule, all or none."""
    codes = _chosen()
    wanted = request.form.get("schedule", "").strip() or None
    fallback = url_for("targets.index")
    if not codes:
        return _nothing_chosen(fallback)
    if not confirm.given():
        words = f"the schedule {wanted}" if wanted else "no schedule, so that they only run by hand"
        question = f"Give {number_of(len(codes), 'target')} {words}? {_examples(codes)}"
        return confirm.ask(question, f"Set schedule: {number_of(len(codes), 'target')}", fallback)
    by = user_name()
    try:
        changed = database().run(lambda s: config.set_schedule(s, codes, wanted, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        return answers.refused(f"Nothing was changed. {error.problems[0].message}", fallback)
    read_anew()
    return answers.done(
        f"{number_of(changed, 'target')} changed, {len(codes) - changed} as before.", fallback
    )


def _each(verb: str, act: Callable[[str], str]) -> AnyResponse:
    fallback = url_for("targets.index")
    codes = _chosen()
    if not codes:
        return _nothing_chosen(fallback)
    if not confirm.given():
        question = f"{verb}: {number_of(len(codes), 'target')}? {_examples(codes)}"
        return confirm.ask(question, f"{verb}: {number_of(len(codes), 'target')}", fallback)
    told: dict[str, int] = {}
    for code in codes:
        try:
            came = act(code)
        except (ConflictError, NotFoundError) as error:
            came = f"refused ({error})"
        told[came] = told.get(came, 0) + 1
    read_anew()
    parts = [f"{number_of(count, 'target')} {came}" for came, count in told.items()]
    return answers.done(f"{'; '.join(parts[:5])}.", fallback)


def _chosen() -> tuple[str, ...]:
    session = reading()
    if "all" not in request.form:
        return queries.known_targets(session, set(request.form.getlist("target")[: queries.MAX_CHOSEN]))
    filters = {name: text for name in FILTERS if (text := request.form.get(name, "").strip()[:200])}
    return queries.matching_targets(session, TargetFilter(**filters))


def _nothing_chosen(fallback: str) -> AnyResponse:
    return answers.refused("No target is chosen. Tick some, or all that match, and try again.", fallback)


def _examples(codes: tuple[str, ...], shown: int = 3) -> str:
    named = ", ".join(codes[:shown])
    return f"They are {named} and {len(codes) - shown:,} more." if len(codes) > shown else f"{named}."
