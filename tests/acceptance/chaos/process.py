"""One process of the chaos: a pool of workers, or a scheduler. It is forked from a process that has imported everything."""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final

from tests.acceptance.chaos.witness import VARIABLE, note
from webqueue import clock, logs, settings
from webqueue.database import Database
from webqueue.scheduler import Scheduler
from webqueue.worker import Timing, WorkerPool

UNSTOPPED: Final = 3
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Options:
    """What a process is started with.

    Attributes:
        url: of the database.
        instance: its instance folder: another one means another machine, as far as the locks tell.
        witness: the file for its lines.
        log: the file for its standard error.
        role: `worker` or `scheduler`.
        threads: of the worker.
        timing: the worker's.
        worker_id: the worker's.
        grace_sec: for handlers at SIGTERM.
        environment: settings.
    """

    url: str
    instance: Path
    witness: Path
    log: Path
    role: str = "worker"
    threads: int = 4
    timing: Timing = field(default_factory=Timing)
    worker_id: str = ""
    grace_sec: float = 3.0
    environment: dict[str, str] = field(default_factory=dict)


def main(options: Options) -> None:
    """Run until SIGTERM; ends with 0, or with 3 when a handler did not stop (P9)."""
    _die_with_the_parent()
    _write_errors_to(options.log)
    os.environ.update({**options.environment, VARIABLE: str(options.witness)})
    logs.configure(json=True)
    # A pipe and no event: a handler that interrupts the very `wait` of an event would wait for its lock for ever.
    told, tell = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _step_the_clock_at_signals()
    chosen = settings.load(instance_path=options.instance, database_url=options.url)
    database = Database(chosen.url, instance_path=chosen.instance_path)
    if options.role == "scheduler":
        scheduler = Scheduler(database)
        scheduler.start()
        note("ready")
        os.read(told, 1)
        scheduler.stop()
        return
    pool = WorkerPool(
        database, chosen, threads=options.threads, timing=options.timing, worker_id=options.worker_id
    )
    pool.start()
    note("ready")
    os.read(told, 1)
    if not pool.stop(options.grace_sec):
        os._exit(UNSTOPPED)  # a thread cannot be ended; the process can
    database.close()


class SteppedDatetime(datetime):
    """This process's wall clock, `shift` away from the machine's. The clock of a PostgreSQL server is not touched."""

    shift: timedelta = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """The time, as a process sees it whose clock was stepped."""
        return datetime.now(tz) + cls.shift


def step_the_clock(shift: timedelta) -> None:
    """Let this process see another wall clock from now on."""
    SteppedDatetime.shift = shift
    clock.datetime = SteppedDatetime  # type: ignore[attr-defined]
    note("clock_stepped", outcome=str(shift), claimed_at=datetime.now(UTC).timestamp())


def _step_the_clock_at_signals() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: step_the_clock(timedelta(hours=1)))
    signal.signal(signal.SIGUSR2, lambda *_: step_the_clock(timedelta(hours=-1)))


def _die_with_the_parent() -> None:
    """Nothing may stay behind when the test is killed; not even a process that is suspended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _write_errors_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    os.close(log)
