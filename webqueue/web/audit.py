"""The audit log: who changed what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from flask import Blueprint, Response, render_template, request, url_for

from webqueue import access, config, queries
from webqueue.access import Action
from webqueue.db import reading
from webqueue.errors import InvalidInputError
from webqueue.queries import AuditFilter
from webqueue.queries.audit import KINDS
from webqueue.queries.numbers import LARGEST, whole
from webqueue.sentences import say
from webqueue.web.auth import needs
from webqueue.web.csv_files import csv_file
from webqueue.web.formats import as_written, user_zone
from webqueue.web.languages import gettext, told
from webqueue.web.words import AUDIT

pages = Blueprint("audit", __name__)

FILTERS: Final = ("by", "kind", "name", "action", "since", "until", "act")
LONGEST: Final = 300
CSV_FIELDS: Final = ("id", "at", "by", "action", "kind", "name", "before", "after")
_WORDS: Final = {
    "by": say("by %(value)s"),
    "kind": "%(value)s",
    "name": say("name %(value)s"),
    "action": "%(value)s",
    "since": say("from %(value)s"),
    "until": say("to %(value)s"),
    "act": say("one act"),
}


@pages.get("/settings/audit")
@needs(Action.AUDIT)
def index() -> str:
    """Changes, newest first; what one act did to many objects is one of them, which opens."""
    chosen, session, cursor = _chosen(), reading(), request.args.get("cursor")
    filters = _filter_of(chosen)
    if filters.act is None:
        page: queries.Page[Any] = queries.list_acts(session, filters, cursor=cursor)
    else:
        page = queries.list_audit(session, filters, cursor=cursor)
    return render_template(
        "audit.html",
        section="settings",
        page=page,
        chosen=chosen,
        chips=_chips(chosen),
        # Who looks at one object, or at each of an act, means that alone.
        alone={"alone": 1} if "name" in chosen or "act" in chosen else {},
        kinds=KINDS,
        actions=[action for action in AUDIT if action not in KINDS],
        people=[user.name for user in access.list_users(session)],
        url=lambda **more: _list_url({**chosen, **more}),
        brief=brief,
        can_undo=config.can_undo,
    )


@pages.get("/settings/audit.csv")
@needs(Action.AUDIT)
def as_csv() -> Response:
    """The changes that match the filters, each by itself, newest first, at most 100,000."""
    filters = _filter_of(_chosen())
    return csv_file(
        "audit.csv",
        CSV_FIELDS,
        lambda s, cursor, limit: queries.list_audit(s, filters, cursor=cursor, limit=limit),
        lambda row, name: _cell(getattr(row, name)),
    )


def brief(value: Any) -> str:
    """A value before or after a change, on one line and not too long."""
    if value is None or value in ("", [], {}):
        return "–"
    text = as_written(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _chosen() -> dict[str, str]:
    """The filters of the address; empty ones are none."""
    return {name: value for name in FILTERS if (value := request.args.get(name, "").strip()[:300])}


def _filter_of(chosen: Mapping[str, str]) -> AuditFilter:
    """What is asked for. Raises InvalidInputError, where a day or a number is none."""
    until = _day(chosen, "until")
    act = None if "act" not in chosen else whole(chosen["act"], 0, LARGEST)
    if act is None and "act" in chosen:
        raise InvalidInputError.of(
            "act", say("%(value)s is no number of a change.", value=repr(chosen["act"][:40]))
        )
    return AuditFilter(
        by=chosen.get("by"),
        kind=chosen.get("kind"),
        name=chosen.get("name"),
        action=chosen.get("action"),
        since=_midnight(_day(chosen, "since")),
        until=_midnight(None if until is None else until + timedelta(days=1)),
        act=act,
    )


def _day(chosen: Mapping[str, str], name: str) -> date | None:
    text = chosen.get(name)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not date(1970, 1, 1) <= day <= date(9998, 12, 31):
        raise InvalidInputError.of(
            name, say("%(value)s is no day; write one such as 2026-01-31.", value=repr(text[:40]))
        )
    return day


def _midnight(day: date | None) -> datetime | None:
    """When a day begins by the clock of the user, in which the list shows its times."""
    return None if day is None else datetime.combine(day, time.min, user_zone())


def _chips(chosen: Mapping[str, str]) -> list[tuple[str, str]]:
    """What each filter says, and the address of the list without it."""
    return [
        (gettext(_WORDS[name], value=_told_value(name, value)), _list_url(_without(chosen, name)))
        for name, value in chosen.items()
    ]


def _told_value(name: str, value: str) -> str:
    return told(AUDIT.get(value, value)) if name in {"kind", "action"} else value


def _without(chosen: Mapping[str, str], name: str) -> dict[str, Any]:
    return {other: text for other, text in chosen.items() if other != name}


def _list_url(chosen: Mapping[str, Any]) -> str:
    return url_for("audit.index", **chosen)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)
