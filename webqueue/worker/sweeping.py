"""Freeing at once what dead workers of this instance held (DESIGN P5)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from webqueue import jobs, logs, processes
from webqueue.database import Database
from webqueue.deliveries import alerts
from webqueue.loops import Loop
from webqueue.worker.liveness import Liveness
from webqueue.worker.timing import Timing

log = logs.get(__name__)


class Sweeper:
    """Looks for dead workers at the start, and then every few seconds."""

    def __init__(self, database: Database, liveness: Liveness, timing: Timing) -> None:
        self._database = database
        self._liveness = liveness
        self._timing = timing
        self.loop = Loop("sweeper", self.sweep)

    def sweep(self) -> float:
        """Look once. The files of the dead are removed after their leases: a crash in between loses nothing."""
        dead = self._liveness.dead_workers()
        if dead:
            recovered = self._database.run(lambda session: self._free(session, dead))
            self._liveness.remove_dead(dead)
            log.warning("dead workers found", workers=dead, recovered_jobs=recovered)
        return self._timing.sweep_sec

    def _free(self, session: Session, dead: list[str]) -> list[str]:
        recovered = jobs.free_dead(session, dead)
        for worker_id in dead:
            processes.leave(session, worker_id)
        alerts.note_lost_workers(session, dead, len(recovered))
        return recovered
