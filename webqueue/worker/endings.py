"""What a run came to, given what its handler returned or raised, and why it was asked to stop."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from webqueue import logs
from webqueue.errors import LeaseLostError, WebqueueError
from webqueue.handlers.json_safe import json_safe_dict
from webqueue.handlers.protocol import BlockedError, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Done, Ending, Failed, Outcome, OutOfHours, OutOfTime
from webqueue.politeness.rate_key import is_key
from webqueue.worker.runs import Run, Stop

log = logs.get(__name__)

# What a traceback of a runaway recursion would take.
_LONGEST_TRACEBACK: Final = 20_000


@dataclass(frozen=True)
class HandBack:
    """The run is given back with its checkpoint: its process stops, or could not renew its lease in time."""


@dataclass(frozen=True)
class Nothing:
    """The lease is lost: nothing of this run is written any more."""


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


def ending_of(run: Run, outcome: Outcome | None) -> Ending | HandBack | Nothing:  # noqa: PLR0911 - a table
    """How the run ends.

    A handler that was told to stop and then says that it is done may have done a part only (a function that just leaves
    its loop returns nothing, as one that is through does). So its work counts as stopped, and goes on from the
    checkpoint: to do a little twice is better than to leave a lot undone.

    Args:
        run: the run, with its stop.
        outcome: what the handler came to; None when it only stopped.
    """
    stopped = outcome is None or isinstance(outcome, Cancelled) or _cut_short(run, outcome)
    match run.stop:
        case Stop.LEASE_LOST:
            return Nothing()
        case Stop.CANCEL:
            # Whatever it came to: `jobs.finish` reads the request under the lock, and a stop wins (P8).
            return _storable(outcome) if outcome is not None else Cancelled()
        case Stop.SHUTDOWN | Stop.LEASE_ENDED if stopped:
            return HandBack()
        case Stop.TIME_LIMIT if stopped:
            return OutOfTime(run.max_runtime_sec, _storable(outcome).result if outcome is not None else {})
        case Stop.CLOSING if stopped:
            return OutOfHours(_storable(outcome).result if outcome is not None else {})
        case None if outcome is None:
            return Failed(
                "The handler stopped although nobody had asked it to; this is a mistake in the handler."
            )
        case _:
            assert outcome is not None, "a run that only stopped has a reason"
            return _storable(outcome)


def _cut_short(run: Run, outcome: Outcome) -> bool:
    """Whether an outcome that names no stop is all the same the work of one. A block is news in any case."""
    return (run.told and isinstance(outcome, Done)) or (
        isinstance(outcome, Failed) and (run.aborted or (run.told and run.stop is not Stop.TIME_LIMIT))
    )


def _storable(outcome: Outcome) -> Outcome:
    outcome = replace(outcome, result=json_safe_dict(outcome.result))
    if isinstance(outcome, Blocked) and outcome.rate_key is not None and not is_key(outcome.rate_key):
        log.warning("block charged to what is no rate key", charged=str(outcome.rate_key)[:100])
        return replace(outcome, rate_key=None)
    return outcome
