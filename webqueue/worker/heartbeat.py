"""The heartbeat of a worker process: it renews the leases of its runs, and tells that the process lives."""

from __future__ import annotations

from webqueue import clock, jobs, logs, processes
from webqueue.database import Database
from webqueue.loops import Loop
from webqueue.worker.runs import Runs, Stop
from webqueue.worker.timing import Timing

log = logs.get(__name__)


class Heartbeat:
    """A thread of its own, on a connection of its own and outside the writer lock, so that nothing makes it late.

    Args:
        database: where the leases are.
        worker_id: whose leases.
        runs: what runs at present.
        timing: lease and period.
        threads: worker threads of the process, for the overview.
    """

    def __init__(
        self, database: Database, worker_id: str, runs: Runs, timing: Timing, *, threads: int
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._runs = runs
        self._timing = timing
        self._threads = threads
        # A failed beat is tried again soon: several tries must fit into one lease.
        self.loop = Loop("heartbeat", self.beat, longest_backoff_sec=min(5.0, timing.heartbeat_sec))

    def beat(self) -> float:
        """Renew every lease once; runs whose lease is lost are stopped. Returns the seconds to the next beat."""
        leases = self._runs.leases()
        # Taken before anything is sent: the database counts the lease from a later moment.
        sent_at = clock.boot_seconds()
        with self._database.heartbeat() as session:
            lost = jobs.renew(session, self._worker_id, leases, lease_sec=self._timing.lease_sec)
            processes.beat(session, self._worker_id, role="worker", threads=self._threads)
        self._runs.renewed(set(leases) - lost, self._timing.deadline(sent_at))
        for run in self._runs.lost(lost):
            if run.request_stop(Stop.LEASE_LOST):
                log.warning(
                    "lease lost", job=run.lease.job_id, rate_key=run.lease.rate_key, worker=self._worker_id
                )
            run.abort()
        return self._timing.heartbeat_sec

    def leave(self) -> None:
        """Note that the process ends in order."""
        with self._database.heartbeat() as session:
            processes.leave(session, self._worker_id)
