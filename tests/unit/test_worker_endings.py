"""What a run came to, for each reason to stop and each outcome."""

from __future__ import annotations

from typing import Any, cast

import pytest
from sqlalchemy.exc import DataError, IntegrityError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from webqueue import clock
from webqueue.errors import LeaseLostError, NotBuiltError
from webqueue.handlers.protocol import BlockedError, StopRequested
from webqueue.handlers.raised import outcome_of
from webqueue.jobs import Claimed, Lease
from webqueue.models import Target
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome, OutOfTime
from webqueue.worker.endings import HandBack, Nothing, ending_of
from webqueue.worker.refusals import is_refused
from webqueue.worker.runs import Run, Stop

DONE, FAILED, BLOCKED, CANCELLED = Done({"n": 1}), Failed("no"), Blocked("429"), Cancelled({"n": 1})


def run_with(stop: Stop | None, *, told: bool = False, aborted: bool = False) -> Run:
    lease = Lease("key", 1, "aaaaaaaaaaaa", 1, "worker")
    target = Target(code="news", max_runtime_sec=60)
    claimed = Claimed(lease, cast("Any", None), cast("Any", None), target, None, clock.local_now())
    run = Run(claimed, lease_deadline=clock.boot_seconds() + 60)
    if stop is not None:
        run.request_stop(stop)
    run.told, run.aborted = told, aborted
    return run


@pytest.mark.parametrize(
    ("stop", "told", "outcome", "expected"),
    [
        (None, False, DONE, DONE),
        (None, False, FAILED, FAILED),
        (None, False, BLOCKED, BLOCKED),
        (None, False, CANCELLED, CANCELLED),
        (Stop.CANCEL, True, None, Cancelled()),
        (Stop.CANCEL, True, CANCELLED, CANCELLED),
        (Stop.CANCEL, True, DONE, DONE),  # `jobs.finish` lets the stop win, and keeps the result
        (Stop.SHUTDOWN, True, None, HandBack()),
        (Stop.SHUTDOWN, True, CANCELLED, HandBack()),
        (Stop.SHUTDOWN, True, DONE, HandBack()),
        (Stop.SHUTDOWN, False, DONE, DONE),  # it never looked, so it did all of its work
        (Stop.SHUTDOWN, True, FAILED, HandBack()),
        (Stop.SHUTDOWN, False, FAILED, FAILED),
        (Stop.SHUTDOWN, True, BLOCKED, BLOCKED),  # a block is news in any case
        (Stop.LEASE_ENDED, True, None, HandBack()),
        (Stop.LEASE_ENDED, False, DONE, DONE),
        (Stop.TIME_LIMIT, True, None, OutOfTime(60)),
        (Stop.TIME_LIMIT, True, CANCELLED, OutOfTime(60, {"n": 1})),
        (Stop.TIME_LIMIT, True, DONE, OutOfTime(60, {"n": 1})),
        (Stop.TIME_LIMIT, False, DONE, DONE),
        (Stop.TIME_LIMIT, True, FAILED, FAILED),
        (Stop.TIME_LIMIT, True, BLOCKED, BLOCKED),
        (Stop.LEASE_LOST, True, None, Nothing()),
        (Stop.LEASE_LOST, False, DONE, Nothing()),
        (Stop.LEASE_LOST, False, BLOCKED, Nothing()),
    ],
)
def test_endings(stop: Stop | None, told: bool, outcome: Outcome | None, expected: object) -> None:
    assert ending_of(run_with(stop, told=told), outcome) == expected


@pytest.mark.parametrize(
    ("stop", "expected"), [(Stop.SHUTDOWN, HandBack()), (Stop.TIME_LIMIT, OutOfTime(60, {}))]
)
def test_a_failure_after_the_request_was_cut_off_is_the_stops_doing(stop: Stop, expected: object) -> None:
    assert ending_of(run_with(stop, aborted=True), FAILED) == expected


def test_a_handler_that_stops_unasked_has_made_a_mistake() -> None:
    ending = ending_of(run_with(None), None)
    assert isinstance(ending, Failed)
    assert "nobody had asked" in ending.error


def test_the_first_stop_stays_but_a_lost_lease_outdoes_it() -> None:
    run = run_with(Stop.CANCEL)
    assert not run.request_stop(Stop.SHUTDOWN)
    stops = [run.stop]
    run.request_stop(Stop.LEASE_LOST)
    assert [*stops, run.stop] == [Stop.CANCEL, Stop.LEASE_LOST]


def test_a_run_past_its_deadline_stops_by_itself_and_may_send_nothing() -> None:
    run = run_with(None)
    run.check_lease()
    run.lease_deadline = clock.boot_seconds() - 0.001
    with pytest.raises(LeaseLostError):
        run.check_lease()
    assert run.stop is Stop.LEASE_ENDED


def test_exceptions_become_outcomes() -> None:
    assert outcome_of(StopRequested()) is None
    assert outcome_of(LeaseLostError("aaaaaaaaaaaa")) is None
    assert outcome_of(NotBuiltError("not built yet")) == Failed("not built yet")
    blocked = outcome_of(BlockedError("HTTP 429", "http://a/", 7))
    assert blocked == Blocked("HTTP 429", 7, result={"url": "http://a/"})
    with pytest.raises(KeyError) as caught:
        dict[str, int]()["x"]
    failed = outcome_of(caught.value)
    assert isinstance(failed, Failed)
    assert failed.error == "KeyError: 'x'"
    assert failed.result["traceback"].startswith("Traceback")


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (DataError("INSERT", {}, Exception("out of range")), True),
        (IntegrityError("INSERT", {}, Exception("no such key")), True),
        (StatementError("cannot be bound", "INSERT", {}, TypeError("a time without a zone")), True),
        (OverflowError("int too large"), True),
        (OperationalError("INSERT", {}, Exception("the disk is full")), False),
        (PoolTimeoutError("no connection to be had"), False),
        (OSError("no route to host"), False),
    ],
)
def test_what_is_refused_is_told_from_what_may_pass(error: Exception, refused: bool) -> None:
    assert is_refused(error) is refused
