"""Rate groups: which hosts behind one firewall share a rate key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Blueprint, current_app, make_response, render_template, request, url_for
from sqlalchemy import select
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock
from webqueue.access import Action
from webqueue.config import groups
from webqueue.config.specs import BUILT_ADAPTERS
from webqueue.db import database, reading
from webqueue.errors import InvalidInputError
from webqueue.models import RateGroupRow
from webqueue.web import confirm
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form, Reader
from webqueue.web.languages import between_sentences, gettext, ngettext

pages = Blueprint("rate_groups", __name__)

FIELDS = ("key", "adapter", "host_suffix", "grow_interval", "cooldown_factor")
MOVES_SHOWN = 10


@pages.get("/settings/rate-groups")
@needs(Action.READ)
def index() -> AnyResponse:
    """The groups in their order, and the form that adds one."""
    return _page(Form({"cooldown_factor": "2", "grow_interval": True}))


@pages.post("/settings/rate-groups")
@needs(Action.CONFIGURE)
def add() -> AnyResponse:
    """Add a group, or replace the one of the same adapter and hosts, after telling which sites change their key."""
    form = Form.sent(request.form)
    form.shown = set(FIELDS)
    try:
        data = _data(form.values)
        moves = groups.moves_by_group(reading(), data)
    except InvalidInputError as error:
        form.refuse(error)
        return _page(form, 422)
    if not confirm.given():
        question = gettext(
            "Sites with the adapter %(adapter)s at or below %(host)s share %(key)s.",
            adapter=data["adapter"],
            host=data["host_suffix"],
            key=data["key"],
        )
        return confirm.ask(
            f"{question}{between_sentences()}{_told(moves)}",
            gettext("Save rate group"),
            url_for("rate_groups.index"),
        )
    by = user_name()
    return acted(
        url_for("rate_groups.index"),
        lambda: database().run(lambda s: groups.put_group(s, data, by=by, now=clock.now(s))),
        lambda _: gettext("The rate group of %(key)s is saved.", key=data["key"]),
    )


@pages.post("/settings/rate-groups/<int:number>/delete")
@needs(Action.CONFIGURE)
def delete(number: int) -> AnyResponse:
    """Delete a group, after telling which sites change their key."""
    back = url_for("rate_groups.index")
    if not confirm.given():
        return confirm.ask(
            _told(groups.moves_without_group(reading(), number)), gettext("Delete rate group"), back
        )
    by = user_name()
    return acted(
        back,
        lambda: database().run(lambda s: groups.delete_group(s, number, by=by, now=clock.now(s))),
        lambda _: gettext("The rate group is deleted."),
    )


def _data(values: Mapping[str, Any]) -> dict[str, Any]:
    reader = Reader(values)
    factor = reader.number("cooldown_factor")
    reader.raise_problems()
    return {
        "key": reader.text("key"),
        "adapter": reader.text("adapter"),
        "host_suffix": reader.text("host_suffix"),
        "grow_interval": reader.checked("grow_interval"),
        "cooldown_factor": 2 if factor is None else factor,
    }


def _told(moves: Sequence[groups.KeyMove]) -> str:
    """What a change of the groups does to sites and their queued jobs."""
    if not moves:
        return gettext("No site gets another rate key by it.")
    shown = [
        gettext("%(site)s from %(old)s to %(new)s", site=move.site, old=move.old, new=move.new)
        for move in moves[:MOVES_SHOWN]
    ]
    if len(moves) > MOVES_SHOWN:
        shown.append(gettext("and %(count)s more", count=len(moves) - MOVES_SHOWN))
    sites = ngettext(
        "%(count)s site gets another rate key: %(moves)s.",
        "%(count)s sites get another rate key: %(moves)s.",
        len(moves),
        moves=gettext("; ").join(shown),
    )
    queued = gettext(
        "Queued jobs that move along: %(count)s. Running ones keep their key.",
        count=f"{sum(move.queued for move in moves):,}",
    )
    return f"{sites}{between_sentences()}{queued}"


def _page(form: Form, status: int = 200) -> AnyResponse:
    rows = reading().scalars(select(RateGroupRow).order_by(RateGroupRow.position, RateGroupRow.id)).all()
    adapters = [(name, name) for name in BUILT_ADAPTERS]
    page = render_template(
        "rate_groups.html",
        section="settings",
        form=form,
        groups=rows,
        adapters=adapters,
        policy=current_app.extensions["webqueue_settings"],
    )
    return make_response(page, status)
