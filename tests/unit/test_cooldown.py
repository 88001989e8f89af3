from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.politeness.cooldown import cooldown_seconds, extended, result_has_host_cooldown

TWO = Decimal(2)
DAY = 86_400


@pytest.mark.parametrize(
    ("base", "retry_after", "blocks", "factor", "seconds"),
    [
        (600, None, 1, TWO, 600),
        (600, None, 2, TWO, 600),
        (600, None, 3, TWO, 1200),
        (600, None, 4, TWO, 2400),
        (600, None, 5, TWO, 4800),
        (600, None, 6, TWO, 7200),
        (600, None, 7, TWO, 7200),
        (600, 10, 1, TWO, 600),
        (10, 30, 1, TWO, 30),
        (10, 30, 3, TWO, 60),
        (600, 7200, 9, TWO, 7200),
        (600, 50_000, 1, TWO, 50_000),
        (600, 50_000, 9, TWO, 50_000),
        (600, 10**9, 1, TWO, DAY),
        (9000, None, 9, TWO, 9000),
        (100_000, None, 1, TWO, 100_000),
        (600, None, 100, Decimal(1), 600),
        (600, None, 100, Decimal("0.5"), 600),
        (600, None, 3, Decimal("1.1"), 660),
        (50, None, 3, Decimal("1.1"), 55),
        (601, None, 3, Decimal("1.5"), 902),
        (600, None, 10**6, TWO, 7200),
        (1, None, 10**6, Decimal("1.0000001"), 2),
        (600, None, 10**18, Decimal("1E+500000"), 7200),
        (0, None, 10**6, TWO, 0),
        (0, 5, 3, TWO, 10),
        (-5, -7, 3, TWO, 0),
        (600, 0, 0, TWO, 600),
    ],
)
def test_lengths(base: int, retry_after: int | None, blocks: int, factor: Decimal, seconds: int) -> None:
    found = cooldown_seconds(base_sec=base, retry_after=retry_after, consecutive_blocks=blocks, factor=factor)
    assert found == seconds
    assert type(found) is int


@given(
    base=st.integers(0, 100_000),
    retry_after=st.none() | st.integers(0, 200_000),
    blocks=st.integers(0, 10**9),
    factor=st.decimals("0.1", 100, places=4),
    ceiling=st.integers(1, 20_000),
)
def test_never_shorter_than_asked_and_never_shorter_than_the_block_before(
    base: int, retry_after: int | None, blocks: int, factor: Decimal, ceiling: int
) -> None:
    def length(number: int) -> int:
        return cooldown_seconds(
            base_sec=base,
            retry_after=retry_after,
            consecutive_blocks=number,
            factor=factor,
            ceiling_sec=ceiling,
        )

    asked = max(base, min(retry_after or 0, DAY))
    assert asked <= length(blocks) <= max(asked, ceiling)
    assert length(blocks) <= length(blocks + 1)
    assert length(1) == length(2) == asked


def test_a_running_cooldown_is_never_shortened() -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    later = now + timedelta(seconds=1)
    assert extended(None, now) == now
    assert extended(now, later) == later
    assert extended(later, now) == later


def _deep(depth: int, inner: Any) -> Any:
    for number in range(depth):
        inner = [inner] if number % 2 else {"deeper": inner}
    return inner


@pytest.mark.parametrize(
    ("value", "has"),
    [
        ("host_cooldown: www.example.org", True),
        ("aborted (host_cooldown:www.example.org, 600 s)", True),
        ("host_cooldown", False),
        ("Host_Cooldown:", False),
        ("", False),
        (None, False),
        (17, False),
        (b"host_cooldown:", False),
        ({"status": "aborted", "errors": [{"message": "host_cooldown:x"}]}, True),
        ({"host_cooldown:x": 1}, True),
        ({("a", "host_cooldown:x"): 1}, True),
        (["a", ("b", {"c": ["host_cooldown:x"]})], True),
        ({"a"} | {"host_cooldown:x"}, True),
        ([[[]], {}, (), {"a": None, "b": 1.5}], False),
        (_deep(100_000, "host_cooldown:x"), True),
        (_deep(100_000, "nothing"), False),
    ],
    ids=range(16),
)
def test_host_cooldown_in_a_result(value: object, has: bool) -> None:
    assert result_has_host_cooldown(value) is has


def test_cyclic_results_end() -> None:
    cycle: dict[str, object] = {"a": 1}
    cycle["self"] = [cycle, (cycle,)]
    assert not result_has_host_cooldown(cycle)
    cycle["last"] = "host_cooldown:x"
    assert result_has_host_cooldown(cycle)


def test_a_container_that_hangs_in_many_places_is_walked_once() -> None:
    shared: list[object] = ["x"]
    for _ in range(200):
        shared = [shared, shared]
    assert not result_has_host_cooldown(shared)
