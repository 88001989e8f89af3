"""The export for retrieval: its switches, and what is still to be delivered."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, current_app, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, queries
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.deliveries import switches, windows
from webqueue.errors import InvalidInputError
from webqueue.queries.deliveries import open_deliveries
from webqueue.sentences import say
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.languages import gettext, told

pages = Blueprint("rag_export", __name__)

_SWITCH: Final = {"on": True, "off": False, "reset": None}
_WORDS: Final = {"on": say("on"), "off": say("off"), "reset": say("as for every other target")}


@pages.get("/settings/export")
@needs(Action.READ)
def index() -> str:
    """The switches, and the deliveries that are not through."""
    session = reading()
    settings = current_app.extensions["webqueue_settings"]
    return render_template(
        "rag_export.html",
        section="settings",
        switches=switches.read(session),
        targets=queries.target_codes(session),
        endpoint=settings.rag_export_url,
        # Of its kind alone: what others could not deliver is for those who may configure them.
        deliveries=open_deliveries(session, windows.KIND),
    )


@pages.post("/settings/export")
@needs(Action.CONFIGURE)
def switch() -> AnyResponse:
    """Turn one switch: that of a target, or without one that of the installation."""
    target = request.form.get("target", "").strip() or None
    word = request.form.get("switch", "")
    if word not in _SWITCH or (target is None and word == "reset"):
        raise InvalidInputError.of(
            "switch", say("%(value)s is none of %(known)s.", value=repr(word), known=", ".join(_SWITCH))
        )
    by = user_name()
    return acted(
        url_for("rag_export.index"),
        lambda: database().run(lambda s: switches.switch(s, target, _SWITCH[word], by=by, now=clock.now(s))),
        lambda _: gettext(
            "Export of %(target)s: %(state)s.",
            target=target or gettext("all targets without a switch of their own"),
            state=told(_WORDS[word]),
        ),
    )
