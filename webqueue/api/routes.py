"""What a route of the API is: its address, what it takes, and which action a role must be allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response

from webqueue.access import Action
from webqueue.api.callers import Caller
from webqueue.database import Database


@dataclass(frozen=True)
class Asked:
    """What a view has at hand."""

    database: Database
    caller: Caller


@dataclass(frozen=True)
class Route:
    """One method of one address.

    Attributes:
        rule: Flask's, below `/api/v1`.
        action: what the caller's role must allow.
        view: called with what the rule caught.
    """

    method: str
    rule: str
    action: Action
    view: Callable[..., Response]
