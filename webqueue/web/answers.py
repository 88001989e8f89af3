"""How an action answers: 303 back to the page without htmx, one sentence and a fresh look with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from flask import Response, current_app, flash, make_response, redirect, render_template, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Response as AnyResponse

from webqueue.db import read_anew
from webqueue.errors import ConflictError
from webqueue.web.languages import told_error

GOOD, BAD = "good", "bad"


def by_htmx() -> bool:
    """Whether htmx sent this request."""
    return request.headers.get("HX-Request") == "true"


def safe_path(candidate: str | None) -> str | None:
    """A path of this admin, or None: what leads to another host would make the login an open redirect."""
    if not candidate or not candidate.startswith("/") or candidate.startswith("//") or "\\" in candidate:
        return None
    if any(ord(character) < 0x20 for character in candidate):
        return None
    parts = urlsplit(candidate)
    return None if parts.scheme or parts.netloc or _takes_forms_alone(parts.path) else candidate


def _takes_forms_alone(path: str) -> bool:
    """Whether nobody can be led there: a form that was refused is shown again under such an address."""
    try:
        current_app.url_map.bind(request.host).match(unquote(path), method="GET")
    except MethodNotAllowed:
        return True
    except HTTPException:
        return False  # says by itself what is wrong with it
    return False


def came_from(fallback: str) -> str:
    """The path of the page that the request came from: its `next` field, else its referrer, else `fallback`."""
    asked = safe_path(request.form.get("next") or request.args.get("next"))
    if asked is not None:
        return asked
    page = address_in("Referer")
    return (path_of(page) if page.netloc == request.host else None) or fallback


def address_in(header: str) -> SplitResult:
    """The address that a header of the request has; an empty one where it has none, or what is no address."""
    try:
        return urlsplit(request.headers.get(header, ""))
    except ValueError:
        return urlsplit("")


def path_of(page: SplitResult) -> str | None:
    """Path and query of a page of this admin, or None."""
    return safe_path(page.path + (f"?{page.query}" if page.query else ""))


def acted(
    fallback: str, verb: Callable[[], Any], words: Callable[[Any], str], *, leave: bool = False
) -> AnyResponse:
    """Do a verb, and answer what came of it.

    Args:
        fallback: the page to show where the request does not say which it came from.
        leave: show `fallback` whatever page it came from, because that one is gone with what was deleted.
    """
    try:
        came = verb()
    except ConflictError as error:
        read_anew()
        return refused(told_error(error), fallback)
    read_anew()
    return go(fallback, words(came)) if leave else done(words(came), fallback)


def done(message: str, fallback: str) -> AnyResponse:
    """The action was done: say so, and show the page as it is now."""
    return _answer(message, GOOD, 200, fallback)


def go(path: str, message: str) -> AnyResponse:
    """The action was done, and its result is on another page."""
    flash(message, GOOD)
    if not by_htmx():
        return redirect(path, 303)
    response: Response = make_response("", 200)
    response.headers["HX-Redirect"] = path
    return response


def refused(message: str, fallback: str) -> AnyResponse:
    """The present state does not allow the action: 409, the sentence, and the page as it is now."""
    return _answer(message, BAD, 409, fallback)


def _answer(message: str, kind: str, status: int, fallback: str) -> AnyResponse:
    if not by_htmx():
        if status != 200:
            back = came_from(fallback)
            page = render_template("refused.html", message=message, back=back)
            return make_response(page, status)
        flash(message, kind)
        return redirect(came_from(fallback), 303)
    response: Response = make_response(render_template("_answer.html", message=message, kind=kind), status)
    # The page polls at once, and so shows the rows that changed.
    response.headers["HX-Trigger"] = "webqueue:changed"
    return response
