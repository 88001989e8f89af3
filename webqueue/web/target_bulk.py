"""Many targets at once: run, paused, resumed, changed; those that are ticked, or all that match."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError, WebqueueError
from webqueue.models import JobSource
from webqueue.web import answers, confirm, target_choice, target_list
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form
from webqueue.web.job_bulk import as_one_sentence
from webqueue.web.languages import between_sentences, gettext, ngettext, told, told_error
from webqueue.web.target_choice import Choice
from webqueue.web.target_list import CHANGES
from webqueue.web.undo import with_undo

pages = Blueprint("target_bulk", __name__)

MAY_BE_EMPTY: Final = ("owner", "note")
AT_ONCE: Final = 50  # targets a transaction
SHOWN: Final = 200  # characters of a new value in the question


# What came of one target, and why it was refused; and of many.
Came = tuple[str, str]
Act = Callable[[Sequence[str]], Iterable[Came]]


@pages.post("/bulk/targets/run")
@needs(Action.RUN)
def run() -> AnyResponse:
    """Queue a job for each; where an equal one stands, none is added."""
    by = user_name()

    def submit(codes: Sequence[str]) -> Iterator[Came]:
        for code in codes:
            try:
                yield _submitted(code, by)
            except (ConflictError, NotFoundError) as error:
                yield "refused", told_error(error)

    return _each(
        lambda count: ngettext("Run now: %(count)s target", "Run now: %(count)s targets", count), submit
    )


def _submitted(code: str, by: str) -> Came:
    # A transaction of its own: it locks a rate key.
    new_id = jobs.new_job_id()
    submitted = database().run(lambda s: jobs.submit(s, code, source=JobSource.MANUAL, by=by, new_id=new_id))
    return "standing" if submitted.deduplicated else "queued", ""


@pages.post("/bulk/targets/pause")
@needs(Action.PAUSE)
def pause() -> AnyResponse:
    """Let many schedules rest."""
    return _each(
        lambda count: ngettext("Pause: %(count)s target", "Pause: %(count)s targets", count),
        _in_parts(config.pause_targets, "paused"),
    )


@pages.post("/bulk/targets/resume")
@needs(Action.PAUSE)
def resume() -> AnyResponse:
    """Let many schedules go on from now."""
    return _each(
        lambda count: ngettext("Resume: %(count)s target", "Resume: %(count)s targets", count),
        _in_parts(config.resume_targets, "resumed"),
    )


def _in_parts(act: Callable[..., Mapping[str, WebqueueError]], came: str) -> Act:
    """Do something with some targets at a time, each in a short transaction; all are one act of one time."""
    by, now = user_name(), clock.now(reading())

    def part(codes: Sequence[str]) -> Iterator[Came]:
        refused = database().run(lambda s: act(s, codes, by=by, now=now))
        yield from [(came, "")] * (len(codes) - len(refused))
        for error in refused.values():
            yield ("gone", "") if isinstance(error, NotFoundError) else ("refused", told_error(error))

    def every(codes: Sequence[str]) -> Iterator[Came]:
        for start in range(0, len(codes), AT_ONCE):
            yield from part(codes[start : start + AT_ONCE])

    return every


@pages.post("/bulk/targets/schedule")
@needs(Action.CONFIGURE)
def schedule() -> AnyResponse:
    """Give many targets the same schedule, all or none."""
    wanted = request.form.get("schedule", "").strip() or None

    def question(choice: Choice) -> str:
        count = len(choice.codes)
        if wanted:
            return ngettext(
                "Give %(count)s target the schedule %(schedule)s?",
                "Give %(count)s targets the schedule %(schedule)s?",
                count,
                schedule=wanted,
            )
        return ngettext(
            "Give %(count)s target no schedule, so that it only runs by hand?",
            "Give %(count)s targets no schedule, so that they only run by hand?",
            count,
        )

    return _change(
        lambda _data: {"schedule": wanted},
        _Words(
            question,
            lambda count: ngettext(
                "Set schedule: %(count)s target", "Set schedule: %(count)s targets", count
            ),
            "schedule",
            "schedule",
        ),
    )


@pages.post("/bulk/targets/change")
@needs(Action.CONFIGURE)
def change() -> AnyResponse:
    """Give many targets the same owner, note or interval, or add or remove a tag; all or none."""
    what, value = request.form.get("change", ""), request.form.get("value", "").strip()
    if what not in CHANGES:
        raise InvalidInputError.of("change", gettext("Choose what to change."))
    if not value and what not in MAY_BE_EMPTY:
        return _refused({"value": gettext("Nothing was changed: the new value is empty.")})
    named = gettext("%(field)s: %(problem)s", field=told(CHANGES[what]), problem=value[:SHOWN] or "–")
    return _change(
        _change_of(what, value),
        _Words(
            lambda _choice: gettext("%(action)s?", action=named),
            lambda count: ngettext("Change %(count)s target", "Change %(count)s targets", count),
            "value",
            "tags" if what.endswith("_tag") else what,
        ),
    )


def _change_of(what: str, value: str) -> config.BulkChange:
    if what in {"add_tag", "remove_tag"}:
        # The form of a target has its tags with commas between them: one with a comma would be two after the next edit.
        tags = dict.fromkeys(tag.strip() for tag in value.split(",") if tag.strip())
        return config.with_tags(*tags) if what == "add_tag" else config.without_tags(*tags)
    # What is no number is refused by the rules of the field, in their words.
    decimal = what == "interval_sec" and re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", value)
    data = {what: float(value) if decimal else value}
    return lambda _data: data


@dataclass(frozen=True)
class _Words:
    """What a change of many is asked by, and where it is written.

    Attributes:
        field: of the form.
        changed: the field of a target that is changed by it.
    """

    question: Callable[[Choice], str]
    button: Callable[[int], str]
    field: str
    changed: str


def _change(change: config.BulkChange, words: _Words) -> AnyResponse:
    """Check it at once, ask, and change all or none."""
    choice, by = target_choice.chosen(), user_name()
    if not choice.codes:
        return _refused({"chosen": _nothing_chosen()}, HTTPStatus.CONFLICT)
    try:
        prepared = config.prepare_change(reading(), choice.codes, change)
        if not confirm.given():
            return confirm.ask(
                between_sentences().join([words.question(choice), choice.question()]),
                words.button(len(choice.codes)),
                url_for("targets.index"),
                choice.fields,
                harmless=True,
            )
        came = database().run(lambda s: config.change_targets(s, prepared, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        return _refused(_told_problems(error, words))
    read_anew()
    choice = replace(choice, gone=choice.gone + len(came.gone))
    sentences = [
        ngettext(
            "%(count)s target changed, %(others)s as before.",
            "%(count)s targets changed, %(others)s as before.",
            came.changed,
            others=len(choice.codes) - len(came.gone) - came.changed,
        ),
        *(as_one_sentence([since]) for since in choice.since()),
    ]
    message = between_sentences().join(sentences)
    return answers.done(with_undo(message, "target") if came.changed else message, url_for("targets.index"))


def _told_problems(error: InvalidInputError, words: _Words) -> dict[str, str]:
    """What is wrong, at the field where it was written; what is wrong with others names them."""
    sentences = [gettext("Nothing was changed.")]
    for problem in error.problems:
        sentence = told(problem.message)
        if re.split(r"[.\[]", problem.field)[0] != words.changed:
            sentence = gettext("%(field)s: %(problem)s", field=problem.field, problem=sentence)
        sentences.append(sentence)
    return {words.field: between_sentences().join(sentences)}


def _refused(errors: Mapping[str, str], status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> AnyResponse:
    """The list again with everything as it was sent: nothing has to be ticked or written twice."""
    sent = request.form
    form = Form({name: sent.get(name, "") for name in ("all", "schedule", "change", "value")})
    form.errors.update({name: [text] for name, text in errors.items()})
    return target_list.asked_again(form, target_choice.ticked(), status)


def _each(button: Callable[[int], str], act: Act) -> AnyResponse:
    """Do something with each chosen target, after naming how many they are; `button` says what and with how many."""
    fallback = url_for("targets.index")
    choice = target_choice.chosen()
    if not choice.codes:
        return _refused({"chosen": _nothing_chosen()}, HTTPStatus.CONFLICT)
    if not confirm.given():
        return confirm.ask(
            choice.question(), button(len(choice.codes)), fallback, choice.fields, harmless=True
        )
    counted = Counter(act(choice.codes))
    choice = replace(choice, gone=choice.gone + counted.pop(("gone", ""), 0))
    read_anew()
    parts = [_told(*came, count) for came, count in counted.items()]
    return answers.done(as_one_sentence([*parts[:5], *choice.since()]), fallback)


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


def _nothing_chosen() -> str:
    return gettext("No target is chosen. Tick some, or all that match, and try again.")
