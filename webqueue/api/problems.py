"""Every error of the API as a problem detail (RFC 9457), with the fields that are wrong."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response, g, request
from sqlalchemy.exc import DBAPIError, IntegrityError
from werkzeug.exceptions import HTTPException

from webqueue import logs
from webqueue.database import trouble_of
from webqueue.errors import (
    ConflictError,
    InvalidInputError,
    NotBuiltError,
    NotFoundError,
    Problem,
    WebqueueError,
)

log = logs.get(__name__)

_UNPROCESSABLE = 422


class UnauthorizedError(WebqueueError):
    """Nobody is known to be asking."""

    def __init__(self, message: str, *, challenge: str) -> None:
        super().__init__(message)
        self.challenge = challenge


class ForbiddenError(WebqueueError):
    """The role of whoever asks does not allow it."""


class MalformedError(WebqueueError):
    """The body is no JSON object."""


_STATUS: Mapping[type[WebqueueError], int] = {
    InvalidInputError: _UNPROCESSABLE,
    NotBuiltError: _UNPROCESSABLE,
    NotFoundError: 404,
    ConflictError: 409,
    MalformedError: 400,
    UnauthorizedError: 401,
    ForbiddenError: 403,
}


def request_id() -> str:
    """The id of this request, in its answer and in the log."""
    if not g.get("request_id"):
        g.request_id = secrets.token_hex(6)
    found: str = g.request_id
    return found


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem detail. Its type is `about:blank`: the status says what kind it is, `errors` and `detail` the rest."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "request_id": request_id(),
        "errors": [{"field": one.field, "line": one.line, "message": one.message} for one in errors],
    }
    text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    return Response(
        text.encode("utf-8", "replace"), status, dict(headers or {}), content_type="application/problem+json"
    )


def register(blueprint: Blueprint) -> None:
    """Answer whatever a view of `blueprint` raises."""
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(WebqueueError, _refused)
    blueprint.register_error_handler(DBAPIError, _database)
    blueprint.register_error_handler(Exception, _surprise)


def _http(error: HTTPException) -> Response:
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    kept = {"Allow", "Retry-After"}
    headers = {name: value for name, value in error.get_headers(request.environ) if name in kept}
    return problem(status, error.description or "", headers=headers)


def _refused(error: WebqueueError) -> Response:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), None)
    if status is None:
        return _surprise(error)
    headers = {"WWW-Authenticate": error.challenge} if isinstance(error, UnauthorizedError) else None
    errors = error.problems if isinstance(error, InvalidInputError) else ()
    return problem(status, str(error), errors=errors, headers=headers)


def _database(error: DBAPIError) -> Response:
    if isinstance(error, IntegrityError):
        _log(error)
        return problem(
            409, "Something that this depends on was changed at the same time. Look again, and repeat it."
        )
    if trouble := trouble_of(error):
        _log(error)
        return problem(503, trouble, headers={"Retry-After": "5"})
    return _surprise(error)


def _surprise(error: Exception) -> Response:
    _log(error)
    return problem(500, "It is a fault of webqueue. The log tells more, under the request id.")


def _log(error: Exception) -> None:
    log.error(
        "request failed", request_id=request_id(), method=request.method, path=request.path, exc_info=error
    )


def field_problem(field: str, message: str) -> InvalidInputError:
    """One wrong field."""
    return InvalidInputError.of(field, message)


def json_response(data: Any, status: int = 200) -> Response:
    """An answer. What a JSON text cannot hold (lone halves of characters, from crawled pages) is replaced."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, content_type="application/json")
