"""The user's own settings, and who works on this database."""

from __future__ import annotations

from http import HTTPStatus

from flask import Blueprint, Response, flash, redirect, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as AnyResponse

from webqueue import access, clock, queries
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.errors import InvalidInputError
from webqueue.web import answers, live
from webqueue.web.auth import let_in, needs, to_login
from webqueue.web.browsers import browser_words
from webqueue.web.forms import Form
from webqueue.web.languages import gettext, of_browser, speaking, told_error

pages = Blueprint("settings", __name__)


@pages.get("/settings")
def index() -> Response:
    """Theme, account, and health."""
    version = queries.health_version(reading())
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    return _page(version, Form({}))


@pages.post("/settings/zone")
@needs(Action.READ)
def zone() -> AnyResponse:
    """Choose the zone in which times are shown."""
    chosen, user_id, by = request.form.get("zone", "").strip(), current_user.id, current_user.name
    try:
        database().run(lambda s: access.set_zone(s, user_id, chosen, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        form = Form({"zone": chosen}, shown={"zone"})
        form.refuse(error)
        response = _page(queries.health_version(reading()), form)
        response.status_code = 422
        return response
    flash(gettext("Times are shown by the clock of %(zone)s.", zone=chosen), "good")
    return redirect(url_for("settings.index"), 303)


@pages.post("/settings/password")
@needs(Action.READ)
def password() -> AnyResponse:
    """Change one's own password: every session ends but this one."""
    name, old, new = current_user.name, request.form.get("old", ""), request.form.get("password", "")
    try:
        user = access.change_own_password(
            database(), name, old, new, clock.now(reading()), address=request.remote_addr or ""
        )
    except access.TooManyTriesError as error:
        refused = InvalidInputError.of("old", told_error(error))
        return _refused_password(refused, HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": str(error.wait_sec)})
    except InvalidInputError as error:
        return _refused_password(error, HTTPStatus.UNPROCESSABLE_ENTITY, {})
    if not let_in(user):
        return to_login()
    flash(gettext("The password is changed. Your other sessions have ended."), "good")
    return redirect(url_for("settings.index"), 303)


@pages.post("/settings/language")
@needs(Action.READ)
def language() -> AnyResponse:
    """Choose a language, or nothing: then the browser chooses. Every page has its buttons, and is shown again."""
    chosen, user_id = request.form.get("language", "") or None, current_user.id
    database().run(lambda s: access.set_language(s, user_id, chosen))
    with speaking(chosen or of_browser()):  # the user of this request is the one from before
        flash(gettext("The language is changed."), answers.GOOD)
    return redirect(answers.came_from(url_for("settings.index")), 303)


@pages.post("/settings/theme")
@needs(Action.READ)
def theme() -> AnyResponse:
    """Choose light, dark, or what the browser says."""
    chosen, user_id = request.form.get("theme", ""), current_user.id
    database().run(lambda s: access.set_theme(s, user_id, chosen))
    flash(gettext("The theme is changed."), "good")
    return redirect(url_for("settings.index"), 303)


def _refused_password(error: InvalidInputError, status: HTTPStatus, headers: dict[str, str]) -> Response:
    form = Form({}, shown={"old", "password"})
    form.refuse(error)
    response = _page(queries.health_version(reading()), form)
    response.status_code = status
    response.headers.update(headers)
    return response


def _page(version: str, form: Form) -> Response:
    form.values.setdefault("zone", access.zone_of(reading(), current_user.id))
    return live.page(
        "settings.html",
        version=version,
        blocks=("health",),
        section="settings",
        form=form,
        sessions=access.list_sessions(reading(), current_user.id, clock.now(reading())),
        browser_words=browser_words,
    )
