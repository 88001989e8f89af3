"""The jobs that this process runs at present, and why each of them has to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from enum import Enum

from webqueue import clock
from webqueue.errors import LeaseLostError
from webqueue.jobs import Claimed, Lease


class Stop(Enum):
    """Why a handler was asked to stop."""

    CANCEL = "cancelled"
    TIME_LIMIT = "out of time"
    CLOSING = "the site's allowed hours end"
    SHUTDOWN = "the process stops"
    DISK = "the disk is low"
    LEASE_ENDED = "the lease could not be renewed in time"
    LEASE_LOST = "the lease is lost"


class Run:
    """One job that this process runs: its lease, its deadlines, and its stop.

    Args:
        claimed: what `jobs.claim` gave.
        lease_deadline: until when the lease may be used, on `clock.boot_seconds`.
    """

    def __init__(self, claimed: Claimed, *, lease_deadline: float) -> None:
        self.claimed = claimed
        self.lease: Lease = claimed.lease
        self.max_runtime_sec = claimed.target.max_runtime_sec
        self.time_limit_at = clock.boot_seconds() + self.max_runtime_sec
        self.closes_at = None if claimed.open_for_sec is None else clock.boot_seconds() + claimed.open_for_sec
        self.lease_deadline = lease_deadline
        self.lease_ended = False  # the handler has met the deadline, whatever had stopped it before
        self.told = False  # the handler has seen that it should stop
        self.aborted = False  # its request in flight was cut off
        self.closing = False  # the handler has ended, its end is being written
        self.shown_as_stuck = False
        self.isolated = False  # the handler has a process of its own
        self.forced = False  # an operator does not wait for the handler any longer
        self.shutdown: tuple[float, float] | None = (
            None  # since when the process stops, and its grace in seconds
        )
        self.stop_at = 0.0  # when it was first asked to stop, on `clock.boot_seconds`
        self._stop: Stop | None = None
        self._lock = threading.Lock()
        self._abort: Callable[[], None] | None = None
        self._flush: Callable[[], None] | None = None

    @property
    def stop(self) -> Stop | None:
        """Why it has to stop; None while it may go on."""
        return self._stop

    def request_stop(self, why: Stop) -> bool:
        """Ask the handler to stop; True when nobody had. The first reason stays, but a lost lease outdoes every other."""
        with self._lock:
            first = self._stop is None
            if first:
                self.stop_at = clock.boot_seconds()
            if first or why is Stop.LEASE_LOST:
                self._stop = why
            return first

    def should_stop(self) -> bool:
        """What the handler is told. Looks at the clock too: a thread that was suspended must not go on (P1)."""
        if clock.boot_seconds() > self.lease_deadline:
            self.lease_ended = True
            self.request_stop(Stop.LEASE_ENDED)
        if self._stop is not None:
            self.told = True
        return self._stop is not None

    def check_lease(self) -> None:
        """Compare the lease's deadline with a clock that counts suspension; without the database (P1).

        Raises:
            LeaseLostError: it is past, or the lease is known to be lost.
        """
        if self.should_stop() and (self.lease_ended or self._stop in {Stop.LEASE_ENDED, Stop.LEASE_LOST}):
            raise LeaseLostError(self.lease.job_id)

    def use(self, *, abort: Callable[[], None], flush: Callable[[], None]) -> None:
        """Take what ends the handler's request in flight, and what writes its progress."""
        with self._lock:
            self._abort, self._flush = abort, flush
        if self.aborted:
            abort()

    def abort(self) -> None:
        """Cut off the request in flight, so that a server that hangs does not hold the stop up."""
        with self._lock:
            first, self.aborted = not self.aborted, True
            abort = self._abort
        if first and abort is not None:
            abort()

    def flush(self) -> None:
        """Write what the handler has told since the last time."""
        flush = self._flush
        if flush is not None:
            flush()


class Runs:
    """The runs of one process, by their leases."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._runs: dict[Lease, Run] = {}

    def add(self, run: Run) -> None:
        """Take up a run."""
        with self._lock:
            self._runs[run.lease] = run

    def remove(self, run: Run) -> None:
        """Drop a run that has ended."""
        with self._lock:
            self._runs.pop(run.lease, None)
            self._lock.notify_all()

    def all(self) -> list[Run]:
        """Every run, oldest first."""
        with self._lock:
            return list(self._runs.values())

    def leases(self) -> list[Lease]:
        """The lease of every run."""
        with self._lock:
            return list(self._runs)

    def renewed(self, leases: Iterable[Lease], deadline: float) -> None:
        """Note a new deadline for the leases that were renewed."""
        with self._lock:
            for lease in leases:
                if lease in self._runs:
                    self._runs[lease].lease_deadline = deadline

    def lost(self, leases: Iterable[Lease]) -> list[Run]:
        """The runs of these leases whose handlers still run. One that has just been finished has lost no lease."""
        with self._lock:
            return [run for lease in leases if (run := self._runs.get(lease)) is not None and not run.closing]

    def wait_until_empty(self, timeout: float) -> bool:
        """Wait until no run is left, at most `timeout` seconds; True when there is none."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._runs, max(0.0, timeout))

    def __len__(self) -> int:
        with self._lock:
            return len(self._runs)
