"""The interval between two requests: how it grows after a block, shrinks after clean runs, and which one
holds.

Everything is reckoned in exact decimals: in binary floats 50 × 1.1 is a little over 55, and its ceiling 56.
(DESIGN §6 "Interval growth" and "When".)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

DEFAULT_INTERVAL_SEC = 10
MAX_INTERVAL_SEC = 600
GROWTH_FACTOR = Decimal("1.1")
MAX_CRAWL_DELAY_SEC = 300
CLEAN_RUNS_BEFORE_SHRINKING = 3


OWN = "interval"
LEARNED = "learned"
CRAWL_DELAY = "crawl_delay"


@dataclass(frozen=True)
class InForce:
    """An interval in seconds, and why it is that long: `interval` (the target's own), `learned`, `crawl_delay`."""

    seconds: float
    cause: str


@dataclass(frozen=True)
class Growth:
    """An interval after growing, in seconds; `max_reached` = it was at or above the maximum and stays."""

    new: Decimal
    status: Literal["updated", "max_reached"]

    @property
    def seconds(self) -> int | float:
        """`new` as a number for JSON and for the database: whole seconds as an int."""
        return _plain(self.new)


@dataclass(frozen=True)
class Shrinkage:
    """An interval after shrinking, in seconds; `baseline_reached` = there was nothing left to shrink."""

    new: Decimal
    status: Literal["updated", "baseline_reached"]

    @property
    def seconds(self) -> int | float:
        """`new` as a number for JSON and for the database: whole seconds as an int."""
        return _plain(self.new)


def grow(
    base: float | Decimal | None,
    *,
    factor: Decimal = GROWTH_FACTOR,
    maximum: float | Decimal = MAX_INTERVAL_SEC,
) -> Growth:
    """min(max, max(base + 1, ceil(base × factor))), from 10 s where none is set (None, 0 or less).

    At or above the maximum the interval stays as it is, and is not cut. Raises ValueError for what is no
    number.
    """
    start = _exact(base) if base is not None else Decimal(0)
    if start <= 0:
        start = Decimal(DEFAULT_INTERVAL_SEC)
    limit = _exact(maximum)
    if start >= limit:
        return Growth(start, "max_reached")
    grown = max(start + 1, (start * factor).to_integral_value(ROUND_CEILING))
    return Growth(min(limit, grown), "updated")


def shrink(current: float | Decimal, baseline: float | Decimal, factor: Decimal = GROWTH_FACTOR) -> Shrinkage:
    """max(baseline, min(current − 1, floor(current ÷ factor))): growth run backwards, down to the file's
    interval.

    At or below the baseline the baseline is the answer. Raises ValueError for what is no number.
    """
    start, floor = _exact(current), _exact(baseline)
    if start <= floor:
        return Shrinkage(floor, "baseline_reached")
    smaller = min(start - 1, (start / factor).to_integral_value(ROUND_FLOOR))
    return Shrinkage(max(floor, smaller), "updated")


def winning_interval(
    target_interval: float | Decimal | None,
    learned: float | Decimal | None,
    crawl_delay: float | Decimal | None,
) -> InForce:
    """The interval in force, and which one it is; see `interval_in_force`. Of equal ones the first named wins."""
    seconds = interval_in_force(target_interval, learned, crawl_delay)
    if seconds <= interval_in_force(target_interval, None, None):
        return InForce(seconds, OWN)
    return InForce(seconds, LEARNED if seconds <= interval_in_force(0, learned, None) else CRAWL_DELAY)


def interval_in_force(
    target_interval: float | Decimal | None,
    learned: float | Decimal | None,
    crawl_delay: float | Decimal | None,
) -> float:
    """The largest of the target's interval (10 s if None), the learned one and robots.txt's Crawl-delay, in
    seconds.

    A Crawl-delay counts up to 300 s: one mistyped line of somebody's robots.txt must not stop a target for
    days. Raises ValueError for what is no number.
    """
    own = _exact(DEFAULT_INTERVAL_SEC if target_interval is None else target_interval)
    candidates = [Decimal(0), own]
    if learned is not None:
        candidates.append(_exact(learned))
    if crawl_delay is not None:
        candidates.append(min(_exact(crawl_delay), Decimal(MAX_CRAWL_DELAY_SEC)))
    return float(max(candidates))


def _exact(value: float | Decimal) -> Decimal:
    number = value if isinstance(value, Decimal) else Decimal(str(value))  # str: 0.1 means a tenth
    if not number.is_finite():
        raise ValueError(f"an interval must be a finite number of seconds, not {value}")
    return number


def _plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
