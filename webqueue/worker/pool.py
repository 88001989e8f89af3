"""The worker pool of a process: it takes jobs, runs each in a thread, and stops in order."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from webqueue import clock, jobs, logs
from webqueue.database import Database, Listener
from webqueue.deliveries.loop import POLL_SEC, DeliveryLoop, deliverers
from webqueue.deliveries.telling import AlertWatch
from webqueue.errors import LeaseLostError
from webqueue.handlers import registry
from webqueue.loops import Loop
from webqueue.settings import Settings
from webqueue.worker.disk_watch import DiskWatch
from webqueue.worker.dispatching import Dispatcher
from webqueue.worker.heartbeat import Heartbeat
from webqueue.worker.isolated import Isolation
from webqueue.worker.keeping import DocumentKeeper, EvidenceKeeper, HistoryKeeper
from webqueue.worker.liveness import Liveness
from webqueue.worker.running import Handlers, Runner
from webqueue.worker.runs import Run, Runs, Stop
from webqueue.worker.services import make_services
from webqueue.worker.sweeping import Sweeper
from webqueue.worker.timing import Timing
from webqueue.worker.watching import Flusher, LimitWatch, StopWatch

log = logs.get(__name__)

# The part of the grace after which requests in flight are cut off.
_PATIENCE: Final = 0.6
_JOIN_SEC: Final = 2.0
# How long the jobs of unstopped handlers may take to be handed back, all together.
_HAND_BACK_SEC: Final = 5.0


class WorkerPool:
    """Runs jobs in up to `threads` threads of this process, from `start` to `stop`.

    Any number of pools may work on one database, in one process or in many.

    Args:
        database: where the jobs are.
        settings: policy of blocks, user agent, stop grace.
        threads: jobs that run at the same time.
        worker_id: unique per start; the default is random.
        timing: how often it does what.
        handlers: the default are those that are installed.
        end_process: lets this process stop in order, as SIGTERM does, and end; called once, when an operator forces a
            handler to stop that runs in a thread. The default sends that signal to this process.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        threads: int,
        worker_id: str | None = None,
        timing: Timing | None = None,
        handlers: Handlers | None = None,
        end_process: Callable[[], None] | None = None,
    ) -> None:
        self.worker_id = worker_id or secrets.token_hex(6)
        self.threads = threads
        self._database = database
        self._gone = threading.Event()
        self._runs = Runs()
        self._end_process = end_process or _terminate
        self._forced = False
        timing = timing or Timing()
        self._liveness = Liveness.of(database.instance_path)
        self._runner = Runner(
            make_services(database, settings),
            handlers=handlers or registry.installed(),
            isolation=Isolation(grace_sec=settings.stop_grace_sec),
            policy=jobs.Policy.from_settings(settings),
            gone=self._gone,
        )
        self._heartbeat = Heartbeat(database, self.worker_id, self._runs, timing, threads=threads)
        disks = DiskWatch(database, settings, self.worker_id, self._runs, timing)
        self._dispatcher = Dispatcher(
            database,
            self.worker_id,
            self._runs,
            self._liveness,
            timing,
            threads=threads,
            begin=self._begin,
            refuse=self._refuse,
            may_claim=lambda: not disks.is_low,
        )
        limits = LimitWatch(database, self._runs, timing, grace_sec=settings.stop_grace_sec)
        self._helpers = [
            disks.loop,
            limits.loop,
            limits.stuck_loop,
            StopWatch(database, self.worker_id, self._runs, timing, force_thread=self._force_thread).loop,
            Flusher(self._runs, timing).loop,
            Sweeper(database, self._liveness, timing).loop,
            EvidenceKeeper(database, settings.instance_path).loop,
            HistoryKeeper(database, settings).loop,
            DocumentKeeper(database, settings).loop,
            AlertWatch(database, every_sec=timing.heartbeat_sec).loop,
            *_delivery_loops(database, settings, timing),
        ]
        self._listener = Listener(database, self.worker_id)
        self._started = False

    @property
    def running(self) -> list[str]:
        """The ids of the jobs that run here at present."""
        return [run.lease.job_id for run in self._runs.all()]

    @property
    def problems(self) -> list[str]:
        """What fails at present, in words; empty when everything works."""
        loops = [self._dispatcher.loop, self._heartbeat.loop, *self._helpers]
        found = [loop.problem for loop in loops] + [self._listener.problem]
        stuck = [
            f"the handler of job {run.lease.job_id} is stuck"
            for run in self._runs.all()
            if run.shown_as_stuck
        ]
        return [problem for problem in found if problem is not None] + stuck

    @property
    def forced(self) -> bool:
        """Whether this process has to end because an operator forced a handler to stop that runs in a thread."""
        return self._forced

    def start(self) -> None:
        """Begin to take jobs. Whatever fails from here on is tried again, and shown in `problems`."""
        self._liveness.enter(self.worker_id)
        self._started = True
        self._listener.start()
        self._heartbeat.loop.start()
        for loop in self._helpers:
            loop.start()
        self._dispatcher.loop.start()
        log.info("worker started", worker=self.worker_id, threads=self.threads)

    def stop(self, grace_sec: float) -> bool:
        """Stop in order: take no more, ask every handler to stop, hand its job back with its checkpoint (P9).

        It costs no attempt. The jobs of handlers that do not stop in time are handed back last, their keys kept shut
        10 s more.

        Args:
            grace_sec: how long handlers get.

        Returns:
            True when every handler has stopped. False: some go on, and the process has to end now, by `os._exit` since
            a thread cannot be ended; only then is it sure that they make no further request.
        """
        if not self._started:
            return True
        self._started = False
        ends_at = time.monotonic() + grace_sec
        self._dispatcher.loop.stop()
        self._dispatcher.loop.join(min(_JOIN_SEC, grace_sec))
        for run in self._runs.all():
            run.shutdown = (clock.boot_seconds(), max(0.0, ends_at - time.monotonic()))
            run.request_stop(Stop.SHUTDOWN)
        if not self._runs.wait_until_empty((ends_at - time.monotonic()) * _PATIENCE):
            for run in self._runs.all():
                run.abort()
        self._runs.wait_until_empty(ends_at - time.monotonic())
        left = self._runs.all()
        self._give_up(left)
        self._end_loops()
        self._listener.stop()
        if not left:
            self._liveness.leave(self.worker_id)
        log.info("worker stopped", worker=self.worker_id, unstopped=[run.lease.job_id for run in left])
        return not left

    def _begin(self, claimed: jobs.Claimed, deadline: float) -> None:
        run = Run(claimed, lease_deadline=deadline)
        self._runs.add(run)
        thread = threading.Thread(target=self._work, args=(run,), name=f"job-{run.lease.job_id}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No thread to be had: the job is given back with the next look at strays.
            self._runs.remove(run)
            raise

    def _work(self, run: Run) -> None:
        try:
            self._runner.run(run)
        finally:
            self._runs.remove(run)
            self._database.wakeup.announce()  # a thread is idle

    def _force_thread(self, run: Run) -> None:
        """A thread cannot be ended; the process can, after it has handed the other jobs back (P9)."""
        if self._forced:
            return
        self._forced = True
        log.error(
            "force stop of a handler that runs in a thread: this process hands its jobs back and ends",
            job=run.lease.job_id,
            rate_key=run.lease.rate_key,
            worker=self.worker_id,
        )
        self._end_process()

    def _refuse(self, lease: jobs.Lease) -> None:
        self._database.run(lambda session: jobs.hand_back(session, lease, stopped=True))

    def _give_up(self, left: list[Run]) -> None:
        """Hand back the jobs of handlers that go on; their threads write nothing any more, the lease is gone.

        A database that is away, or locked by somebody, must not keep the process from ending: what cannot be handed
        back in time is freed as a dead worker's.
        """
        if not left:
            return
        self._gone.set()
        writing = threading.Thread(
            target=self._hand_back_all, args=(left,), name="last hand-backs", daemon=True
        )
        writing.start()
        writing.join(_HAND_BACK_SEC)
        if writing.is_alive():
            log.error("the database does not answer; the process ends without it", worker=self.worker_id)

    def _hand_back_all(self, left: list[Run]) -> None:
        for run in left:
            facts = {"job": run.lease.job_id, "rate_key": run.lease.rate_key, "worker": self.worker_id}
            log.error("handler did not stop in time; its job is handed back", **facts)
            try:
                self._runner.hand_back(run, stopped=False, attempts=2)
            except LeaseLostError:
                log.info("job had ended meanwhile", **facts)
            except Exception:
                # Its lease is freed as a dead worker's, once this process has ended.
                log.exception("job could not be handed back", **facts)

    def _end_loops(self) -> None:
        loops = [*self._helpers, self._heartbeat.loop]
        for loop in loops:
            loop.stop()
        ends_at = time.monotonic() + _JOIN_SEC
        for loop in loops:
            loop.join(max(0.0, ends_at - time.monotonic()))
        try:
            self._heartbeat.leave()
        except Exception:
            log.exception("end of the process not noted", worker=self.worker_id)


def _delivery_loops(database: Database, settings: Settings, timing: Timing) -> list[Loop]:
    """Two, so that one receiver that hangs does not keep the others waiting."""
    by_kind = deliverers(settings)
    poll_sec = min(POLL_SEC, timing.poll_sec)
    return [
        DeliveryLoop(
            database, by_kind, lease_sec=timing.lease_sec, poll_sec=poll_sec, name=f"deliveries {number}"
        ).loop
        for number in (1, 2)
    ]


def _terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
