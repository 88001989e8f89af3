"""Loops: they sleep interruptibly, and one failing round never ends them."""

from __future__ import annotations

import threading

import pytest

from tests.helpers.waiting import wait_until
from webqueue import loops
from webqueue.loops import Loop


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_SEC", 0.001)


def test_a_round_that_fails_is_told_and_tried_again() -> None:
    rounds: list[int] = []
    go_on = threading.Event()

    def do_round() -> float:
        rounds.append(1)
        if len(rounds) <= 2 or not go_on.is_set():
            raise OSError("the disk is full")
        return 0.01

    loop = Loop("test", do_round)
    loop.start()
    wait_until(lambda: loop.problem == "test: OSError: the disk is full")
    go_on.set()
    wait_until(lambda: loop.problem is None)
    assert loop.running
    loop.stop()
    assert loop.join(5)
    assert len(rounds) > 2


def test_a_sleeping_loop_stops_at_once() -> None:
    slept = threading.Event()

    def do_round() -> float:
        slept.set()
        return 3600

    loop = Loop("test", do_round)
    loop.start()
    assert slept.wait(5)
    loop.stop()
    assert loop.join(5)


def test_a_failing_loop_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_SEC", 3600.0)

    def do_round() -> float:
        raise OSError("no")

    loop = Loop("test", do_round, longest_backoff_sec=3600)
    loop.start()
    wait_until(lambda: loop.problem is not None)
    loop.stop()
    assert loop.join(5)


def test_pauses_after_failures_grow_up_to_the_longest() -> None:
    loop = Loop("test", lambda: 0, longest_backoff_sec=0.01)
    pauses = []
    for failures in range(1, 8):
        loop._failures = failures
        pauses.append(loop._backoff())
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01, 0.01]
