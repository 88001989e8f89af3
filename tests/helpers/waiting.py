"""Waiting for something to become true, with a deadline: the only place of the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

INTERVAL_SEC = 0.01


def wait_until(
    condition: Callable[[], T], *, timeout: float = 10.0, message: str = "", every: float = INTERVAL_SEC
) -> T:
    """Ask `condition` every 10 ms until its answer is true, and return that answer.

    Args:
        condition: called at least once, and once more after the deadline.
        timeout: seconds.
        message: what was waited for, for the error.
        every: seconds between two questions, where asking costs something.

    Raises:
        AssertionError: it did not become true in time.
    """
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if late:
            what = message or getattr(condition, "__name__", "the condition")
            raise AssertionError(f"Waited {timeout:g} s in vain: {what} (last answer: {value!r})")
        time.sleep(every)
