"""Notifications: who gets them, which are wanted, and a test."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, make_response, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.deliveries import channels, messages
from webqueue.deliveries.channels import KINDS, Wanted
from webqueue.errors import InvalidInputError
from webqueue.queries.deliveries import open_deliveries
from webqueue.queries.numbers import LARGEST, whole
from webqueue.web import answers, confirm
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form
from webqueue.web.languages import gettext

pages = Blueprint("notifications", __name__)

_NUMBERS: Final = ("blocked_min", "overdue_min")


@pages.get("/settings/notifications")
@needs(Action.SETTINGS)
def index() -> AnyResponse:
    """Receivers, kinds, and what is still to be sent."""
    return _page(Form({}))


@pages.post("/settings/notifications/receivers")
@needs(Action.SETTINGS)
def add() -> AnyResponse:
    """Add a receiver."""
    name, url, by = request.form.get("name", ""), request.form.get("url", ""), user_name()
    # An address has secrets in it: it is never sent back to the browser.
    form = Form({"name": name}, shown={"name", "url"})
    try:
        new = channels.new_channel(name, url)
        database().run(lambda s: channels.add_channel(s, new, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        form.refuse(error)
        return _page(form, 422)
    read_anew()
    return answers.done(
        gettext("%(name)s gets notifications. Send a test.", name=name), url_for("notifications.index")
    )


@pages.post("/settings/notifications/receivers/<channel_id>/test")
@needs(Action.SETTINGS)
def test(channel_id: str) -> AnyResponse:
    """Queue a test message; it goes the way of every message."""
    by = user_name()

    def queue(session: Session) -> str:
        channel = channels.find(channels.read(session), channel_id)
        text = gettext("%(name)s asked for this test. Notifications of webqueue arrive here.", name=by)
        messages.send(session, channel, gettext("webqueue: test"), text, good=True, now=clock.now(session))
        return channel.name

    return acted(
        url_for("notifications.index"),
        lambda: database().run(queue),
        lambda name: gettext(
            "A test for %(name)s is on its way; it stands below until it is delivered.", name=name
        ),
    )


@pages.post("/settings/notifications/receivers/<channel_id>/remove")
@needs(Action.SETTINGS)
def remove(channel_id: str) -> AnyResponse:
    """Remove a receiver, after asking: nobody can read its address again."""
    name = channels.find(channels.read(reading()), channel_id).name
    if not confirm.given():
        question = gettext("%(name)s gets no notification any more, and its address is forgotten.", name=name)
        return confirm.ask(question, gettext("Remove receiver"), url_for("notifications.index"))
    by = user_name()
    return acted(
        url_for("notifications.index"),
        lambda: database().run(lambda s: channels.remove_channel(s, channel_id, by=by, now=clock.now(s))),
        lambda channel: gettext("%(name)s gets no notification any more.", name=channel.name),
    )


@pages.post("/settings/notifications")
@needs(Action.SETTINGS)
def choose() -> AnyResponse:
    """Choose what is news."""
    by = user_name()
    kinds = tuple(kind for kind in KINDS if request.form.get(f"kind-{kind}"))
    said = {name: request.form.get(name, "").strip() for name in _NUMBERS}
    form = Form({**said, "kinds": kinds}, shown=set(_NUMBERS))
    try:
        numbers = {name: _number(name, text) for name, text in said.items()}
        database().run(lambda s: channels.choose(s, kinds, **numbers, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        form.refuse(error)
        return _page(form, 422)
    read_anew()
    return answers.done(gettext("Saved."), url_for("notifications.index"))


def _number(name: str, text: str) -> int:
    minutes = whole(text, 0, LARGEST)
    if minutes is None:
        raise InvalidInputError.of(name, gettext("must be a whole number of minutes"))
    return minutes


def _page(form: Form, status: int = 200) -> AnyResponse:
    session = reading()
    wanted: Wanted = channels.read(session)
    form.values = {
        "blocked_min": wanted.blocked_min,
        "overdue_min": wanted.overdue_min,
        "kinds": wanted.kinds,
        **form.values,
    }
    page = render_template(
        "notifications.html",
        section="settings",
        channels=wanted.channels,
        kinds=KINDS,
        form=form,
        waiting=open_deliveries(session, messages.KIND),
    )
    return make_response(page, status)
