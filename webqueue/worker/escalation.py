"""When a handler in a process of its own is told by SIGTERM that its grace is over, and when it is killed.

Every stop begins softly: `ctx.should_stop()` says so. What comes after it depends on why it stops, and is a table here, so
that it can be read and tested as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from webqueue.worker.runs import Run, Stop

# The clean-up after a SIGTERM takes at most this part of the grace.
_CLEAN_UP: Final = 0.5
# A lease that could not be renewed ends a few seconds later (`Timing.margin_sec`): nothing of the run may be left then.
_LEASE_CLEAN_UP_SEC: Final = 1.0
# At a shutdown grace and clean-up must fit into the grace of the process, with time left to hand the job back.
_SHUTDOWN_SIGTERM: Final = 0.6
_SHUTDOWN_SIGKILL: Final = 0.8


@dataclass(frozen=True)
class Escalation:
    """The moments of the two signals, on `clock.boot_seconds`; infinity = never."""

    sigterm_at: float = math.inf
    sigkill_at: float = math.inf

    def or_earlier(self, other: Escalation) -> Escalation:
        """The earlier moment of both, for each signal."""
        return Escalation(
            min(self.sigterm_at, other.sigterm_at),
            min(self.sigkill_at, other.sigkill_at),
        )


def escalation_of(run: Run, *, grace_sec: float) -> Escalation:
    """What the run's process has to expect.

    A cancel waits for the clean-up as long as it takes: the handler may be in the middle of something, and an operator who
    cannot wait has Force stop. So does a low disk, where ending by force makes no room. Everything else is hard (DESIGN
    section 6).

    Args:
        grace_sec: how long a handler gets to see that it should stop (`WEBQUEUE_STOP_GRACE_SEC`).
    """
    # Whatever stopped it first, at its time limit and at the end of its lease a run is over.
    found = _hard(run.time_limit_at, grace_sec).or_earlier(
        Escalation(run.lease_deadline, run.lease_deadline + _LEASE_CLEAN_UP_SEC)
    )
    if run.shutdown is not None:
        at, grace = run.shutdown
        found = found.or_earlier(Escalation(at + _SHUTDOWN_SIGTERM * grace, at + _SHUTDOWN_SIGKILL * grace))
    if run.forced:
        return Escalation(0.0, 0.0)
    match run.stop:
        case Stop.LEASE_LOST:
            # It belongs to somebody else: no clean-up is worth a second visit at the same time.
            return Escalation(0.0, 0.0)
        case Stop.LEASE_ENDED:
            return found.or_earlier(Escalation(run.stop_at, run.stop_at + _LEASE_CLEAN_UP_SEC))
        case Stop.CANCEL | Stop.DISK:
            return found.or_earlier(Escalation(run.stop_at + grace_sec))
        case Stop.CLOSING | Stop.TIME_LIMIT:
            return found.or_earlier(_hard(run.stop_at, grace_sec))
        case _:
            return found


def _hard(at: float, grace_sec: float) -> Escalation:
    return Escalation(at + grace_sec, at + grace_sec * (1 + _CLEAN_UP))
