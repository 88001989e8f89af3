"""Who may do what, in one place for pages, API and CLI alike (DESIGN section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from webqueue.models import Role


class Action(StrEnum):
    """What somebody wants to do."""

    READ = "read"
    RUN = "run"
    CANCEL = "cancel"
    RETRY = "retry"
    FRONT = "move to front"
    PAUSE = "pause"
    LIFT = "lift"
    CONFIGURE = "change sites, targets and rate groups"
    USERS = "manage users"
    TOKENS = "manage tokens"
    SETTINGS = "change settings"
    AUDIT = "read the audit log"


_VIEWER: Final = frozenset({Action.READ})
_OPERATOR: Final = _VIEWER | {
    Action.RUN,
    Action.CANCEL,
    Action.RETRY,
    Action.FRONT,
    Action.PAUSE,
    Action.LIFT,
}
_ALLOWED: Final[Mapping[Role, frozenset[Action]]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.ADMIN: frozenset(Action),
}


def roles_for(action: Action) -> tuple[Role, ...]:
    """Those who may do `action`, from the one with the fewest rights to the one with the most."""
    return tuple(role for role in Role if action in _ALLOWED[role])


def allows(role: str, action: Action) -> bool:
    """Whether a role may do `action`; a role that nobody knows may do nothing."""
    return role in _ALLOWED and action in _ALLOWED[Role(role)]
