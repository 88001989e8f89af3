"""Taking back changes and deletions of sites and targets: asked once, and offered where they are told of."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, make_response, render_template, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError
from webqueue.queries import AuditFilter
from webqueue.queries.audit import audit_row
from webqueue.web import answers
from webqueue.web.audit import brief
from webqueue.web.auth import needs, user_name
from webqueue.web.job_bulk import examples
from webqueue.web.languages import between_sentences, gettext, ngettext, told, told_error

pages = Blueprint("undo", __name__)

# Objects that the question names one by one.
SHOWN: Final = 20


@pages.get("/settings/audit/<int:entry>/undo")
@needs(Action.CONFIGURE)
def ask(entry: int) -> AnyResponse:
    """What taking back a change would do, and a button for it: of all that one act changed, or of one object alone."""
    alone, fallback = "alone" in request.args, url_for("audit.index")
    try:
        undoing = config.prepare_undo(reading(), entry, alone=alone)
    except InvalidInputError as error:
        return answers.refused(_nothing_changed(error), fallback)
    except ConflictError as error:
        return answers.refused(told_error(error), fallback)
    count = len(undoing.entries)
    page = render_template(
        "undo.html",
        section="settings",
        undoing=undoing,
        entry=queries.get_audit(reading(), entry),
        alone=alone,
        shown=[audit_row(one) for one in undoing.entries[:SHOWN]],
        yes=ngettext("Undo: %(count)s object", "Undo: %(count)s objects", count),
        back=answers.came_from(fallback),
        brief=brief,
    )
    return make_response(page)


@pages.post("/settings/audit/<int:entry>/undo")
@needs(Action.CONFIGURE)
def act(entry: int) -> AnyResponse:
    """Take back all that one act changed or deleted, or one object of it, or nothing."""
    by, fallback = user_name(), url_for("audit.index")
    try:
        prepared = config.prepare_undo(reading(), entry, alone="alone" in request.form)
        undone = database().run(lambda s: config.undo(s, prepared, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        return answers.refused(_nothing_changed(error), fallback)
    except ConflictError as error:
        return answers.refused(told_error(error), fallback)
    read_anew()
    count, left = len(undone.entries), len(undone.overtaken)
    message = ngettext(
        "%(count)s object is as it was before.", "%(count)s objects are as they were before.", count
    )
    if left:
        others = ngettext(
            "%(count)s object was changed again since, and is left as it is: %(names)s",
            "%(count)s objects were changed again since, and are left as they are: %(names)s",
            left,
            names=examples(undone.overtaken),
        )
        message = f"{message}{between_sentences()}{others}"
    return answers.done(message, fallback)


def _nothing_changed(error: InvalidInputError) -> str:
    return gettext("Nothing was changed. %(problem)s", problem=told(error.problems[0].message))


def told_of(change: config.Change, message: str) -> str:
    """The sentence that tells of an edit, with a link to take it back where it has changed something."""
    return with_undo(message, change.kind, change.name) if change.what is config.What.CHANGED else message


def with_undo(message: str, kind: str, name: str | None = None) -> str:
    """The sentence that tells of what the user has just done, with a link that offers to take it back.

    Args:
        message: as text.
        kind: of the object, as the audit log names it.
        name: of the object; None: it was done to many.
    """
    last = queries.list_audit(reading(), AuditFilter(kind=kind, name=name), limit=1).items
    if not last or last[0].by != user_name() or not config.can_undo(last[0].action, kind):
        return message
    where = url_for("undo.ask", entry=last[0].id)
    return Markup('{} <a href="{}">{}</a>').format(message, where, gettext("Undo"))
