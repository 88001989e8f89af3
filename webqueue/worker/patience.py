"""Waiting for a database, or a disk, that is away for a while: a handler waits with it as long as its lease holds."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from webqueue import logs
from webqueue.handlers.protocol import StopRequested
from webqueue.worker.runs import Run

log = logs.get(__name__)
T = TypeVar("T")

# Between two tries, in seconds, from the first to the longest.
_FIRST_PAUSE_SEC: Final = 0.1
_LONGEST_PAUSE_SEC: Final = 2.0
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def patiently(run: Run, do: Callable[[], T]) -> T:
    """What `do` returns, which is tried until the database can, or until the run has to stop.

    A server that restarts, or a disk that is full, is no fault of the job: were the error the handler's, the job would
    fail by it. While the database is away nobody renews the lease either, so that the waiting ends with the lease, and
    the job is handed back with its checkpoint.

    Raises:
        StopRequested: the run has to stop; it was not done, or nobody knows.
        DBAPIError: what the database refuses however often it is asked.
        OSError: other than a disk without room.
    """
    pause = _FIRST_PAUSE_SEC
    while True:
        try:
            return do()
        except (DBAPIError, PoolTimeoutError, OSError) as error:
            if not _may_pass(error):
                raise
            if run.should_stop():
                raise StopRequested from error
            log.warning(
                "the handler waits for the database or the disk",
                job=run.lease.job_id,
                rate_key=run.lease.rate_key,
                worker=run.lease.worker_id,
                error=str(error.orig if isinstance(error, DBAPIError) else error),
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SEC)


def _may_pass(error: DBAPIError | PoolTimeoutError | OSError) -> bool:
    if isinstance(error, PoolTimeoutError):
        return True  # this process has more threads than connections, and all of them are in use
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
