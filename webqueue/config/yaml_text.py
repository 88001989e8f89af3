"""YAML as the import file needs it: plain data, the line of every field, and nothing that surprises.

The parser's events are read directly, because a composed document has lost what has to be refused: keys that stand
twice, aliases (a few lines of them can stand for millions of values), and tags that name Python objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from webqueue.errors import InvalidInputError

Path = tuple[str | int, ...]

MAX_CHARACTERS: Final = 4_000_000
MAX_DEPTH: Final = 30
MAX_DIGITS: Final = 18

_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_SEQUENCE_TAG: Final = "tag:yaml.org,2002:seq"
_MAPPING_TAG: Final = "tag:yaml.org,2002:map"

_Loader = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # the C parser is ten times as fast, where it is there

# YAML 1.1 without what nobody means: 20:30 is no number of base 60, 2026-01-01 is no date, 010 is not eight.
_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
# A point, and a sign in the exponent: 1e3 is text in YAML 1.1, and what writes YAML does not quote it.
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Found:
    """Something wrong at a path of a document; its line is added where there is one."""

    path: Path
    message: str


@dataclass
class YamlDocument:
    """What a file says.

    Attributes:
        data: mappings, lists, texts, numbers, booleans, None.
        lines: the line (from 1) of every field and every item, by path.
        problems: what YAML allows and this file does not; the values there are None.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Found] = field(default_factory=list)

    def line_of(self, path: Path) -> int:
        """The line of `path`, else of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlDocument:
    """Read one YAML document.

    Raises:
        InvalidInputError: the text is no YAML, or too large; it names the line.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInputError.of(
            "file", f"has {len(text)} characters; allowed are {MAX_CHARACTERS}. Import it in parts."
        )
    if strange := _CONTROL.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise InvalidInputError.of("file", f"contains the character {strange.group()!a}; remove it.", line)
    try:
        return _Reader(yaml.parse(text, Loader=_Loader)).document()
    except yaml.YAMLError as error:
        raise InvalidInputError.of("file", *_syntax_problem(error)) from None


class _Reader:
    """Builds a `YamlDocument` from the parser's events."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._document = YamlDocument()

    def document(self) -> YamlDocument:
        seen = False
        event: Any
        for event in self._events:
            if not isinstance(event, yaml.NodeEvent):
                continue
            if seen:
                message = "has a second document (---); write everything into one."
                raise InvalidInputError.of("file", message, _line(event))
            seen = True
            self._document.lines[()] = _line(event)
            self._document.data = self._value(event, ())
        return self._document

    def _value(self, event: Any, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            raise InvalidInputError.of("file", f"is nested more than {MAX_DEPTH} deep.", _line(event))
        if isinstance(event, yaml.AliasEvent):
            return self._refuse(
                path, f"*{event.anchor} repeats another value; write it out, or use defaults."
            )
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value = self._mapping(path) if is_mapping else self._sequence(path)
        if event.tag not in {None, "!", _MAPPING_TAG if is_mapping else _SEQUENCE_TAG}:
            return self._refuse_tag(event, path)
        return value

    def _mapping(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(event, path, line)
            inner = (*path, key)
            if key in found:
                self._refuse(inner, f"stands twice (first on line {self._document.lines[inner]}).")
                # The value is read, for its own problems, and dropped.
                self._value(next(self._events), inner)
                continue
            self._document.lines[inner] = line
            found[key] = self._value(next(self._events), inner)
        return found

    def _key(self, event: Any, path: Path, line: int) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise InvalidInputError.of(_dotted(path) or "file", "has a key that is no text.", line)
        key: str = event.value
        if key == "<<" and event.implicit[0]:
            self._document.lines.setdefault((*path, key), line)
            self._refuse((*path, key), "merges another mapping; write its fields out, or use defaults.")
        elif _CONTROL.search(key):
            raise InvalidInputError.of(_dotted(path) or "file", "has a key with control characters.", line)
        return key

    def _sequence(self, path: Path) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            inner = (*path, len(found))
            self._document.lines[inner] = _line(event)
            found.append(self._value(event, inner))
        return found

    def _scalar(self, event: Any, path: Path) -> Any:
        text: str = event.value
        if event.tag not in {None, "!", _TEXT_TAG}:
            return self._refuse_tag(event, path)
        if event.tag is not None or not event.implicit[0]:
            if _CONTROL.search(text):
                return self._refuse(path, "contains control characters; remove them.")
            return text
        return _CONSTANTS[text] if text in _CONSTANTS else self._number(text, path)

    def _number(self, text: str, path: Path) -> Any:
        if _INTEGER.fullmatch(text):
            if len(text) > MAX_DIGITS:
                return self._refuse(
                    path, f"is a number of more than {MAX_DIGITS} digits; a text goes in quotes."
                )
            return int(text)
        if _FLOAT.fullmatch(text):
            value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            return value if math.isfinite(value) else self._refuse(path, "must be a finite number.")
        return text

    def _refuse_tag(self, event: Any, path: Path) -> None:
        self._refuse(path, f"has the tag {event.tag}; tags are not supported.")

    def _refuse(self, path: Path, message: str) -> None:
        self._document.problems.append(Found(path, message))


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


def _syntax_problem(error: yaml.YAMLError) -> tuple[str, int | None]:
    """The parser's words, with a hint for what people run into with schedules, and the line."""
    said = str(getattr(error, "problem", None) or error)
    mark = getattr(error, "problem_mark", None)
    context = str(getattr(error, "context", None) or "")
    if "alias" in said + context or "anchor" in said + context:
        said = f'{said}; a value that starts with * or & goes in quotes, such as "*/5 * * * *"'
    elif "cannot start any token" in said or "tab character" in said:
        said = f"{said}; indent with spaces, never tabs, and put a value that starts with @ or % in quotes"
    return f"is no YAML: {said}.", None if mark is None else mark.line + 1


def _dotted(path: Path) -> str:
    """`targets[0].params.item_selector`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
