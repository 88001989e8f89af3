"""What pydantic found wrong, in words for the person who wrote the field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from webqueue.config.yaml_text import Found, Path

_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
    type(None): "empty (null)",
}


def found_problems(error: ValidationError, model: type[BaseModel]) -> list[Found]:
    """One entry for every field that pydantic refused, with its path within the object."""
    found = []
    for detail in error.errors(include_url=False):
        path = tuple(part for part in detail["loc"] if part != "[key]")
        found.append(Found(path, _message(detail, path, model)))
    return found


def _message(detail: Any, path: Path, model: type[BaseModel]) -> str:
    kind: str = detail["type"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_field(str(path[-1]), _fields_at(model, path[:-1]))
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind]} {next(iter(context.values())):g}, not {_shown(detail['input'])}"
    if kind in _WORDS:
        return _WORDS[kind](detail["input"])
    if kind == "literal_error":
        return f"must be one of {context['expected'].replace(' or ', ', ')}, not {_shown(detail['input'])}"
    if kind in _TOO_LONG:
        return f"has more than {context['max_length']} {_TOO_LONG[kind]}"
    return str(detail["msg"]).removeprefix("Value error, ")


def unknown_field(name: str, known: list[str]) -> str:
    """That there is no such field, and which one may have been meant."""
    near = difflib.get_close_matches(name, known, n=1)
    return (
        f"is no field here; did you mean {near[0]}?"
        if near
        else f"is no field here; there are {', '.join(known)}"
    )


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


_PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?|yes|no|on|off|true|false|null", re.IGNORECASE)


def _text_wanted(value: Any) -> str:
    if isinstance(value, bool):
        return "must be text; yes, no, on, off, true and false mean true or false: put the text in quotes"
    if isinstance(value, int | float):
        return f'must be text, not a number: put it in quotes, "{value}"'
    return f"must be text, not {kind_of(value)}"


def _wanted(what: str) -> Callable[[Any], str]:
    def message(value: Any) -> str:
        if isinstance(value, str):
            # In quotes, when it would be right without them.
            return f"must be {what}, not " + (
                "text in quotes" if _PLAIN.fullmatch(value) else f"{value[:60]!r}"
            )
        return f"must be {what}, not {kind_of(value)}"

    return message


_TOO_LONG = {"string_too_long": "characters", "too_long": "entries"}
_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
}
_WORDS: Mapping[str, Callable[[Any], str]] = {
    "missing": lambda _value: "is missing",
    "string_type": _text_wanted,
    "bool_type": _wanted("true or false"),
    "int_type": _wanted("a whole number"),
    "int_from_float": lambda value: f"must be a whole number, not {value}",
    "float_type": _wanted("a number"),
    "finite_number": lambda _value: "must be a finite number",
    "list_type": _wanted("a list"),
    "dict_type": _wanted("a mapping"),
    "model_type": _wanted("a mapping"),
    "datetime_type": _wanted("a time such as 2026-01-31T03:00:00+08:00"),
}


def _fields_at(model: type[BaseModel], path: Path) -> list[str]:
    for part in path:
        annotation = model.model_fields[str(part)].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return sorted(model.model_fields)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
