"""Asking once before something that cannot be taken back. With a script it is a dialog, without one a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flask import make_response, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from webqueue.web.answers import came_from

_OWN_FIELDS: Final = frozenset({"csrf_token", "confirmed", "next"})


def given() -> bool:
    """Whether the person has confirmed."""
    return request.form.get("confirmed") == "yes"


def ask(
    question: str,
    yes: str,
    fallback: str,
    more: Iterable[tuple[str, str]] = (),
    *,
    harmless: bool = False,
    choice: tuple[str, str] | None = None,
) -> AnyResponse:
    """The page that asks; its form repeats the request, confirmed, with `more` fields.

    Args:
        question: what is to be known before; the heading asks `yes` already.
        yes: what the button says.
        fallback: where "Not now" leads, when the request does not say where it came from.
        more: further fields of the form, one name possibly several times.
        choice: a box that may be ticked as well: its name, and what it says.
        harmless: it asks only because of the number; nothing is lost by it.
    """
    fields = [(name, value) for name, value in request.form.items(multi=True) if name not in _OWN_FIELDS]
    fields += more
    page = render_template(
        "confirm.html",
        question=question,
        yes=yes,
        harmless=harmless,
        choice=choice,
        action=request.path,
        back=came_from(fallback),
        fields=fields,
    )
    return make_response(page)
