from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.politeness.interval import grow, interval_in_force, shrink

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "interval_growth.jsonl")
    .read_text("utf-8")
    .splitlines()
    if line.strip()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['base']} x {case['factor']}")
@pytest.mark.parametrize("number", [int, float, Decimal])
def test_shared_cases(case: dict[str, Any], number: type) -> None:
    growth = grow(number(case["base"]), factor=Decimal(case["factor"]), maximum=case["max"])
    assert (growth.new, growth.status) == (case["new"], case["status"])
    assert isinstance(growth.new, Decimal)


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (None, 11),
        (0.02, "1.02"),
        (0.1, "1.1"),
        (1.5, "2.5"),
        (10.5, 12),
        (599.5, 600),
        (70, 77),
        (Decimal("9.1"), 11),
    ],
)
def test_growth_of_fractions(base: float | Decimal | None, new: float | str) -> None:
    assert grow(base).new == Decimal(new)


@pytest.mark.parametrize(
    ("current", "baseline", "new", "status"),
    [
        (55, 10, 50, "updated"),
        (11, 10, 10, "updated"),
        (600, 10, 545, "updated"),
        (2, 0, 1, "updated"),
        (12, 11.5, 11.5, "updated"),
        (1.02, 0.02, "0.02", "updated"),
        (0.5, 0, 0, "updated"),
        (10, 10, 10, "baseline_reached"),
        (5, 10, 10, "baseline_reached"),
    ],
)
def test_shrinking(current: float, baseline: float, new: float | str, status: str) -> None:
    shrinkage = shrink(current, baseline)
    assert (shrinkage.new, shrinkage.status) == (Decimal(new), status)


@given(current=st.decimals(0, 700, places=2), baseline=st.decimals(0, 100, places=2))
def test_shrinking_always_arrives_at_the_baseline(current: Decimal, baseline: Decimal) -> None:
    for _ in range(800):
        shrinkage = shrink(current, baseline)
        assert shrinkage.new >= baseline
        if shrinkage.status == "baseline_reached":
            return
        assert shrinkage.new < current
        current = shrinkage.new
    pytest.fail("the interval never arrived")


@given(base=st.decimals("0.01", 700, places=2), factor=st.decimals(1, 5, places=2))
def test_growing_grows_up_to_the_maximum(base: Decimal, factor: Decimal) -> None:
    growth = grow(base, factor=factor)
    if base >= 600:
        assert (growth.new, growth.status) == (base, "max_reached")
    else:
        assert min(base + 1, Decimal(600)) <= growth.new <= 600
        assert growth.new >= min(base * factor, Decimal(600))


def test_numbers_for_json() -> None:
    assert repr(grow(50).seconds) == "55"
    assert repr(grow(0.1).seconds) == "1.1"
    assert repr(shrink(1.02, 0.02).seconds) == "0.02"


@pytest.mark.parametrize(
    ("target", "learned", "crawl_delay", "seconds"),
    [
        (10, None, None, 10.0),
        (0.02, None, None, 0.02),
        (0, None, None, 0.0),
        (None, None, None, 10.0),
        (10, 55, None, 55.0),
        (10, 5, 3, 10.0),
        (0, None, 7.5, 7.5),
        (0, None, 100_000, 300.0),
        (400, None, 100_000, 400.0),
        (0, 350, 100_000, 350.0),
        (-5, None, -1, 0.0),
        (Decimal("0.5"), Decimal("1.1"), None, 1.1),
    ],
)
def test_the_largest_interval_holds(
    target: float | None, learned: float | None, crawl_delay: float | None, seconds: float
) -> None:
    found = interval_in_force(target, learned, crawl_delay)
    assert found == seconds
    assert type(found) is float


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_what_is_no_number_is_refused(value: float | Decimal) -> None:
    with pytest.raises(ValueError, match="finite"):
        grow(value)
    with pytest.raises(ValueError, match="finite"):
        shrink(value, 10)
    with pytest.raises(ValueError, match="finite"):
        interval_in_force(10, value, None)
