"""The list of targets: as it is looked at, and with boxes to tick, also after a change of many was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from flask import Response, request, url_for

from webqueue import queries
from webqueue.db import reading
from webqueue.queries import TargetFilter
from webqueue.queries.targets import TARGET_STATES
from webqueue.sentences import say
from webqueue.web import live
from webqueue.web.forms import Form

FILTERS: Final = ("q", "site", "state")
CHANGES: Final = {
    "owner": say("Set owner"),
    "add_tag": say("Add tag"),
    "remove_tag": say("Remove tag"),
    "note": say("Set note"),
    "interval_sec": say("Set interval (seconds)"),
}


def chosen_in(values: Mapping[str, str]) -> dict[str, str]:
    """The filters among the parts of an address or the fields of a form; empty ones are none."""
    return {name: value for name in FILTERS if (value := values.get(name, "").strip()[:200])}


def looked_at() -> Response:
    """The list that the address asks for."""
    return _page(request.args, selecting="select" in request.args, form=Form({}), ticked=())


def asked_again(form: Form, ticked: Sequence[str], status: int) -> Response:
    """The boxes of the list as they were when a change of many was sent, with what is wrong with it.

    Args:
        form: what was sent; problems of `schedule` and `value` are told there, those of `chosen` above.
        ticked: the codes of the targets that were ticked.
    """
    response = _page(request.form, selecting=True, form=form, ticked=ticked)
    response.status_code = status
    return response


def _page(asked: Mapping[str, str], *, selecting: bool, form: Form, ticked: Sequence[str]) -> Response:
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    chosen = chosen_in(asked)
    filters = TargetFilter(**chosen)
    cursor = asked.get("cursor") or None
    page = queries.list_targets(session, filters, cursor=cursor)
    shown = {target.code for target in page.items}
    kept = {**chosen, "select": "1"} if selecting else chosen
    return live.page(
        "targets.html",
        version=version,
        # While targets are ticked the rows stand still: a swap would take the ticks away.
        blocks=() if selecting else ("rows",),
        selecting=selecting,
        matching=queries.count_targets(session, filters) if selecting else 0,
        list_url=_list_url(**chosen),
        section="targets",
        page=page,
        sites=bool(page.items or chosen or queries.site_codes(session)),
        chosen=chosen,
        cursor=cursor,
        form=form,
        ticked=frozenset(ticked),
        # Rows have moved to another page meanwhile.
        ticked_elsewhere=[code for code in ticked if code not in shown],
        target_states=TARGET_STATES,
        changes=CHANGES,
        url=lambda **more: _list_url(**{**kept, **more}),
    )


def _list_url(**parts: Any) -> str:
    return url_for("targets.index", **parts)
