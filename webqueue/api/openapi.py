"""The description of the API (OpenAPI 3.1), made from the routes: there is no second list that could lag behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from webqueue import __version__
from webqueue.api.answers import ProblemDetail
from webqueue.api.routes import Parameter, Route

_IN_PATH: Final = re.compile(r"<([a-z]+)>")
_PROBLEM: Final = "application/problem+json"
_DESCRIPTION: Final = (
    "Viewers read; operators run, cancel, retry, move to front, pause and lift; admins change the rest. Errors "
    "are problem details (RFC 9457)."
)
# What may be said of any request.
_ERRORS: Final[Mapping[int, str]] = {
    401: "No token, or one that is unknown, revoked or expired.",
    403: "The token's role does not allow it.",
    422: "A parameter or a field is wrong; `errors` names each.",
    503: "The database does not answer, or its disk is full. Try again.",
}
_OF_PATHS: Final[Mapping[int, str]] = {404: "There is no such thing."}
_OF_CHANGES: Final[Mapping[int, str]] = {409: "Its present state does not allow it."}
_OF_BODIES: Final[Mapping[int, str]] = {
    400: "The body is no JSON object.",
    413: "The body is too large.",
    415: "The body does not say that it is JSON.",
}


def describe(routes: Iterable[Route], prefix: str) -> dict[str, Any]:
    """The whole description.

    Args:
        routes: every route of the API.
        prefix: of their addresses.
    """
    routes = tuple(routes)
    references, definitions = models_json_schema(
        [*_models(routes)], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = _operation(route, references)
        paths.setdefault(_IN_PATH.sub(r"{\1}", route.rule), {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "webqueue", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": prefix}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`webqueue token add NAME --role ROLE` makes one.",
                }
            },
        },
    }


def _models(routes: Iterable[Route]) -> Iterable[tuple[type[BaseModel], Any]]:
    """Every model once, bodies as they are read and answers as they are written."""
    found: dict[tuple[type[BaseModel], str], None] = {(ProblemDetail, "serialization"): None}
    for route in routes:
        if route.body is not None:
            found[route.body, "validation"] = None
        for model in route.answers.values():
            if model is not None:
                found[model, "serialization"] = None
    return found


def _operation(route: Route, references: Mapping[Any, Mapping[str, Any]]) -> dict[str, Any]:
    caught = _IN_PATH.findall(route.rule)
    operation: dict[str, Any] = {
        "operationId": f"{route.view.__name__}",
        "summary": route.summary,
        "tags": [route.rule.split("/")[1].partition(".")[0]],
        "description": f"Needs a role that may {route.action}.",
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in caught
            ),
            *map(_parameter, route.takes),
        ],
        "responses": _responses(route, references, caught=bool(caught)),
    }
    if route.body is not None:
        schema = references[route.body, "validation"]
        operation["requestBody"] = {
            "required": route.method == "PUT",
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": 2000}
    if parameter.kind == "whole":
        schema = {"type": "integer", "minimum": parameter.low, "maximum": parameter.high}
        if parameter.default is not None:
            schema["default"] = parameter.default
    elif parameter.kind == "moment":
        schema = {"type": "string", "description": "A time with a zone, or a date, which begins in UTC."}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.words,
        "schema": schema,
    }


def _responses(
    route: Route, references: Mapping[Any, Mapping[str, Any]], *, caught: bool
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for status, model in route.answers.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if model is not None:
            answer["content"] = {"application/json": {"schema": references[model, "serialization"]}}
        elif status == HTTPStatus.OK:
            schema: dict[str, Any] = (
                {"type": "object"} if route.media.rpartition("/")[2] == "json" else {"type": "string"}
            )
            answer["content"] = {route.media: {"schema": schema}}
        found[str(status)] = answer
    errors = dict(_ERRORS)
    if caught:
        errors |= _OF_PATHS
    if route.method != "GET":
        errors |= _OF_CHANGES
    if route.body is not None:
        errors |= _OF_BODIES
    problem = {"content": {_PROBLEM: {"schema": references[ProblemDetail, "serialization"]}}}
    for status, words in sorted(errors.items()):
        found[str(status)] = {"description": words, **problem}
    found["401"]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    found["503"]["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
    return found
