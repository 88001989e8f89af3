"""Challenge signatures: how pages of firewalls are told from content, the package's list and one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, make_response, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.errors import InvalidInputError, Problem
from webqueue.politeness import challenges
from webqueue.politeness.challenges import Signature
from webqueue.web import confirm
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form, Reader
from webqueue.web.languages import gettext

pages = Blueprint("challenges", __name__)

FIELDS = ("name", "statuses", "body", "header", "location")


@dataclass(frozen=True)
class Row:
    """A signature of the page; `origin` is `package`, `yours`, or `replaced` (yours for one of the package)."""

    signature: Signature
    origin: str


@pages.get("/settings/challenges")
@needs(Action.READ)
def index() -> AnyResponse:
    """The signatures in the order in which they are tried, those that are off, and the form that adds one."""
    return _page(Form({"statuses": "200, 202"}))


@pages.post("/settings/challenges")
@needs(Action.SETTINGS)
def save() -> AnyResponse:
    """Add a signature, or replace the one with its name."""
    form = Form.sent(request.form)
    form.shown = set(FIELDS)
    by = user_name()
    try:
        data = _data(form.values)
        challenges.parse_signatures([data])
    except InvalidInputError as error:
        form.refuse(_of_the_form(error))
        return _page(form, 422)
    return acted(
        url_for("challenges.index"),
        lambda: database().run(lambda s: challenges.put_signature(s, data, by=by, now=clock.now(s))),
        lambda saved: gettext(
            "The signature %(name)s is in force for jobs that start from now on.", name=saved.name
        ),
    )


@pages.post("/settings/challenges/off")
@needs(Action.SETTINGS)
def switch_off() -> AnyResponse:
    """Switch a signature of the package off, after asking."""
    name = request.form.get("name", "")
    back = url_for("challenges.index")
    if not confirm.given():
        question = _taken_for_content(name)
        return confirm.ask(question, gettext("Switch off"), back)
    by = user_name()
    return acted(
        back,
        lambda: database().run(
            lambda s: challenges.put_signature(s, {"name": name, "enabled": False}, by=by, now=clock.now(s))
        ),
        lambda _: gettext("The signature %(name)s is off.", name=name),
    )


@pages.post("/settings/challenges/remove")
@needs(Action.SETTINGS)
def remove() -> AnyResponse:
    """Forget what is stored under a name; the package's signature of that name is in force again."""
    name, by = request.form.get("name", ""), user_name()
    back = url_for("challenges.index")
    if name not in {one.name for one in challenges.DEFAULT_SIGNATURES} and not confirm.given():
        question = _taken_for_content(name)
        return confirm.ask(question, gettext("Delete"), back)
    return acted(
        back,
        lambda: database().run(lambda s: challenges.remove_signature(s, name, by=by, now=clock.now(s))),
        lambda _: gettext("What was stored for %(name)s is removed.", name=name),
    )


def _taken_for_content(name: str) -> str:
    return gettext(
        "Pages of %(name)s will be taken for content, and the key will not cool down because of them.",
        name=name,
    )


def _data(values: Mapping[str, Any]) -> dict[str, Any]:
    reader = Reader(values)
    statuses = [part for part in reader.text("statuses").replace(",", " ").split() if part]
    if not all(part.isascii() and part.isdigit() and len(part) == 3 for part in statuses):
        reader.problems.append(Problem("statuses", gettext("must be HTTP statuses, such as 200, 202")))
    marks = {mark: reader.optional(mark) for mark in ("body", "header", "location")}
    reader.raise_problems()
    return {
        "name": reader.text("name"),
        "statuses": [int(part) for part in statuses] or [200, 202],
        **{mark: value for mark, value in marks.items() if value is not None},
    }


def _of_the_form(error: InvalidInputError) -> InvalidInputError:
    """The problems at the fields of the form; what concerns all marks together stands at the first of them."""
    prefix = f"{challenges.SETTING}[0]"
    return InvalidInputError(
        [
            Problem(problem.field.removeprefix(prefix).removeprefix(".") or "body", problem.message)
            for problem in error.problems
        ]
    )


def _rows() -> list[Row]:
    package = {one.name: one for one in challenges.DEFAULT_SIGNATURES}
    stored = challenges.stored_signatures(reading())
    own = [Row(one, "replaced" if one.name in package else "yours") for one in stored]
    replaced = {one.name for one in stored}
    return own + [Row(one, "package") for one in package.values() if one.name not in replaced]


def _page(form: Form, status: int = 200) -> AnyResponse:
    page = render_template("challenges.html", section="settings", form=form, rows=_rows())
    return make_response(page, status)
