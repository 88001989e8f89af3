"""What pydantic found wrong, in words for the person who wrote the field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ValidationError

from webqueue.config.yaml_text import Found, Path
from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.numbers import written
from webqueue.sentences import Sentence, message, said, say

_KINDS: Mapping[type, str] = {
    bool: say("true or false"),
    int: say("a number"),
    float: say("a number"),
    str: say("text"),
    list: say("a list"),
    dict: say("a mapping"),
    type(None): say("empty (null)"),
}


def found_problems(error: ValidationError, model: type[BaseModel]) -> list[Found]:
    """One entry for every field that pydantic refused, with its path within the object."""
    found = []
    for detail in error.errors(include_url=False):
        path = tuple(part for part in detail["loc"] if part != "[key]")
        found.append(Found(path, _message(detail, path, model)))
    return found


@contextmanager
def one_of_many(code: str) -> Iterator[None]:
    """Let the problems of an object that changes together with others name it. Raises InvalidInputError."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(
            [
                Problem(problem.field, say("%(value)s (%(code)s)", value=problem.message, code=code))
                for problem in error.problems
            ]
        ) from None


def _message(detail: Any, path: Path, model: type[BaseModel]) -> str:
    kind: str = detail["type"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_field(str(path[-1]), _fields_at(model, path[:-1]))
    if kind in _BOUNDS:
        return say(_BOUNDS[kind], limit=written(next(iter(context.values()))), value=_shown(detail["input"]))
    if kind in _WORDS:
        return _WORDS[kind](detail["input"])
    if kind == "literal_error":
        return say(
            "must be one of %(known)s, not %(value)s",
            known=context["expected"].replace(" or ", ", "),
            value=_shown(detail["input"]),
        )
    if kind in _TOO_LONG:
        return say(_TOO_LONG[kind], most=context["max_length"])
    error = context.get("error")
    return said(error) if isinstance(error, Exception) else str(detail["msg"])


def unknown_field(name: str, known: list[str]) -> str:
    """That there is no such field, and which one may have been meant."""
    near = difflib.get_close_matches(name, known, n=1)
    return (
        say("is no field here; did you mean %(near)s?", near=near[0])
        if near
        else say("is no field here; there are %(known)s", known=", ".join(known))
    )


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


_PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?|yes|no|on|off|true|false|null", re.IGNORECASE)


def _text_wanted(value: Any) -> str:
    if isinstance(value, bool):
        return say(
            "must be text; yes, no, on, off, true and false mean true or false: put the text in quotes"
        )
    if isinstance(value, int | float):
        return say('must be text, not a number: put it in quotes, "%(value)s"', value=value)
    return say("must be %(wanted)s, not %(value)s", wanted=say("text"), value=kind_of(value))


def _wanted(what: Sentence) -> Callable[[Any], str]:
    def told(value: Any) -> str:
        if isinstance(value, str):
            # In quotes, when it would be right without them.
            written = say("text in quotes") if _PLAIN.fullmatch(value) else repr(value[:60])
            return say("must be %(wanted)s, not %(value)s", wanted=what, value=written)
        return say("must be %(wanted)s, not %(value)s", wanted=what, value=kind_of(value))

    return told


_TOO_LONG = {
    "string_too_long": message("has more than %(most)s characters"),
    "too_long": message("has more than %(most)s entries"),
}
_BOUNDS = {
    "greater_than_equal": message("must be at least %(limit)s, not %(value)s"),
    "greater_than": message("must be more than %(limit)s, not %(value)s"),
    "less_than_equal": message("must be at most %(limit)s, not %(value)s"),
    "less_than": message("must be less than %(limit)s, not %(value)s"),
}
_WORDS: Mapping[str, Callable[[Any], str]] = {
    "missing": lambda _value: say("is missing"),
    "string_type": _text_wanted,
    "bool_type": _wanted(say("true or false")),
    "int_type": _wanted(say("a whole number")),
    "int_from_float": lambda value: say("must be a whole number, not %(value)s", value=value),
    "float_type": _wanted(say("a number")),
    "finite_number": lambda _value: say("must be a finite number"),
    "list_type": _wanted(say("a list")),
    "dict_type": _wanted(say("a mapping")),
    "model_type": _wanted(say("a mapping")),
    "datetime_type": _wanted(say("a time such as 2026-01-31T03:00:00+08:00")),
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
