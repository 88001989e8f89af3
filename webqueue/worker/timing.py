"""How often a worker does what; tests make all of it shorter."""

from __future__ import annotations

from dataclasses import dataclass

from webqueue.jobs import LEASE_SECONDS


@dataclass(frozen=True)
class Timing:
    """Seconds, all of them (DESIGN section 5).

    Attributes:
        lease_sec: how long a lease lasts when nobody renews it.
        heartbeat_sec: between two renewals.
        margin_sec: a handler stops this long before its lease ends.
        poll_sec: the longest sleep of the dispatcher; wake-ups are hints, this is the truth.
        sweep_sec: between two looks for dead workers.
        watch_sec: between two looks at time limits, leases and stop requests.
        flush_sec: progress and log lines are written at most this late.
    """

    lease_sec: float = LEASE_SECONDS
    heartbeat_sec: float = 15.0
    margin_sec: float = 5.0
    poll_sec: float = 5.0
    sweep_sec: float = 5.0
    watch_sec: float = 1.0
    flush_sec: float = 1.0

    def deadline(self, sent_at: float) -> float:
        """Until when, on the clock of `clock.boot_seconds`, a lease written at or after `sent_at` may be used."""
        return sent_at + self.lease_sec - self.margin_sec
