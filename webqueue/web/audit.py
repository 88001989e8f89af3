"""The audit log: who changed what."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, render_template, request, url_for

from webqueue import config, queries
from webqueue.access import Action
from webqueue.db import reading
from webqueue.web.auth import needs
from webqueue.web.formats import as_written

pages = Blueprint("audit", __name__)

KINDS: Final = (
    "site",
    "target",
    "rate_group",
    "user",
    "token",
    "rate_key",
    "job",
    "setting",
    "rag_export",
    "installation",
)
LONGEST: Final = 300


@pages.get("/settings/audit")
@needs(Action.AUDIT)
def index() -> str:
    """Changes, newest first, of everything or of one object."""
    chosen = {name: value for name in ("kind", "name") if (value := request.args.get(name, "").strip()[:300])}
    page = queries.list_audit(
        reading(),
        kind=chosen.get("kind"),
        name=chosen.get("name") if "kind" in chosen else None,
        cursor=request.args.get("cursor"),
    )

    def url(**more: Any) -> str:
        return url_for("audit.index", **{**chosen, **more})

    return render_template(
        "audit.html",
        section="settings",
        page=page,
        chosen=chosen,
        kinds=KINDS,
        url=url,
        brief=brief,
        can_undo=config.can_undo,
    )


def brief(value: Any) -> str:
    """A value before or after a change, on one line and not too long."""
    if value is None or value in ("", [], {}):
        return "–"
    text = as_written(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
