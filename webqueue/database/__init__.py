"""The database: engine, pragmas, short transactions, the writer lock of SQLite, and the wake-up of workers."""

from __future__ import annotations

from webqueue.database.engine import Database
from webqueue.database.listener import Listener
from webqueue.database.locks import share_turn, take_turn
from webqueue.database.statements import make_statement_classes
from webqueue.database.trouble import trouble_of
from webqueue.database.types import JSONData, Text, UTCDateTime
from webqueue.database.wakeup import Wakeup, request_wakeup

make_statement_classes()

__all__ = [
    "Database",
    "JSONData",
    "Listener",
    "Text",
    "UTCDateTime",
    "Wakeup",
    "request_wakeup",
    "share_turn",
    "take_turn",
    "trouble_of",
]
