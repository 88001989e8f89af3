"""A worker process: opens the database, runs a pool, and stops in order at SIGTERM. Arguments: one JSON object."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from tests.acceptance.handlers import note
from webqueue import logs, settings
from webqueue.database import Database
from webqueue.worker import Timing, WorkerPool

UNSTOPPED = 3


def main() -> None:
    """Run until SIGTERM. Ends with 0, or with 3 when a handler did not stop (P9)."""
    options = json.loads(sys.argv[1])
    logs.configure(json=True)
    chosen = settings.load(
        # Disks that fill up are for the database to notice here.
        disk_free_mb=0,
        disk_free_percent=0,
        instance_path=Path(options["instance"]),
        database_url=options["url"],
        allow_private_addresses=True,
    )
    database = Database(chosen.url, instance_path=chosen.instance_path)
    pool = WorkerPool(
        database,
        chosen,
        threads=options["threads"],
        timing=Timing(**options["timing"]),
        worker_id=options["worker_id"],
    )
    # A pipe and no event: a handler that interrupts the very `wait` of an event would wait for its lock for ever.
    told, tell = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
    pool.start()
    note("ready")
    os.read(told, 1)
    note("stopping")
    stopped = pool.stop(options["grace_sec"])
    note("stopped")
    if not stopped:
        # A thread cannot be ended; the process can.
        os._exit(UNSTOPPED)
    database.close()


if __name__ == "__main__":
    main()
