"""What is wrong with a database, in words for whoever uses the admin: no names, no addresses, no SQL."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from webqueue.sentences import say

_UNAVAILABLE: Final = say("The database does not answer. Try again.")
_BY_SQLITE_CODE: Final = {
    sqlite3.SQLITE_FULL: say(
        "The disk of the database is full. Make room; then everything goes on by itself."
    ),
    sqlite3.SQLITE_READONLY: say(
        "The database cannot be written. Look at its disk and at the rights of its files."
    ),
    sqlite3.SQLITE_IOERR: say(
        "The database cannot be written. Look at its disk and at the rights of its files."
    ),
    sqlite3.SQLITE_CANTOPEN: say(
        "The database cannot be opened. Look at its disk and at the rights of its files."
    ),
}
# PostgreSQL: disk full.
_BY_STATE: Final = {"53100": _BY_SQLITE_CODE[sqlite3.SQLITE_FULL]}


def trouble_of(error: DBAPIError) -> str | None:
    """Why the database cannot do anything at present; None when it is no trouble of the database but of the request."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _BY_SQLITE_CODE:
        return _BY_SQLITE_CODE[code & 0xFF]
    state = getattr(error.orig, "sqlstate", None)
    if state in _BY_STATE:
        return _BY_STATE[state]
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return _UNAVAILABLE
    return None
