"""Who asks: the holder of a token, or, for reading, whoever is logged in to the pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import request

from webqueue import access
from webqueue.access import Action
from webqueue.api.problems import ForbiddenError, UnauthorizedError
from webqueue.database import Database


@dataclass(frozen=True)
class Caller:
    """Whoever asks: `name` as the audit log has it."""

    name: str
    role: str


LoggedIn = Callable[[], Caller | None]


def find_caller(database: Database, logged_in: LoggedIn | None) -> Caller:
    """Who asks.

    A browser sends its session along with every request, also with one that another site's page made. Such a request
    carries no form token here, so a session may only read; what changes something needs a bearer token.

    Raises:
        UnauthorizedError: nobody that is known.
    """
    header = request.headers.get("Authorization")
    if header is not None and header[:6].lower() == "basic ":
        return _bearer(database, f"Bearer {_password_of_reader()}")
    if header is not None:
        return _bearer(database, header)
    caller = logged_in() if logged_in is not None and request.method in {"GET", "HEAD"} else None
    if caller is None:
        raise UnauthorizedError(
            "Send a token: Authorization: Bearer wq_… (webqueue token add NAME --role ROLE makes one).",
            challenge='Bearer realm="webqueue"',
        )
    return caller


def require(caller: Caller, action: Action) -> None:
    """Raises ForbiddenError unless the caller's role allows `action`."""
    if not access.allows(caller.role, action):
        may = " or ".join(access.roles_for(action))
        raise ForbiddenError(f"The role {caller.role} may not {action}. That takes the role {may}.")


def _password_of_reader() -> str:
    """A token sent as a password, by any name (RFC 7617): most feed readers can send nothing else.

    For reading only: a browser that was once given a password sends it along with every request to this host, also
    with one that another site's page made.
    """
    sent = request.authorization
    reads = request.method in {"GET", "HEAD"}
    return sent.password or "" if reads and sent is not None else ""


def _bearer(database: Database, header: str) -> Caller:
    bearer = access.bearer_in(database, header)
    if bearer is not None:
        return Caller(f"token:{bearer.name}", bearer.role)
    # RFC 6750 section 3.1
    raise UnauthorizedError(
        "The token is unknown, revoked or expired.",
        challenge='Bearer realm="webqueue", error="invalid_token"',
    )
