"""Taking jobs: as many as there are idle threads, when a key is due (DESIGN section 5)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from sqlalchemy import select

from webqueue import clock, jobs, logs
from webqueue.database import Database
from webqueue.errors import LeaseLostError
from webqueue.jobs_sql.heads import RUNNING
from webqueue.loops import Loop
from webqueue.models import Job, RateKey
from webqueue.worker.liveness import Liveness
from webqueue.worker.runs import Runs
from webqueue.worker.timing import Timing

log = logs.get(__name__)

# Somebody else has the keys that are due: try again after this long, and twice as long each time.
_JITTER_SEC: Final = (0.02, 0.05)


class Dispatcher:
    """One thread a process that claims, and hands each job to a thread of its own.

    Args:
        begin: starts a thread for a job, whose lease may be used until the given deadline.
        refuse: gives back a job that was claimed while the process began to stop.
        may_claim: whether this machine can take anything at present.
    """

    def __init__(
        self,
        database: Database,
        worker_id: str,
        runs: Runs,
        liveness: Liveness,
        timing: Timing,
        *,
        threads: int,
        begin: Callable[[jobs.Claimed, float], None],
        refuse: Callable[[jobs.Lease], None],
        may_claim: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._runs = runs
        self._liveness = liveness
        self._timing = timing
        self._threads = threads
        self._begin = begin
        self._refuse = refuse
        self._may_claim = may_claim
        self._seen = 0
        self._in_vain = 0
        self._strays_at = 0.0
        self.loop = Loop("dispatcher", self.dispatch, sleep=self._sleep, on_stop=database.wakeup.announce)

    def dispatch(self) -> float:
        """One round; returns how many seconds to sleep, unless something becomes due."""
        self._seen = self._database.wakeup.generation
        self._give_back_strays()
        idle = self._threads - len(self._runs)
        if idle <= 0 or not self._may_claim():
            return self._timing.poll_sec
        wait = self._until_due()
        if wait > 0:
            self._in_vain = 0
            return min(wait, self._timing.poll_sec)
        if self._claim(idle):
            self._in_vain = 0
            return 0  # there may be more; the next round sees
        # Due, and not to be had: others are claiming it, or everything is paused.
        self._in_vain += 1
        pause = random.uniform(*_JITTER_SEC) * 2.0 ** min(self._in_vain - 1, 10)  # noqa: S311 - keeps workers apart
        return min(pause, self._timing.poll_sec)

    def _sleep(self, seconds: float) -> None:
        self._database.wakeup.wait(self._seen, seconds)

    def _until_due(self) -> float:
        """Seconds until the next key is due: 0 when one is, infinity when there is none."""
        with self._database.reading() as session:
            due = jobs.earliest_due(session)
            if due is None:
                return float("inf")
            return max(0.0, (due - clock.now(session)).total_seconds())

    def _claim(self, idle: int) -> int:
        # Taken before anything is sent: the database counts the lease from a later moment.
        sent_at = clock.boot_seconds()
        claimed = self._database.run(
            lambda session: jobs.claim(
                session,
                self._worker_id,
                limit=idle,
                life=self._liveness.life,
                lease_sec=self._timing.lease_sec,
            )
        )
        # A claim that had to be tried again was sent later: then the deadline is only earlier than it need be.
        deadline = self._timing.deadline(sent_at)
        for one in claimed:
            if self.loop.stopping:
                self._refuse(one.lease)
            else:
                self._begin(one, deadline)
        return len(claimed)

    def _give_back_strays(self) -> None:
        """Give back what this worker holds in the tables and does not run: the answer to a claim was lost."""
        if clock.boot_seconds() < self._strays_at:
            return
        self._strays_at = clock.boot_seconds() + self._timing.sweep_sec
        running = set(self._runs.leases())
        with self._database.reading() as session:
            held = session.execute(
                select(RateKey.key, Job.seq, Job.id, Job.lease_token)
                .join(Job, Job.rate_key == RateKey.key)
                .where(RateKey.leased_by == self._worker_id, RUNNING)
            ).all()
        for key, seq, job_id, token in held:
            lease = jobs.Lease(key, seq, job_id, token, self._worker_id)
            if lease in running:
                continue
            log.warning(
                "job held but not run; it is handed back", job=job_id, rate_key=key, worker=self._worker_id
            )
            try:
                self._refuse(lease)
            except LeaseLostError:
                log.info("job was not held any more", job=job_id, rate_key=key, worker=self._worker_id)
