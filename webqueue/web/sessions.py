"""Where a user is logged in, ended by themselves, or by an administrator."""

from __future__ import annotations

from flask import Blueprint, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as AnyResponse

from webqueue import access, clock
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.errors import NotFoundError
from webqueue.web import confirm
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.languages import gettext, ngettext

pages = Blueprint("sessions", __name__)


@pages.post("/settings/sessions/<int:number>/end")
@needs(Action.READ)
def end(number: int) -> AnyResponse:
    """End one of one's own sessions."""
    user_id, by = current_user.id, user_name()
    return acted(
        url_for("settings.index"),
        lambda: database().run(lambda s: access.end_session(s, user_id, number, by=by, now=clock.now(s))),
        lambda _: gettext("That browser is logged out."),
        leave=True,
    )


@pages.post("/settings/sessions/end-others")
@needs(Action.READ)
def end_others() -> AnyResponse:
    """End all of one's own sessions but this one."""
    own, by = current_user.session_id, user_name()
    return acted(
        url_for("settings.index"),
        lambda: database().run(lambda s: access.end_sessions(s, by, but=own, by=by, now=clock.now(s))),
        ended,
        leave=True,
    )


@pages.post("/settings/users/<name>/sessions/end")
@needs(Action.USERS)
def end_all(name: str) -> AnyResponse:
    """End all sessions of a user, after asking."""
    back, by = url_for("people.users"), user_name()
    if not confirm.given():
        session = reading()
        user = access.find_user(session, name)
        if user is None:
            raise NotFoundError("user", name)
        count = access.count_sessions(session, clock.now(session)).get(user.id, 0)
        question = ngettext(
            "%(name)s is logged out of %(count)s browser at once, and can log in again.",
            "%(name)s is logged out of %(count)s browsers at once, and can log in again.",
            count,
            name=user.name,
        )
        return confirm.ask(question, gettext("Log out everywhere"), back)
    return acted(
        back,
        lambda: database().run(lambda s: access.end_sessions(s, name, by=by, now=clock.now(s))),
        ended,
        leave=name == by,
    )


def ended(count: int) -> str:
    """What came of it."""
    if not count:
        return gettext("There was no other session.")
    return ngettext("%(count)s session is ended.", "%(count)s sessions are ended.", count)
