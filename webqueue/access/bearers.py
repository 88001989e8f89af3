"""Who sends a request with a token, for the API and the metrics alike."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError

from webqueue import clock, logs
from webqueue.access.tokens import Bearer, bearer_of, note_use
from webqueue.database import Database

log = logs.get(__name__)

_LONGEST_TOKEN: Final = 200


def bearer_in(database: Database, authorization: str) -> Bearer | None:
    """Who holds the token of an `Authorization` header (RFC 6750, section 2.1), and note that it was used.

    Returns:
        None: it is no token, or one that is unknown, revoked or expired.
    """
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token.isascii() or not 0 < len(token) <= _LONGEST_TOKEN:
        return None
    with database.reading() as session:
        bearer = bearer_of(session, token, clock.now(session))
    if bearer is not None and bearer.use_is_due:
        _note(database, bearer)
    return bearer


def _note(database: Database, bearer: Bearer) -> None:
    try:
        database.run(lambda session: note_use(session, bearer.token_id, clock.now(session)), attempts=1)
    except DBAPIError as error:
        # A disk that is full must not keep anybody from looking at why.
        log.warning("use of a token not noted", token=bearer.name, error=str(error.orig))
