"""A worker process: opens the database, runs a pool, and stops in order at SIGTERM."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.handlers import note
from webqueue import logs, settings
from webqueue.database import Database
from webqueue.worker import Timing, WorkerPool

UNSTOPPED = 3
# What a worker imports when a job needs it.
IMPORTED_LATER = (
    "tests.acceptance.handlers",
    "webqueue.handlers.crawl",
    "webqueue.deliveries",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "trafilatura",
)


@dataclass(frozen=True)
class Options:
    """What the process is.

    Attributes:
        url: of the database.
        instance: the instance folder of its machine.
        threads: of the worker.
        timing: of the worker, in seconds.
        worker_id: of the worker.
        grace_sec: for handlers at SIGTERM.
        log: the file for its standard error.
        environment: all of it.
    """

    url: str
    instance: Path
    threads: int
    timing: dict[str, float]
    worker_id: str
    grace_sec: float
    log: Path
    environment: dict[str, str]


def main(options: Options) -> None:
    """Run until SIGTERM. Ends with 0, or with 3 when a handler did not stop (P9)."""
    os.environ.clear()
    os.environ.update(options.environment)
    log = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.dup2(log, 2)
    os.close(log)
    logs.configure(json=True)
    chosen = settings.load(
        # Disks that fill up are for the database to notice here.
        disk_free_mb=0,
        disk_free_percent=0,
        instance_path=options.instance,
        database_url=options.url,
        allow_private_addresses=True,
    )
    database = Database(chosen.url, instance_path=chosen.instance_path)
    pool = WorkerPool(
        database,
        chosen,
        threads=options.threads,
        timing=Timing(**options.timing),
        worker_id=options.worker_id,
    )
    # A pipe and no event: a handler that interrupts the very `wait` of an event would wait for its lock for ever.
    told, tell = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
    pool.start()
    note("ready")
    os.read(told, 1)
    note("stopping")
    stopped = pool.stop(options.grace_sec)
    note("stopped")
    if not stopped:
        # A thread cannot be ended; the process can.
        os._exit(UNSTOPPED)
    database.close()
