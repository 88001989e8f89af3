"""What is watched while jobs run: time limits, leases, stop requests; and what handlers tell is written down."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from webqueue import clock, jobs, logs
from webqueue.database import Database
from webqueue.errors import LeaseLostError
from webqueue.loops import Loop
from webqueue.worker.runs import Run, Runs, Stop
from webqueue.worker.timing import Timing

log = logs.get(__name__)


class LimitWatch:
    """Stops runs at their time limit, when their site closes, and at the end of their lease. Needs no database, so that none can hold it up."""

    def __init__(self, database: Database, runs: Runs, timing: Timing, *, grace_sec: float) -> None:
        self._database = database
        self._runs = runs
        self._grace_sec = grace_sec
        self._pause = min(timing.watch_sec, timing.lease_sec / 10)
        self.loop = Loop("limit watch", self.look)
        # Writes to the database, so it has a thread of its own.
        self.stuck_loop = Loop("stuck watch", self.show_stuck)

    def look(self) -> float:
        """Look at every run once."""
        now = clock.boot_seconds()
        for run in self._runs.all():
            if now > run.lease_deadline and run.request_stop(Stop.LEASE_ENDED):
                _log("lease not renewed in time; the handler is stopped", run)
                run.abort()
            if now > run.time_limit_at and run.request_stop(Stop.TIME_LIMIT):
                _log("time limit reached; the handler is asked to stop", run)
            if run.closes_at is not None and now > run.closes_at:
                if run.request_stop(Stop.CLOSING):
                    _log("the site's allowed hours end; the handler is asked to stop", run)
                if now > run.closes_at + self._grace_sec:
                    run.abort()
            if now > run.time_limit_at + self._grace_sec:
                run.abort()
        return self._pause

    def show_stuck(self) -> float:
        """Tell once about each handler that goes on after its time limit and the grace: its key stays shut (P9)."""
        now = clock.boot_seconds()
        for run in self._runs.all():
            # Twice the grace: at its end the request in flight is cut off, which a live handler notices.
            if now <= run.time_limit_at + 2 * self._grace_sec or run.shown_as_stuck or run.closing:
                continue
            message = f"the handler of job {run.lease.job_id} does not stop at its time limit of {run.max_runtime_sec} s"
            try:
                self._database.run(partial(jobs.note_stuck, lease=run.lease, message=message))
            except LeaseLostError:
                # The key is not held up by this handler any more; the thread of this process is.
                run.request_stop(Stop.LEASE_LOST)
            run.shown_as_stuck = True
            log.error(
                "handler is stuck",
                job=run.lease.job_id,
                rate_key=run.lease.rate_key,
                worker=run.lease.worker_id,
            )
        return self._pause


class StopWatch:
    """Hears of cancelled jobs: one plain indexed read a second while jobs run (P8).

    Args:
        force_thread: called for a run whose handler must not be waited for, and which cannot be killed.
    """

    def __init__(
        self,
        database: Database,
        worker_id: str,
        runs: Runs,
        timing: Timing,
        *,
        force_thread: Callable[[Run], None],
    ) -> None:
        self._database = database
        self._force_thread = force_thread
        self._worker_id = worker_id
        self._runs = runs
        self._timing = timing
        self.loop = Loop("stop watch", self.look, longest_backoff_sec=timing.watch_sec)

    def look(self) -> float:
        """Ask once, when anything runs."""
        running = self._runs.all()
        if running:
            with self._database.reading() as session:
                stopped = jobs.stop_requests(session, self._worker_id)
                # Only ever beside a stop request.
                forced = jobs.force_requests(session, self._worker_id) if stopped else set()
            for run in running:
                if run.lease.job_id in stopped:
                    if run.request_stop(Stop.CANCEL):
                        _log("stop requested", run)
                    # Not even a server that hangs holds a cancel up.
                    run.abort()
                if run.lease.job_id in forced:
                    self._force(run)
        return self._timing.watch_sec

    def _force(self, run: Run) -> None:
        if not run.forced:
            _log("force stop requested", run)
        run.forced = True  # the process of a handler is killed by who watches it
        if not run.isolated and not run.closing:
            self._force_thread(run)


class Flusher:
    """Writes the progress and the log lines of every run about once a second."""

    def __init__(self, runs: Runs, timing: Timing) -> None:
        self._runs = runs
        self._timing = timing
        self.loop = Loop("flusher", self.flush, longest_backoff_sec=5.0)

    def flush(self) -> float:
        """Flush every run once. What one run cannot write does not keep the others from writing."""
        failed: Exception | None = None
        for run in self._runs.all():
            if run.closing:
                continue  # what is left is written with its end
            try:
                run.flush()
            except LeaseLostError:
                run.request_stop(Stop.LEASE_LOST)
                run.abort()
            except Exception as error:  # noqa: BLE001 - raised below, once every run had its turn
                failed = error
        if failed is not None:
            raise failed
        return self._timing.flush_sec


def _log(event: str, run: Run) -> None:
    log.warning(event, job=run.lease.job_id, rate_key=run.lease.rate_key, worker=run.lease.worker_id)
