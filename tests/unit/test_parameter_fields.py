"""The fields that a handler's parameters get in a form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from pydantic.fields import FieldInfo

from webqueue.web.parameters import ParameterField, _field, fields_of


def test_of_words_the_default_stands_first_because_it_holds_where_nothing_is_stored() -> None:
    field = ParameterField("params.keep", "Keep", "choice", "", False, "b", ("a", "b", "c"))
    assert field.options == [("b", "b"), ("a", "a"), ("c", "c")]


def test_the_kinds_of_the_fields_of_a_request() -> None:
    kinds = {field.name: field.kind for field in fields_of("http", "list")}
    assert kinds["params.method"] == kinds["params.keep"] == "choice"
    assert kinds["params.url"] == "text"
    assert kinds["params.ok_statuses"] == "lines"


@pytest.mark.parametrize(
    ("annotation", "choices"),
    [
        (Literal["a", "b"], ("a", "b")),
        (Annotated[Literal["a", "b"], Field(title="Letter")], ("a", "b")),
        (Literal["a", 1], ()),
        (Literal["a"] | int, ()),
        (Literal["a"] | None, ()),
        (str, ()),
    ],
)
def test_only_words_are_chosen_from(annotation: Any, choices: tuple[str, ...]) -> None:
    assert _field("letter", FieldInfo.from_annotation(annotation)).choices == choices
