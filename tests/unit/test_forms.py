"""Forms: what is stored, shown as text and sent back, is what was stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webqueue.web.forms import Form, Reader


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12345.678, "12345.678"),
        (86399.9999, "86399.9999"),
        (1e-05, "0.00001"),
        (1234567.5, "1234567.5"),
        (10.0, "10"),
        (0.0, "0"),
        (100, "100"),
        (2_592_000.0, "2592000"),
    ],
)
def test_a_number_is_written_with_every_digit(number: float, text: str) -> None:
    assert Form.of({"n": number}).values == {"n": text}


@given(st.one_of(st.integers(-(10**15), 10**15), st.floats(-1e15, 1e15)))
@example(5e-324)
@example(-1.7976931348623157e-300)
def test_a_number_comes_back_as_it_was(number: float) -> None:
    reader = Reader(Form.of({"n": number}).values)
    assert reader.number("n") == number
    assert reader.problems == []


@pytest.mark.parametrize(
    "text", ["1e5", "1.", "--1", ".", "1,5", "nan", "inf", "9" * 5000, "0." + "1" * 5000]
)
def test_what_is_no_number(text: str) -> None:
    reader = Reader({"n": text})
    assert reader.number("n") is None
    assert [problem.field for problem in reader.problems] == ["n"]


@given(st.dictionaries(st.sampled_from(["a", "b"]), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_in_json_come_back_as_they_were(data: dict[str, Any]) -> None:
    assert (Reader(Form.of({"kwargs": data}).values).data("kwargs") or {}) == data
