"""Sites: the list, and the form."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, queries
from webqueue.access import Action
from webqueue.config.specs import BUILT_ADAPTERS
from webqueue.db import database, read_anew, reading
from webqueue.errors import InvalidInputError
from webqueue.models import Site
from webqueue.web import confirm
from webqueue.web.answers import acted
from webqueue.web.auth import may, needs, user_name
from webqueue.web.forms import Form, Reader, header_lines, without_nothing
from webqueue.web.languages import gettext
from webqueue.web.undo import told_of, with_undo

pages = Blueprint("sites", __name__)

FIELDS = frozenset(
    {
        "code", "name", "base_url", "adapter", "timezone", "rate_key", "min_gap_sec", "cooldown_sec",
        "allowed_hours", "obey_robots",
        "http.user_agent", "http.headers", "http.proxy", "http.verify_tls", "http.legacy_tls", "http.timeout_sec",
    }
)  # fmt: skip
NEW = {
    "adapter": "list", "timezone": "UTC", "min_gap_sec": "0", "obey_robots": True, "http.verify_tls": True,
    "http.timeout_sec": "30",
}  # fmt: skip


@pages.get("/sites")
def index() -> str:
    """Every site."""
    page = queries.list_sites(reading(), cursor=request.args.get("cursor"))
    return render_template("sites.html", section="targets", page=page)


@pages.get("/sites/new")
@needs(Action.CONFIGURE)
def add() -> str:
    """An empty form."""
    return _form(Form(dict(NEW)), code=None)


@pages.post("/sites/new")
@needs(Action.CONFIGURE)
def save_new() -> AnyResponse:
    """Store a new site."""
    form = Form.sent(request.form)
    code = str(form.values.get("code", "")).strip()
    if code and reading().get(Site, code) is not None:
        form.errors["code"] = [gettext("There is a site %(code)s already.", code=repr(code))]
        return make_response(_form(form, code=None), 422)
    return _save(form, code, new=True)


@pages.get("/sites/<code>")
def edit(code: str) -> str:
    """The form of a site; whoever may not change it sees it all the same."""
    site = reading().get(Site, code)
    if site is None:
        abort(404)
    data = config.masked(config.site_data(site))
    form = Form.of(data)
    form.values["http.headers"] = header_lines(data["http"]["headers"])
    return _form(form, code=code)


@pages.post("/sites/<code>")
@needs(Action.CONFIGURE)
def save(code: str) -> AnyResponse:
    """Store a changed site."""
    if reading().get(Site, code) is None:
        abort(404)
    return _save(Form.sent(request.form), code, new=False)


@pages.post("/sites/<code>/delete")
@needs(Action.CONFIGURE)
def delete(code: str) -> AnyResponse:
    """Delete a site that has neither jobs nor documents, after asking."""
    site = queries.get_site(reading(), code)
    if not confirm.given():
        question = gettext(
            "Delete the site %(code)s and its %(count)s targets? Sites with jobs or documents are kept.",
            code=code,
            count=site.targets,
        )
        return confirm.ask(question, gettext("Delete site"), url_for("sites.edit", code=code))
    by = user_name()
    return acted(
        url_for("sites.index"),
        lambda: database().run(lambda s: config.delete_site(s, code, by=by, now=clock.now(s))),
        lambda _: with_undo(gettext("The site %(code)s is deleted.", code=code), "site", code),
        leave=True,
    )


def _save(form: Form, code: str, *, new: bool) -> AnyResponse:
    form.shown = set(FIELDS)
    by = user_name()
    read = Reader(form.values)
    data = _data(read)

    def store(session: Session) -> config.Change:
        with read.all_problems():
            return config.put_site(session, code, data, by=by, now=clock.now(session))

    try:
        change = database().run(store)
    except InvalidInputError as error:
        form.refuse(error)
        return make_response(_form(form, code=None if new else code), 422)
    read_anew()
    flash(told_of(change, gettext("The site %(code)s is saved.", code=code)), "good")
    has_targets = queries.get_site(reading(), code).targets > 0
    return redirect(url_for("sites.index") if has_targets else url_for("targets.add", site=code), 303)


def _data(read: Reader) -> dict[str, Any]:
    return without_nothing(
        {
            "name": read.optional("name"),
            "base_url": read.optional("base_url"),
            "adapter": read.optional("adapter"),
            "timezone": read.optional("timezone"),
            "rate_key": read.optional("rate_key"),
            "min_gap_sec": read.number("min_gap_sec"),
            "cooldown_sec": read.number("cooldown_sec"),
            "allowed_hours": read.optional("allowed_hours"),
            "obey_robots": read.checked("obey_robots"),
            "http": without_nothing(
                {
                    "user_agent": read.optional("http.user_agent"),
                    "headers": read.pairs("http.headers"),
                    "proxy": read.optional("http.proxy"),
                    "verify_tls": read.checked("http.verify_tls"),
                    "legacy_tls": read.checked("http.legacy_tls"),
                    "timeout_sec": read.number("http.timeout_sec"),
                }
            ),
        }
    )


def _form(form: Form, *, code: str | None) -> str:
    form.shown = set(FIELDS)
    row = queries.get_site(reading(), code) if code else None
    return render_template(
        "site_form.html",
        section="targets",
        form=form,
        code=code,
        site=row,
        adapters=[(name, name) for name in BUILT_ADAPTERS],
        changeable=may(Action.CONFIGURE),
    )
