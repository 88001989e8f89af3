"""Tests in a browser wait for what they look at.

A press returns when the next page begins to arrive. An `assert` on what the page holds at that moment passes on a quick
machine and fails on a busy one; `expect` asks until it is so.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent.parent / "browser"
# Of Locator and Page, what answers at once.
AT_ONCE: Final = frozenset(
    {
        "all_inner_texts",
        "all_text_contents",
        "get_attribute",
        "inner_html",
        "inner_text",
        "input_value",
        "is_checked",
        "is_disabled",
        "is_enabled",
        "is_hidden",
        "is_visible",
        "text_content",
    }
)


def looks_at_once(source: str) -> list[int]:
    """The lines whose `assert` looks at a page without waiting."""
    return sorted(
        {
            call.lineno
            for statement in ast.walk(ast.parse(source))
            if isinstance(statement, ast.Assert)
            for call in ast.walk(statement.test)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            if call.func.attr in AT_ONCE or _counts_elements(call, call.func)
        }
    )


def _counts_elements(call: ast.Call, method: ast.Attribute) -> bool:
    """Those of texts and lists say what they count; `func.count()` is SQL."""
    of_sql = isinstance(method.value, ast.Name) and method.value.id == "func"
    return method.attr == "count" and not call.args and not of_sql


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_what_a_page_shows_is_waited_for(path: Path) -> None:
    assert looks_at_once(path.read_text(encoding="utf-8")) == []


def test_a_look_that_does_not_wait_is_found() -> None:
    assert looks_at_once(
        "assert page.locator('ins').count() == 1\nassert not page.get_by_text('a').is_visible()"
    ) == [
        1,
        2,
    ]
    assert looks_at_once("assert html.count('<tr') == session.scalar(select(func.count()))") == []
