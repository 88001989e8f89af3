"""What a run came to, given what its handler returned or raised, and why it was asked to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from webqueue import logs
from webqueue.handlers.json_safe import json_safe_dict
from webqueue.outcomes import Blocked, Cancelled, Done, Ending, Failed, Outcome, OutOfHours, OutOfTime
from webqueue.politeness.rate_key import is_key
from webqueue.sentences import stored
from webqueue.worker.runs import Run, Stop

log = logs.get(__name__)


@dataclass(frozen=True)
class HandBack:
    """The run is given back with its checkpoint: its process stops, or could not renew its lease in time."""


@dataclass(frozen=True)
class Nothing:
    """The lease is lost: nothing of this run is written any more."""


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
        case Stop.SHUTDOWN | Stop.LEASE_ENDED | Stop.DISK if stopped:
            return HandBack()
        case Stop.TIME_LIMIT if stopped:
            return OutOfTime(run.max_runtime_sec, _storable(outcome).result if outcome is not None else {})
        case Stop.CLOSING if stopped:
            return OutOfHours(_storable(outcome).result if outcome is not None else {})
        case None if outcome is None:
            return Failed(
                stored(
                    "The handler stopped although nobody had asked it to; this is a mistake in the handler."
                )
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
