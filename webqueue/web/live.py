"""Live pages: every page is its own small poll endpoint.

`GET <page>?live=VERSION` answers 204 when nothing changed, which costs one read through indexes. Else it answers the new
version with the blocks of the page's template that show states. Those blocks hold no input, no details and no menu,
so that a swap never takes away what a person is typing or has opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Response, current_app, make_response, render_template, request
from flask_login import current_user
from jinja2_fragments.flask import render_block
from markupsafe import Markup

from webqueue import queries
from webqueue.db import reading
from webqueue.web.formats import user_zone
from webqueue.web.languages import language

BUSY_SECONDS = 2
CALM_SECONDS = 10
# Of every page: the banner, and the button that pauses everything.
SHARED_BLOCKS = ("banner", "pauseall")
BASE = "_base.html"


def unchanged(version: str) -> Response | None:
    """The answer 204 when the page that polls shows this version already, else None."""
    # Whoever chooses another zone moves the version, so it needs no reading here.
    if not request.args.get("live", "").startswith(f"{version}.{_reader()}."):
        return None
    response = make_response("", 204)
    del response.headers["Content-Type"]
    return response


def is_poll() -> bool:
    """Whether the request is a poll."""
    return "live" in request.args


def page(
    template: str,
    *,
    version: str,
    blocks: Sequence[str],
    busy: bool | None = None,
    carry: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """The whole page, or for a poll only its changed blocks.

    Args:
        template: name of the page's template.
        version: of what it shows.
        blocks: its blocks that show states; each is one element whose id is the block's name with dashes.
        busy: whether something runs, so that the page polls every 2 s instead of every 10 s; None: ask.
        carry: what the next poll sends along.
        context: for the template.
    """
    status = queries.get_status(reading())
    busy = status.running > 0 if busy is None else busy
    context["machinery"] = status
    if request.method != "POST":  # a form that was refused stands under an address that only takes forms
        context["live"] = {
            "seconds": BUSY_SECONDS if busy else CALM_SECONDS,
            "url": _poll_url({"live": f"{version}.{_dress()}", **(carry or {})}),
        }
    if not is_poll():
        return make_response(render_template(template, **context))
    if request.args["live"].partition(".")[2] != _dress():
        return _outdated()
    parts = [(name, _fragment(template, name, context)) for name in (*SHARED_BLOCKS, *blocks)]
    title = _fragment(template, "title", context)
    return make_response(render_template("_live.html", parts=parts, title=title, **context))


def _fragment(template: str, block: str, context: dict[str, Any]) -> Markup:
    """One block, of the page's own template, else of the one that all pages extend."""
    own = block in current_app.jinja_env.get_template(template).blocks
    html = render_block(template if own else BASE, block, **context)
    return Markup(html)  # noqa: S704 - our own templates, which escape


def _outdated() -> Response:
    """The page around the blocks is another one now: the browser gets it whole, as soon as nothing typed is lost by it."""
    here = _poll_url({}).removesuffix("?")
    response = make_response(render_template("_outdated.html", here=here))
    response.headers["Webqueue-Outdated"] = "1"
    return response


def _dress() -> str:
    """What a page depends on as a whole, whatever it shows."""
    return f"{_reader()}.{user_zone()}"


def _reader() -> str:
    """Language, theme and role of who reads it; known without a question to the database."""
    who = f"{current_user.theme}-{current_user.role}" if current_user.is_authenticated else ""
    return f"{language()}-{who}"


def _poll_url(more: Mapping[str, str]) -> str:
    """The page's own address with its filters, and what a poll needs."""
    pairs = [(name, value) for name, value in request.args.items(multi=True) if name not in {"live", *more}]
    return f"{request.path}?{urlencode([*pairs, *more.items()])}"
