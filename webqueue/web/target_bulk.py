"""Many targets at once: run, paused, resumed, changed; those that are ticked, or all that match."""

from __future__ import annotations

import re
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
from webqueue.sentences import say
from webqueue.web import answers, confirm
from webqueue.web.auth import needs, user_name
from webqueue.web.job_bulk import as_one_sentence, examples
from webqueue.web.languages import between_sentences, gettext, ngettext, told, told_error
from webqueue.web.undo import with_undo

pages = Blueprint("target_bulk", __name__)

FILTERS: Final = ("q", "site", "state")
CHANGES: Final = {
    "owner": say("Set owner"),
    "add_tag": say("Add tag"),
    "remove_tag": say("Remove tag"),
    "note": say("Set note"),
    "interval_sec": say("Set interval (seconds)"),
}
MAY_BE_EMPTY: Final = ("owner", "note")
SHOWN: Final = 200  # characters of a new value in the question


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
        return "standing" if submitted.deduplicated else "queued"

    return _each(
        lambda count: ngettext("Run now: %(count)s target", "Run now: %(count)s targets", count), submit
    )


@pages.post("/bulk/targets/pause")
@needs(Action.PAUSE)
def pause() -> AnyResponse:
    """Let many schedules rest."""
    by = user_name()

    def rest(code: str) -> str:
        database().run(lambda s: config.pause_target(s, code, by=by, now=clock.now(s)))
        return "paused"

    return _each(lambda count: ngettext("Pause: %(count)s target", "Pause: %(count)s targets", count), rest)


@pages.post("/bulk/targets/resume")
@needs(Action.PAUSE)
def resume() -> AnyResponse:
    """Let many schedules go on from now."""
    by = user_name()

    def go_on(code: str) -> str:
        database().run(lambda s: config.resume_target(s, code, by=by, now=clock.now(s)))
        return "resumed"

    return _each(
        lambda count: ngettext("Resume: %(count)s target", "Resume: %(count)s targets", count), go_on
    )


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
        count = len(codes)
        question = (
            ngettext(
                "Give %(count)s target the schedule %(schedule)s?",
                "Give %(count)s targets the schedule %(schedule)s?",
                count,
                schedule=wanted,
            )
            if wanted
            else ngettext(
                "Give %(count)s target no schedule, so that it only runs by hand?",
                "Give %(count)s targets no schedule, so that they only run by hand?",
                count,
            )
        )
        yes = ngettext("Set schedule: %(count)s target", "Set schedule: %(count)s targets", count)
        return confirm.ask(f"{question}{between_sentences()}{examples(codes)}", yes, fallback, harmless=True)
    return _changed(codes, lambda _data: {"schedule": wanted}, fallback)


@pages.post("/bulk/targets/change")
@needs(Action.CONFIGURE)
def change() -> AnyResponse:
    """Give many targets the same owner, note or interval, or add or remove a tag; all or none."""
    codes, fallback = _chosen(), url_for("targets.index")
    what, value = request.form.get("change", ""), request.form.get("value", "").strip()
    if what not in CHANGES:
        raise InvalidInputError.of("change", gettext("Choose what to change."))
    if not codes:
        return _nothing_chosen(fallback)
    if not value and what not in MAY_BE_EMPTY:
        return answers.refused(gettext("Nothing was changed: the new value is empty."), fallback)
    if not confirm.given():
        named = gettext("%(field)s: %(problem)s", field=told(CHANGES[what]), problem=value[:SHOWN] or "–")
        yes = ngettext("Change %(count)s target", "Change %(count)s targets", len(codes))
        return confirm.ask(
            f"{gettext('%(action)s?', action=named)}{between_sentences()}{examples(codes)}",
            yes,
            fallback,
            harmless=True,
        )
    return _changed(codes, _change_of(what, value), fallback)


def _change_of(what: str, value: str) -> config.BulkChange:
    if what in {"add_tag", "remove_tag"}:
        # The form of a target has its tags with commas between them: one with a comma would be two after the next edit.
        tags = dict.fromkeys(tag.strip() for tag in value.split(",") if tag.strip())
        return config.with_tags(*tags) if what == "add_tag" else config.without_tags(*tags)
    # What is no number is refused by the rules of the field, in their words.
    decimal = what == "interval_sec" and re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", value)
    data = {what: float(value) if decimal else value}
    return lambda _data: data


def _changed(codes: tuple[str, ...], change: config.BulkChange, fallback: str) -> AnyResponse:
    by = user_name()
    try:
        changed = database().run(lambda s: config.change_targets(s, codes, change, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        problem = told(error.problems[0].message)
        return answers.refused(gettext("Nothing was changed. %(problem)s", problem=problem), fallback)
    read_anew()
    message = ngettext(
        "%(count)s target changed, %(others)s as before.",
        "%(count)s targets changed, %(others)s as before.",
        changed,
        others=len(codes) - changed,
    )
    return answers.done(with_undo(message, "target") if changed else message, fallback)


def _each(button: Callable[[int], str], act: Callable[[str], str]) -> AnyResponse:
    """Do something with each chosen target, after naming how many they are; `button` says what and with how many."""
    fallback = url_for("targets.index")
    codes = _chosen()
    if not codes:
        return _nothing_chosen(fallback)
    if not confirm.given():
        return confirm.ask(examples(codes), button(len(codes)), fallback, harmless=True)
    counted: dict[tuple[str, str], int] = {}
    for code in codes:
        try:
            came = (act(code), "")
        except (ConflictError, NotFoundError) as error:
            came = ("refused", told_error(error))
        counted[came] = counted.get(came, 0) + 1
    read_anew()
    parts = [_told(*came, count) for came, count in counted.items()]
    return answers.done(as_one_sentence(parts[:5]), fallback)


def _told(came: str, why: str, count: int) -> str:
    """What came of `count` targets."""
    if came == "queued":
        return ngettext("%(count)s target queued", "%(count)s targets queued", count)
    if came == "standing":
        return ngettext("%(count)s target has a job already", "%(count)s targets have a job already", count)
    if came == "paused":
        return ngettext("%(count)s target paused", "%(count)s targets paused", count)
    if came == "resumed":
        return ngettext("%(count)s target resumed", "%(count)s targets resumed", count)
    return ngettext(
        "%(count)s target refused (%(why)s)", "%(count)s targets refused (%(why)s)", count, why=why
    )


def _chosen() -> tuple[str, ...]:
    session = reading()
    if "all" not in request.form:
        return queries.known_targets(session, set(request.form.getlist("target")[: queries.MAX_CHOSEN]))
    filters = {name: text for name in FILTERS if (text := request.form.get(name, "").strip()[:200])}
    return queries.matching_targets(session, TargetFilter(**filters))


def _nothing_chosen(fallback: str) -> AnyResponse:
    return answers.refused(
        gettext("No target is chosen. Tick some, or all that match, and try again."), fallback
    )
