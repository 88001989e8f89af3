"""The YAML of the import file: plain data, lines, and what is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webqueue.config.yaml_text import MAX_CHARACTERS, YamlDocument, read_yaml
from webqueue.errors import InvalidInputError


def problem_of(text: str) -> tuple[int | None, str]:
    with pytest.raises(InvalidInputError) as caught:
        read_yaml(text)
    (problem,) = caught.value.problems
    return problem.line, problem.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("yes", True), ("On", True), ("true", True), ("no", False),
        ("OFF", False), ("'yes'", "yes"), ("5", 5), ("-3", -3), ("1.5", 1.5), ("1.5e+3", 1500.0), ("1e3", "1e3"), ("1.5e3", "1.5e3"), ("0e0", "0e0"), (".5", 0.5),
        ("'5'", "5"), ("0 3 * * *", "0 3 * * *"), ("20:30", "20:30"), ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), ("007", "007"), ("0x10", "0x10"), ("1_000", "1_000"),
        ("新闻", "新闻"), ('"\\u65b0"', "新"), ("!!str 5", "5"), ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)  # fmt: skip
def test_scalars(text: str, value: Any) -> None:
    document = read_yaml(f"x: {text}")
    assert document.data == {"x": value}
    assert type(document.data["x"]) is type(value)
    assert document.problems == []


def test_lines_of_every_field_and_item() -> None:
    document = read_yaml(
        "# a comment\nsites:\n  - code: a\n    http:\n      headers: {A: b,\n        C: d}\n  -\n    code: c\n"
    )
    lines = document.lines
    assert lines["sites",] == 2
    assert lines["sites", 0, "code"] == 3
    assert lines["sites", 0, "http", "headers", "C"] == 6
    assert lines["sites", 1, "code"] == 8
    assert document.line_of(("sites", 0, "http", "proxy")) == 4
    assert document.line_of(("targets", 3)) == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\n\tb: 2\n", 2, "spaces, never tabs"),
        ("a:\n  - x\n  schedule: @daily\n", 3, ""),
        ("a: {b: @daily}\n", 1, "quotes"),
        ("a:\n  schedule: */5 * * * *\n", 2, "goes in quotes"),
        ("a: [1, 2\nb: 3\n", 2, ""),
        ("a: 1\n---\nb: 2\n", 3, "second document"),
        ("a: 1\nb: 'x\x07'\n", 2, "character"),
        ("? [a, b]\n: 1\n", 1, "key that is no text"),
        ("[" * 100, 1, "nested more than"),
        ("a: " + "[" * 100_000, 1, "nest"),
        ("%YAML 9.9\n---\na: 1\n", 1, ""),
    ],
)
def test_what_is_no_yaml_names_the_line(text: str, line: int, words: str) -> None:
    found, message = problem_of(text)
    assert found == line
    assert words in message


def test_a_huge_file_is_refused() -> None:
    assert "Import it in parts" in problem_of("#" * (MAX_CHARACTERS + 1))[1]


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", ("a",), "stands twice (first on line 1)"),
        ("a: &x 1\nb: *x\n", ("b",), "*x repeats another value"),
        ("a: &x {c: 1}\nb:\n  <<: *x\n", ("b", "<<"), "merges"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", ("b",), "tag"),
        ("a: 1\nb: !secret x\n", ("b",), "tag !secret"),
        ("a: .inf\n", ("a",), "finite"),
        ("a: 1.0e+999\n", ("a",), "finite"),
        ("a: .nan\n", ("a",), "finite"),
        ("a: 12345678901234567890\n", ("a",), "digits"),
        ('a: "x\\0y"\n', ("a",), "control characters"),
    ],
)
def test_what_yaml_allows_and_this_file_does_not(text: str, path: tuple[str, ...], words: str) -> None:
    document = read_yaml(text)
    problem = next(problem for problem in document.problems if problem.path == path)
    assert words in problem.message


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
    )
    document = read_yaml(text)
    assert len(document.problems) == 39 * 9


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=("Cs", "Cc"))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=8), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.from_regex(r"[-+.0-9a-fxoeE_:~nul]{1,8}", fullmatch=True))
def test_text_that_looks_like_something_else_stays_text(value: str) -> None:
    document = read_yaml(yaml.safe_dump({"x": value}))
    assert document.data == {"x": value}
    assert isinstance(document.data["x"], str)


@given(values)
def test_what_a_dumper_writes_is_read_back(value: Any) -> None:
    text = yaml.safe_dump({"x": value}, allow_unicode=True)
    document = read_yaml(text)
    assert document.problems == []
    assert _close(document.data, {"x": value})


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InvalidInputError):
        assert isinstance(read_yaml(text), YamlDocument)


def _close(one: Any, other: Any) -> bool:
    if isinstance(other, float):
        return isinstance(one, int | float) and math.isclose(one, other, rel_tol=1e-12)
    if isinstance(other, dict):
        return (
            isinstance(one, dict)
            and one.keys() == other.keys()
            and all(_close(one[k], other[k]) for k in other)
        )
    if isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    return bool(one == other) and type(one) is type(other)
