"""The fields of a handler's parameters, made from its own model."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from webqueue.errors import WebqueueError
from webqueue.handlers import registry
from webqueue.handlers.protocol import Parameters
from webqueue.sentences import Sentence
from webqueue.web.forms import Reader, as_text
from webqueue.web.languages import told


@dataclass(frozen=True)
class ParameterField:
    """One field of a form: `kind` is text, choice, number, check, lines or data (JSON)."""

    name: str
    label: str
    kind: str
    hint: str
    required: bool
    default: Any
    choices: tuple[str, ...] = ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """The choices as a form asks for them, under their own names; what holds where nothing is stored comes first."""
        return [(word, word) for word in sorted(self.choices, key=lambda word: word != self.default)]


def model_of(handler: str, adapter: str) -> type[Parameters]:
    """The parameters of a handler for an adapter.

    Raises:
        WebqueueError: there is no such handler, or it does not work with that adapter.
    """
    found = registry.get(handler)
    if isinstance(found, registry.ChoosesParameters):
        return found.parameters_for(adapter)
    return found.parameters


def fields_of(handler: str, adapter: str) -> list[ParameterField]:
    """What the form asks for; empty where there is no such handler, which saving then tells."""
    try:
        model = model_of(handler, adapter)
    except WebqueueError:
        return []
    return [_field(name, info) for name, info in model.model_fields.items()]


def defaults_of(fields: list[ParameterField]) -> dict[str, Any]:
    """The texts of an empty form."""
    return {field.name: as_text(field.default) for field in fields}


def read(
    fields: list[ParameterField], reader: Reader, stored: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The parameters that a form sent; what was left empty gets its default.

    Args:
        stored: what the target has. A default that nobody wrote stays unwritten, so that only what was changed is told
            as a change; None for a new target.
    """
    found: dict[str, Any] = {}
    for field in fields:
        value, name = _read(field, reader), field.name.removeprefix("params.")
        unwritten = stored is not None and name not in stored and value == field.default
        if value is not None and not unwritten:
            found[name] = value
    return found


def _read(field: ParameterField, reader: Reader) -> Any:
    if field.kind == "check":
        return reader.checked(field.name)
    if field.kind == "number":
        return reader.number(field.name)
    if field.kind == "lines":
        return reader.lines(field.name) or None
    if field.kind == "data":
        return reader.data(field.name)
    return reader.optional(field.name)


def _field(name: str, info: FieldInfo) -> ParameterField:
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    return ParameterField(
        name=f"params.{name}",
        label=told(Sentence(info.title or name.replace("_", " ").capitalize().replace("url", "URL"))),
        kind=_kind(info.annotation),
        hint=told(Sentence(info.description or "")),
        required=info.is_required(),
        default=default,
        choices=_choices(info.annotation),
    )


def _kind(annotation: Any) -> str:
    kinds = {_plain(part) for part in _parts(annotation)} - {type(None)}
    if _choices(annotation):
        return "choice"
    if kinds == {bool}:
        return "check"
    if kinds and kinds <= {int, float}:
        return "number"
    if kinds & {list, tuple}:
        return "lines"
    if kinds & {dict, Mapping}:
        return "data"
    return "text"


def _choices(annotation: Any) -> tuple[str, ...]:
    """The words of which one is taken; none where other values are taken too."""
    parts = _parts(annotation)
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    only_words = all(get_origin(part) is Literal for part in parts) and all(
        isinstance(word, str) for word in words
    )
    return tuple(words) if only_words else ()


def _parts(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in {Union, types.UnionType}:
        return tuple(part for inner in get_args(annotation) for part in _parts(inner))
    if hasattr(annotation, "__metadata__"):  # Annotated
        return _parts(annotation.__origin__)
    return (annotation,)


def _plain(annotation: Any) -> Any:
    origin = get_origin(annotation) or annotation
    return dict if isinstance(origin, type) and issubclass(origin, Mapping) else origin
