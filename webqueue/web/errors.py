"""Error pages: what happened, what to do, and the id of the request that the log has too."""

from __future__ import annotations

from flask import Flask, Response, g, make_response, render_template, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, SecurityError
from werkzeug.wrappers import Response as AnyResponse

from webqueue import access, logs
from webqueue.database import trouble_of
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError, Problem
from webqueue.sentences import say
from webqueue.web import answers
from webqueue.web.auth import (
    API_PREFIX,
    OPEN_ENDPOINTS,
    RoleForbiddenError,
    as_nobody_where_unknown,
    to_login,
)
from webqueue.web.languages import gettext, told, told_error
from webqueue.web.words import ROLES

log = logs.get(__name__)

SENTENCES = {
    400: (say("That request was not understood"), say("Go back and try again.")),
    403: (say("You may not do that"), say("Your role does not allow it. An administrator can change it.")),
    404: (say("There is no such page"), say("It may have been removed, or the address is wrong.")),
    405: (say("That is no page"), say("This address only takes the forms of other pages.")),
    413: (say("That is too large"), say("Send less at once.")),
    503: (say("The database does not work at present"), say("Try again in a moment.")),
    500: (
        say("Something went wrong"),
        say("It is a fault of webqueue. The log tells more, under the id below."),
    ),
}


def init_app(app: Flask) -> None:
    """Answer every error of the pages with a page; those of the API are the API's own."""
    app.register_error_handler(CSRFError, _csrf)
    app.register_error_handler(NotFoundError, lambda error: _shown(404, told_error(error)))
    app.register_error_handler(
        InvalidInputError,
        lambda error: _shown(400, gettext("; ").join(_named(problem) for problem in error.problems)),
    )
    app.register_error_handler(ConflictError, lambda error: answers.refused(told_error(error), "/"))
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(RoleForbiddenError, _role)
    app.register_error_handler(SecurityError, _foreign_host)
    app.register_error_handler(DBAPIError, _database)
    app.register_error_handler(Exception, _surprise)


def _named(problem: Problem) -> str:
    return gettext("%(field)s: %(problem)s", field=problem.field, problem=told(problem.message))


def _csrf(_error: CSRFError) -> AnyResponse:
    if not current_user.is_authenticated and request.endpoint not in OPEN_ENDPOINTS:
        return to_login()
    return _shown(400, gettext("The form was from another session. Open the page again and repeat it."))


def _http(error: HTTPException) -> AnyResponse:
    if error.code is None or error.code < 400:
        return error.get_response()
    if request.path.startswith(API_PREFIX):
        # An address that the API does not have: told as the API tells everything (RFC 9457).
        problem = {"type": "about:blank", "title": error.name, "status": error.code}
        response = make_response(problem, error.code, {"Content-Type": "application/problem+json"})
    else:
        response = make_response(_shown(error.code))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(error.valid_methods)  # RFC 9110, 15.5.6
    return response


def _role(error: RoleForbiddenError) -> AnyResponse:
    may = gettext(" or ").join(told(ROLES[role]) for role in access.roles_for(error.action))
    sentence = gettext(
        "It takes the role %(may)s; yours is %(own)s. An administrator can give you another one.",
        may=may,
        own=told(ROLES[current_user.role]),
    )
    return _shown(403, sentence)


def _foreign_host(_error: SecurityError) -> AnyResponse:
    """No page: its links would lead to the host that was made up (DNS rebinding, poisoned caches)."""
    return make_response(
        "The admin does not answer to this host name. WEBQUEUE_TRUSTED_HOSTS lists those that it answers to.\n",
        400,
        {"Content-Type": "text/plain; charset=utf-8"},
    )


def _database(error: DBAPIError) -> AnyResponse:
    trouble = trouble_of(error)
    if trouble is None or request.path.startswith(API_PREFIX):
        return _surprise(error)
    as_nobody_where_unknown()
    log.error("database in trouble", request_id=g.get("request_id"), path=request.path, exc_info=error)
    return _shown(503, told(trouble))


def _surprise(error: Exception) -> AnyResponse:
    log.error(
        "request failed",
        request_id=g.get("request_id"),
        method=request.method,
        path=request.path,
        exc_info=error,
    )
    if request.path.startswith(API_PREFIX):
        raise error
    return _shown(500)


def _shown(code: int, message: str = "") -> AnyResponse:
    title, advice = (told(sentence) for sentence in SENTENCES.get(code, SENTENCES[400]))
    if answers.by_htmx():
        html = render_template(
            "_answer.html",
            message=gettext("%(title)s. %(message)s", title=title, message=message or advice),
            kind=answers.BAD,
        )
        return make_response(html, code)
    response: Response = make_response(
        render_template(
            "error.html",
            title=title,
            message=message or advice,
            request_id=g.get("request_id", ""),
        ),
        code,
    )
    return response
