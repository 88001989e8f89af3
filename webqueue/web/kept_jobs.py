"""Retention: what is kept of the history of jobs, what the next round removes, and the rules of single targets."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, current_app, make_response, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.kept_jobs import BATCH, kept_jobs
from webqueue.queries.numbers import LARGEST, whole
from webqueue.web import answers
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form
from webqueue.web.languages import gettext

pages = Blueprint("kept_jobs", __name__)

_MOST_ROWS: Final = 50
_NUMBERS: Final = ("jobs", "days", "logs", "log_days")


@pages.get("/settings/retention")
@needs(Action.READ)
def index() -> AnyResponse:
    """What is kept, and what goes."""
    return _page(Form({}))


@pages.post("/settings/retention")
@needs(Action.CONFIGURE)
def save() -> AnyResponse:
    """Give a target a rule of its own, or, without a number, take it away."""
    target = request.form.get("target", "").strip()
    said = {name: request.form.get(name, "").strip() for name in _NUMBERS}
    form, by = Form({"target": target, **said}, shown={"target", *_NUMBERS}), user_name()
    try:
        rule = jobs.Rule(**_numbers(said))
        database().run(lambda s: jobs.set_rule(s, target, rule, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        form.refuse(error)
        return _page(form, 422)
    read_anew()
    words = (
        gettext("%(target)s has its own rule.", target=target)
        if rule != jobs.Rule()
        else gettext("%(target)s is kept as every other target.", target=target)
    )
    return answers.done(words, url_for("kept_jobs.index"))


def _numbers(said: dict[str, str]) -> dict[str, int | None]:
    numbers = {name: whole(text, 0, LARGEST) for name, text in said.items()}
    wrong = [
        Problem(name, gettext("must be a whole number, or empty"))
        for name, text in said.items()
        if text and numbers[name] is None
    ]
    if wrong:
        raise InvalidInputError(wrong)
    return numbers


def _page(form: Form, status: int = 200) -> AnyResponse:
    session = reading()
    default, rows = kept_jobs(session, current_app.extensions["webqueue_settings"])
    page = render_template(
        "kept_jobs.html", section="settings", default=default, rows=rows, batch=BATCH, form=form,
        most=_MOST_ROWS, all_rows="all" in request.args,
        targets=[(code, code) for code in queries.target_codes(session)],
    )  # fmt: skip
    return make_response(page, status)
