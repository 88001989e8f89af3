"""The form of a target: the fields of the file, the handler's own, and a preview of the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import Blueprint, abort, flash, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, queries
from webqueue.access import Action
from webqueue.config.specs import BUILT_CATCH_UPS, BUILT_OVERLAPS
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError
from webqueue.handlers import registry
from webqueue.models import Site, Target
from webqueue.sentences import say
from webqueue.web import parameters, schedules
from webqueue.web.auth import may, needs, user_name
from webqueue.web.forms import Form, Reader, without_nothing
from webqueue.web.jobs import submit_trial
from webqueue.web.languages import gettext, told_error
from webqueue.web.parameters import ParameterField
from webqueue.web.undo import told_of

OWN_FIELDS: Final = frozenset(
    {
        "code", "site", "handler", "schedule", "timezone", "interval_sec", "overlap", "catch_up", "catch_up_limit",
        "jitter_sec", "start_at", "end_at", "track_checkpoint", "max_runtime_sec", "retry.times", "retry.wait_sec",
        "enabled", "tags", "note", "owner",
    }
)  # fmt: skip
NEW: Final = {
    "handler": "crawl", "interval_sec": "10", "overlap": "queue_one", "catch_up": "one", "catch_up_limit": "24",
    "jitter_sec": "0", "track_checkpoint": True, "max_runtime_sec": "14400", "retry.times": "2",
    "retry.wait_sec": "300", "enabled": True,
}  # fmt: skip
OVERLAP_WORDS: Final = {
    "queue_one": say("Queue one more"),
    "skip": say("Skip the tick"),
    "allow": say("Queue every one"),
}
CATCH_UP_WORDS: Final = {"none": say("Leave them out"), "one": say("Run once"), "all": say("Run every one")}


def add_to(pages: Blueprint) -> None:
    """Add the form's pages to the blueprint of the targets."""
    pages.add_url_rule("/targets/new", "add", add, methods=["GET"])
    pages.add_url_rule("/targets/new", "save_new", save_new, methods=["POST"])
    pages.add_url_rule("/targets/<code>/edit", "edit", edit, methods=["GET"])
    pages.add_url_rule("/targets/<code>/edit", "save", save, methods=["POST"])
    pages.add_url_rule("/targets/preview", "preview", preview, methods=["GET"])


@needs(Action.CONFIGURE)
def add() -> str:
    """An empty form, or a copy of another target."""
    copied = request.args.get("copy")
    if copied:
        form = Form.of(config.masked(config.target_data(_target(copied))))
        form.values["code"] = ""
    else:
        form = Form(
            {**NEW, "site": request.args.get("site", ""), "handler": request.args.get("handler", "crawl")}
        )
        form.values |= parameters.defaults_of(_fields(form))
    return _page(form, code=None)


@needs(Action.CONFIGURE)
def save_new() -> AnyResponse:
    """Store a new target."""
    form = Form.sent(request.form)
    code = str(form.values.get("code", "")).strip()
    if code and code.isascii() and reading().get(Target, code) is not None and not _only_preview():
        form.errors["code"] = [gettext("There is a target %(code)s already.", code=repr(code))]
        return make_response(_page(form, code=None), 422)
    return _save(form, code, new=True)


@needs(Action.CONFIGURE)
def edit(code: str) -> str:
    """The form of a target."""
    return _page(Form.of(config.masked(config.target_data(_target(code)))), code=code)


@needs(Action.CONFIGURE)
def save(code: str) -> AnyResponse:
    """Store a changed target."""
    _target(code)
    return _save(Form.sent(request.form), code, new=False)


def preview() -> str:
    """What a schedule means, while it is typed."""
    return render_template("_preview.html", preview=_preview(request.args.to_dict()))


def _save(form: Form, code: str, *, new: bool) -> AnyResponse:
    fields = _fields(form)
    form.shown = _names(fields)
    if _only_preview():
        return make_response(_page(form, code=None if new else code))
    by = user_name()
    read = Reader(form.values)
    data = _data(read, fields, None if new else _target(code).params)

    def store(session: Session) -> config.Change:
        with read.all_problems():
            return config.put_target(session, code, data, by=by, now=clock.now(session))

    try:
        change = database().run(store)
    except InvalidInputError as error:
        form.refuse(error)
        return make_response(_page(form, code=None if new else code), 422)
    except ConflictError as error:
        form.errors["site"] = [told_error(error)]
        return make_response(_page(form, code=None if new else code), 409)
    read_anew()
    if form.values.get("then") == "try" and may(Action.RUN):
        return submit_trial(code)
    flash(told_of(change, gettext("The target %(code)s is saved.", code=code)), "good")
    return redirect(url_for("targets.show", code=code), 303)


def _only_preview() -> bool:
    """Whether the button Preview was pressed, which stores nothing."""
    return "preview" in request.form


def _data(read: Reader, fields: list[ParameterField], stored: Mapping[str, Any] | None) -> dict[str, Any]:
    return without_nothing(
        {
            "site": read.optional("site"),
            "handler": read.optional("handler"),
            "schedule": read.optional("schedule"),
            "timezone": read.optional("timezone"),
            "interval_sec": read.number("interval_sec"),
            "overlap": read.optional("overlap"),
            "catch_up": read.optional("catch_up"),
            "catch_up_limit": read.number("catch_up_limit"),
            "jitter_sec": read.number("jitter_sec"),
            "start_at": read.optional("start_at"),
            "end_at": read.optional("end_at"),
            "track_checkpoint": read.checked("track_checkpoint"),
            "max_runtime_sec": read.number("max_runtime_sec"),
            "retry": without_nothing(
                {"times": read.number("retry.times"), "wait_sec": read.number("retry.wait_sec")}
            ),
            "enabled": read.checked("enabled"),
            "tags": [tag.strip() for tag in read.text("tags").replace("\n", ",").split(",") if tag.strip()],
            "note": read.block("note"),
            "owner": read.text("owner"),
            "params": parameters.read(fields, read, stored),
        }
    )


def _page(form: Form, *, code: str | None) -> str:
    fields = _fields(form)
    form.shown = _names(fields)
    if isinstance(form.values.get("tags"), str):
        form.values["tags"] = ", ".join(form.values["tags"].splitlines())
    sites = queries.site_codes(reading())
    return render_template(
        "target_form.html",
        section="targets",
        form=form,
        code=code,
        fields=fields,
        kinds=registry.kinds(),
        sites=[("", gettext("Choose a site")), *((site, site) for site in sites)],
        overlaps=[(name, OVERLAP_WORDS[name]) for name in BUILT_OVERLAPS],
        catch_ups=[(name, CATCH_UP_WORDS[name]) for name in BUILT_CATCH_UPS],
        presets=schedules.PRESETS,
        preview=_preview(form.values),
    )


def _preview(values: dict[str, Any]) -> schedules.Preview | None:
    site = reading().get(Site, str(values.get("site", ""))[:64])
    timezone = str(values.get("timezone") or "").strip() or (site.timezone if site else "UTC")
    return schedules.preview(str(values.get("schedule") or "")[:200], timezone, clock.now(reading()))


def _fields(form: Form) -> list[ParameterField]:
    site = reading().get(Site, str(form.values.get("site", ""))[:64])
    return parameters.fields_of(str(form.values.get("handler", "")), site.adapter if site else "list")


def _names(fields: list[ParameterField]) -> set[str]:
    return {*OWN_FIELDS, *(field.name for field in fields)}


def _target(code: str) -> Target:
    found = reading().get(Target, code)
    if found is None:
        abort(404)
    return found
