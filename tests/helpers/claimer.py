"""Threads and processes that claim jobs, and finish them at once.

What each does is appended to a file, a witness outside the database: a line "key job began ended" a run.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

from sqlalchemy import literal_column, select

from webqueue import jobs
from webqueue.database import Database
from webqueue.models import Job
from webqueue.outcomes import Done

POLICY = jobs.Policy()


def claim_all(database: Database, worker_id: str, witness: Path, errors: list[BaseException]) -> None:
    """Claim and finish until no job waits or runs; errors are kept for whoever started the thread."""
    pause = threading.Event()
    file = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        while _is_open(database):
            claimed = database.run(
                lambda session: jobs.claim(
                    session, worker_id, limit=random.randint(1, 3), life=lambda _worker: jobs.Life.ALIVE
                )
            )
            for one in claimed:
                began = time.monotonic_ns()
                _finish(database, one.lease)
                line = f"{one.lease.rate_key} {one.lease.job_id} {began} {time.monotonic_ns()}\n"
                os.write(file, line.encode())
            if not claimed:
                pause.wait(random.uniform(0.02, 0.05))  # as a worker does that got nothing
    except BaseException as error:  # noqa: BLE001 - told by the caller
        errors.append(error)
    finally:
        os.close(file)


def run(database: Database, threads: int, witness: Path) -> list[BaseException]:
    """Let `threads` threads claim everything; returns what went wrong."""
    errors: list[BaseException] = []
    running = [
        threading.Thread(target=claim_all, args=(database, f"{os.getpid()}-{number}", witness, errors))
        for number in range(threads)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return errors


def _is_open(database: Database) -> bool:
    statement = select(Job.seq).where(
        Job.status.in_([literal_column("'queued'"), literal_column("'running'")])
    )
    with database.reading() as session:
        return session.scalars(statement.limit(1)).first() is not None


def _finish(database: Database, lease: jobs.Lease) -> None:
    database.run(lambda session: jobs.finish(session, lease, Done(), POLICY))


def process(url: str, instance: Path, threads: int, witness: Path) -> None:
    """Body of a process; it ends with an error text when a thread did."""
    database = Database(url, instance_path=instance)
    errors = run(database, threads, witness)
    database.close()
    if errors:
        sys.exit(f"{type(errors[0]).__name__}: {errors[0]}")
