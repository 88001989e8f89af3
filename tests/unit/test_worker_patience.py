"""What a handler waits for, and what fails it."""

from __future__ import annotations

import errno
from typing import Any, cast

import pytest
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from webqueue import clock
from webqueue.handlers.protocol import StopRequested
from webqueue.jobs import Claimed, Lease
from webqueue.models import Target
from webqueue.worker.patience import patiently
from webqueue.worker.runs import Run, Stop

AWAY = OperationalError("SELECT 1", {}, Exception("server closed the connection"))
NO_CONNECTION_FREE = PoolTimeoutError("QueuePool limit of size 10 overflow 10 reached")
NO_ROOM = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def run() -> Run:
    lease = Lease("key", 1, "aaaaaaaaaaaa", 1, "worker")
    target = Target(code="news", max_runtime_sec=60)
    claimed = Claimed(lease, cast("Any", None), cast("Any", None), target, None, clock.local_now())
    return Run(claimed, lease_deadline=clock.boot_seconds() + 60)


@pytest.mark.parametrize("error", [AWAY, NO_CONNECTION_FREE, NO_ROOM], ids=["away", "pool", "disk"])
def test_what_passes_is_tried_again(run: Run, error: Exception) -> None:
    failures = [error]

    def do() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert patiently(run, do) == "done"


@pytest.mark.parametrize(
    "error", [DataError("", {}, Exception()), PermissionError(errno.EACCES, "no")], ids=["value", "right"]
)
def test_what_stays_wrong_is_the_handlers_error(run: Run, error: Exception) -> None:
    def do() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        patiently(run, do)
    assert raised.value is error


@pytest.mark.parametrize("error", [AWAY, NO_CONNECTION_FREE, NO_ROOM], ids=["away", "pool", "disk"])
def test_a_stop_ends_the_waiting(run: Run, error: Exception) -> None:
    run.request_stop(Stop.SHUTDOWN)

    def do() -> None:
        raise error

    with pytest.raises(StopRequested):
        patiently(run, do)
