"""Crawls stop before the database can no longer write, and go on by themselves when there is room again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from webqueue import disk, logs, processes
from webqueue.database import Database
from webqueue.disk import Disk
from webqueue.loops import Loop
from webqueue.settings import Settings
from webqueue.worker.runs import Runs, Stop
from webqueue.worker.timing import Timing

log = logs.get(__name__)

# What is noted goes with the row of a worker that was silent for long, and the worker may come back.
_NOTE_AGAIN_SEC: Final = 60.0


class DiskWatch:
    """Looks at the disks of this machine every second.

    While one is low this process claims nothing, and every run is asked to stop: its handler stops at its next request,
    and the job goes back to its place in the line with its checkpoint, at the cost of no attempt. Workers on other
    machines, whose disks have room, may take it.

    Args:
        look: what the disks are; tests may replace it.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        worker_id: str,
        runs: Runs,
        timing: Timing,
        *,
        look: Callable[[], Sequence[Disk]] | None = None,
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._runs = runs
        self._pause = min(1.0, timing.watch_sec)
        self._look = look or (lambda: disk.look(settings))
        self._low: Disk | None = None
        self._told: str | None = None
        self._noted_at = float("-inf")
        self.loop = Loop("disk watch", self.watch, longest_backoff_sec=5.0)

    @property
    def is_low(self) -> bool:
        """Whether nothing may be claimed."""
        return self._low is not None

    def watch(self) -> float:
        """Look once; what the pages tell is written when it changes, and once a minute while a disk is low."""
        before, self._low = self._low, self._found()
        if self._low is not None:
            for run in self._runs.all():
                if run.request_stop(Stop.DISK):
                    log.warning(
                        "disk is low; the handler is asked to stop",
                        job=run.lease.job_id,
                        rate_key=run.lease.rate_key,
                        worker=self._worker_id,
                    )
        told = None if self._low is None else str(self._low.folder)
        if told != self._told:
            self._log(self._low)
        if told != self._told or (told and time.monotonic() - self._noted_at >= _NOTE_AGAIN_SEC):
            self._note(self._low)
            self._told, self._noted_at = told, time.monotonic()
        if before is not None and self._low is None:
            self._database.wakeup.announce()
        return self._pause

    def _found(self) -> Disk | None:
        disks = self._look()
        if self._low is None:
            return next((one for one in disks if one.is_low), None)
        return next((one for one in disks if not one.has_room_again), None)

    def _log(self, low: Disk | None) -> None:
        if low is None:
            log.warning("the disk has room again; crawls go on", worker=self._worker_id)
        else:
            log.error("the disk is low; crawls stop", worker=self._worker_id, disk=low.words())

    def _note(self, low: Disk | None) -> None:
        words = None if low is None else low.words()
        self._database.run(lambda session: processes.note_low_disk(session, self._worker_id, words))
