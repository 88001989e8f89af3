"""CSRF, the content security policy, and the other headers.

What crawls store is hostile: a title or a log line is text from anybody. Templates escape everything, and the policy
below makes sure that a mistake there runs nothing: no inline script or style, no eval, no request to another host.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection

from flask import Blueprint, Flask, Response, g, request
from flask_wtf.csrf import CSRFProtect

POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "img-src 'self'; connect-src 'self'"
)
# What is no page of ours (kept pages, texts, logs, CSV, feeds) is text from anybody, and runs nothing wherever it is opened.
SANDBOX = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # A link to a crawled page must not tell that server where its crawler is managed.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
NOTHING = 204
# Of static files: the file, and "as you have it". One that is not there may be there tomorrow.
KEPT = frozenset({200, 304})
STATIC_SECONDS = 365 * 24 * 3600

# Forms are short. A longer one is refused before it is read: half a million fields cost seconds, and anybody may send them.
MAX_FORM_BYTES = 500_000

csrf = CSRFProtect()


def init_app(app: Flask, *, without_forms: Collection[Blueprint] = ()) -> None:
    """Protect every form of `app`, and add the headers to every answer.

    Args:
        app: the application.
        without_forms: blueprints that take no form: a change there needs a bearer token, which no browser sends by itself.
    """
    app.config.setdefault("WTF_CSRF_TIME_LIMIT", None)  # a page left open over night must still work
    app.config.setdefault("WTF_CSRF_SSL_STRICT", False)  # the referrer is checked by the token already
    programs = {blueprint.name for blueprint in without_forms}

    @app.before_request
    def limit_forms() -> None:
        if request.blueprint not in programs:
            request.max_content_length = MAX_FORM_BYTES

    csrf.init_app(app)
    for blueprint in without_forms:
        csrf.exempt(blueprint)
    app.before_request(_name_request)
    app.after_request(_add_headers)


def _name_request() -> None:
    """A short id that an error page shows and that the log has."""
    g.request_id = secrets.token_hex(6)


def _add_headers(response: Response) -> Response:
    is_ours = (
        response.mimetype == "text/html" or request.endpoint == "static" or response.status_code == NOTHING
    )
    response.headers["Content-Security-Policy"] = POLICY if is_ours else SANDBOX
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["X-Request-Id"] = g.get("request_id", "")
    if request.endpoint == "static" and response.status_code in KEPT:
        # The address of a static file changes with its contents.
        response.headers["Cache-Control"] = f"public, max-age={STATIC_SECONDS}, immutable"
    else:
        response.headers.setdefault("Cache-Control", "no-store")
        response.vary.add("Cookie")
    return response
