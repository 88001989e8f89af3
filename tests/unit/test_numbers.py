"""Whole numbers that come from outside as texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.queries.numbers import whole


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("7", 7), ("007", 7), ("0" * 5000 + "7", 7), ("10", 10), ("11", None), ("9" * 5000, None)]
    + [(text, None) for text in ("", " 7", "+7", "-7", "7.0", "1_0", "٧", "²", "x", "0x7", "7\n")],
)
def test_a_text_of_digits(text: str, number: int | None) -> None:
    assert whole(text, 0, 10) == number


@given(st.integers(0, 10**20), st.integers(0, 10**20), st.integers(0, 10**20))
def test_what_lies_between_the_bounds(number: int, low: int, high: int) -> None:
    assert whole(str(number), low, high) == (number if low <= number <= high else None)
