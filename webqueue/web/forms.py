"""Forms: between what a browser sends and the plain data of the import file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from webqueue.errors import InvalidInputError, Problem
from webqueue.queries.numbers import written
from webqueue.web.languages import gettext, told

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
# The smallest number that a computer knows has some 340 digits behind its point.
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,30}|[0-9]{0,30}\.[0-9]{1,400})")
_PART: Final = re.compile(r"\[(\d+)\]")


@dataclass
class Form:
    """The texts of a form's fields, and what is wrong with them, by dotted field name."""

    values: dict[str, Any]
    errors: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def sent(cls, values: Mapping[str, str]) -> Form:
        """What a browser sent."""
        return cls({name: value for name, value in values.items() if name != "csrf_token"})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Form:
        """The stored values, as texts."""
        return cls({name: as_text(value) for name, value in flat(data)})

    @property
    def other_errors(self) -> list[str]:
        """What is wrong with fields that the form does not show."""
        return [
            gettext("%(field)s: %(problem)s", field=name, problem=gettext("; ").join(said))
            for name, said in self.errors.items()
            if name not in self.shown
        ]

    shown: set[str] = field(default_factory=set)

    def refuse(self, error: InvalidInputError) -> None:
        """Note every problem at its field; one within a list or mapping at the whole of it."""
        for problem in error.problems:
            name = _PART.sub("", problem.field)
            while name and self.shown and name not in self.shown and "." in name:
                shorter = name.rpartition(".")[0]
                if shorter not in self.shown:
                    break
                name = shorter
            self.errors.setdefault(name, []).append(told(problem.message))


def flat(data: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """The fields of a site or target with dotted names; free mappings (headers, kwargs) stay whole."""
    for name, value in data.items():
        dotted = f"{before}{name}"
        if isinstance(value, Mapping) and dotted in {"http", "retry", "params"}:
            yield from flat(value, f"{dotted}.")
        else:
            yield dotted, value


def as_text(value: Any) -> Any:
    """A stored value as the text of a field; True and False stay, for check boxes."""
    if value is None or isinstance(value, bool):
        return "" if value is None else value
    if isinstance(value, list | tuple) and all(
        isinstance(item, str | int) and not isinstance(item, bool) for item in value
    ):
        return "\n".join(str(item) for item in value)
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, indent=2)
    return written(value) if isinstance(value, float) else str(value)


def header_lines(headers: Mapping[str, str]) -> str:
    """Headers as a form shows them, one `Name: value` a line."""
    return "\n".join(f"{name}: {value}" for name, value in headers.items())


class Reader:
    """Reads typed values out of texts, and collects what cannot be read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.problems: list[Problem] = []

    def text(self, name: str) -> str:
        return str(self._values.get(name, "")).strip()

    def optional(self, name: str) -> str | None:
        return self.text(name) or None

    def block(self, name: str) -> str:
        """Several lines, as browsers send them, with the line ends of everybody else."""
        return str(self._values.get(name, "")).replace("\r\n", "\n").strip()

    def checked(self, name: str) -> bool:
        return bool(self._values.get(name))

    def number(self, name: str) -> int | float | None:
        text = self.text(name)
        if not text:
            return None
        if _WHOLE.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return float(text)
        self.problems.append(Problem(name, gettext("is not a number")))
        return None

    def lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.block(name).splitlines() if line.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """Lines such as `Accept-Language: zh-CN`."""
        found: dict[str, str] = {}
        for line in self.lines(name):
            key, colon, value = line.partition(":")
            if not colon:
                self.problems.append(
                    Problem(name, gettext("%(line)s has no colon; write Name: value", line=repr(line[:60])))
                )
            found[key.strip()] = value.strip()
        return found

    def data(self, name: str) -> Any:
        """JSON; nothing for an empty field."""
        text = self.block(name)
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError as error:
            self.problems.append(Problem(name, gettext("is no JSON: %(error)s", error=error)))
            return None

    def raise_problems(self) -> None:
        """Raises InvalidInputError when something could not be read."""
        if self.problems:
            raise InvalidInputError(self.problems)

    @contextmanager
    def all_problems(self) -> Iterator[None]:
        """Stores nothing, and tells all problems in one answer: what could not be read, and what the rest is refused for.

        It goes around the storing, within the transaction.

        Raises:
            InvalidInputError: with both kinds of problems.
        """
        try:
            yield
        except InvalidInputError as error:
            unreadable = {problem.field for problem in self.problems}
            others = [problem for problem in error.problems if problem.field not in unreadable]
            raise InvalidInputError([*self.problems, *others]) from error
        self.raise_problems()


def without_nothing(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that were left empty, so that they get their defaults."""
    return {name: value for name, value in data.items() if value is not None}
