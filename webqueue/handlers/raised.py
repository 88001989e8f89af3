"""What an exception of a handler means, wherever the handler runs."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Final

from webqueue.errors import LeaseLostError, WebqueueError
from webqueue.handlers.protocol import BlockedError, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome
from webqueue.sentences import stored

# What a traceback of a runaway recursion would take.
_LONGEST_TRACEBACK: Final = 20_000


def outcome_of(error: BaseException) -> Outcome | None:
    """What an exception of a handler means; None: it stopped because it was asked to, or lost its lease."""
    if isinstance(error, StopRequested | LeaseLostError):
        return None
    if isinstance(error, BlockedError):
        return Blocked(error.reason, error.retry_after, result={"url": error.url}, rate_key=error.rate_key)
    if isinstance(error, WebqueueError):
        return Failed(str(error))  # written for the person who reads it
    return Failed(f"{type(error).__name__}: {error}", failure(error))


def failure(error: BaseException) -> Mapping[str, Any]:
    """An exception in a job's result: its type, message and traceback (SEEDS B)."""
    lines = "".join(traceback.format_exception(error))
    return {
        "error_type": type(error).__name__,
        "error": str(error),
        "traceback": lines if len(lines) <= _LONGEST_TRACEBACK else f"…{lines[-_LONGEST_TRACEBACK:]}",
    }


def checked(returned: object, kind: str) -> Outcome:
    """What a handler returned, when it is an outcome; else its failure."""
    if isinstance(returned, Done | Failed | Blocked | Cancelled):
        return returned
    return Failed(
        stored(
            "The handler %(kind)s returned %(returned)s instead of an outcome.",
            kind=repr(kind),
            returned=repr(returned)[:200],
        )
    )
