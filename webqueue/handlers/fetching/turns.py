"""Whose turn it is: the interval between the end of a request and the start of the next (DESIGN P11, §6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webqueue import clock
from webqueue.handlers.fetching.interruption import Interruption


class Turns:
    """The spacing of one key's requests within a job.

    Between requests of this process a monotonic clock counts, so that a step of the system's clock shortens no
    interval. Only the distance to the request before the job is a difference of stored times.

    Args:
        interruption: ends the waits.
        check_lease: raises LeaseLostError; asked during waits and right before each request (P1).
        interval_sec: seconds; 0 means unspaced.
        last_request_at: end of the key's last request before this job, None when there was none.
        now: the clock that `last_request_at` was taken from.
    """

    def __init__(
        self,
        interruption: Interruption,
        check_lease: Callable[[], None],
        *,
        interval_sec: float,
        last_request_at: datetime | None,
        now: Callable[[], datetime],
    ) -> None:
        self.interval_sec = interval_sec
        self.last_request_at = last_request_at
        self._interruption = interruption
        self._check_lease = check_lease
        self._now = now
        self._last_end: float | None = None
        if last_request_at is not None:
            # A time to come (another machine's clock is ahead) counts as now: the whole interval, but no more.
            age = max(0.0, (now() - last_request_at).total_seconds())
            self._last_end = clock.boot_seconds() - age

    def take(self, at_least_sec: float = 0.0) -> None:
        """Wait until the next request may start.

        Args:
            at_least_sec: wait so long after the last request even where the interval is shorter (backoff).

        Raises:
            StopRequested: a stop was requested meanwhile.
            LeaseLostError: the lease ended meanwhile.
        """
        due = 0.0 if self._last_end is None else self._last_end + max(self.interval_sec, at_least_sec)
        self._interruption.sleep_until(due, look=self._check_lease)

    def end(self) -> None:
        """A request has ended, however it did."""
        self._last_end = clock.boot_seconds()
        self.last_request_at = self._now()
