"""What a route of the API is: its address, what it takes, and which action a role must be allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from flask import Response
from pydantic import BaseModel

from webqueue.access import Action
from webqueue.api.callers import Caller
from webqueue.database import Database


@dataclass(frozen=True)
class Asked:
    """What a view has at hand."""

    database: Database
    caller: Caller


@dataclass(frozen=True)
class Parameter:
    """A query parameter, for the description of the API; the view reads it with `asked.Query`.

    Attributes:
        low, high, default: of a whole number.
    """

    name: str
    words: str
    kind: Literal["text", "whole", "moment"] = "text"
    low: int = 0
    high: int = 0
    default: int | None = None
    required: bool = False


CURSOR = Parameter("cursor", "The `next_cursor` of the last answer.")


def limit(default: int, most: int) -> Parameter:
    """How many items a listing gives at most."""
    return Parameter("limit", "How many at most.", "whole", 1, most, default)


@dataclass(frozen=True)
class Route:
    """One method of one address.

    Attributes:
        rule: Flask's, below `/api/v1`.
        action: what the caller's role must allow.
        view: called with what the rule caught.
        summary: what it does, in a sentence.
        answers: the model of each answer that is no error; None for one that has none.
        takes: the query parameters.
        body: the model of the JSON that it takes.
        media: the type of an answer without a model.
    """

    method: str
    rule: str
    action: Action
    view: Callable[..., Response]
    summary: str
    answers: Mapping[int, type[BaseModel] | None]
    takes: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    media: str = field(default="application/json")
