"""English sentences that can be said in another language later.

What is refused, and why a job waits, is told by layers that know no browser: the API, the commands and the logs get these
texts as they are, in English. Pages say them again in the language of their reader (`webqueue.web.languages.told`), for
which a text keeps what it was made of. `make messages` collects the first argument of `say`, and both of `say_some`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Self


class Sentence(str):
    """An English text, and what it was made of.

    Attributes:
        message: with placeholders such as `%(job)s`; the id in the catalogs.
        plural: the same for more than one, empty where the number does not matter.
        number: that chooses between both.
        values: of the placeholders; one may be a Sentence itself.
    """

    __slots__ = ("message", "number", "plural", "values")

    message: str
    plural: str
    number: int
    values: Mapping[str, object]

    def __new__(
        cls,
        text: str,
        message: str = "",
        plural: str = "",
        number: int = 1,
        values: Mapping[str, object] | None = None,
    ) -> Self:
        made = super().__new__(cls, text)
        made.message, made.plural, made.number = message or text, plural, number
        made.values = values or {}
        return made


def message(text: str) -> str:
    """`text` itself: marks a message with placeholders for the catalogs, where its values are not known yet."""
    return text


def say(message: str, /, **values: object) -> Sentence:
    """`message` with `values` in place of its placeholders; without values it is taken as it is."""
    return Sentence(message % values if values else message, message, values=values)


def say_some(one: str, many: str, number: int, /, **values: object) -> Sentence:
    """`one` or `many`, as `number` wants it; `%(count)s` is the number, with commas between thousands."""
    values = {"count": f"{number:,}", **values}
    return Sentence((one if number == 1 else many) % values, one, many, number, values)


def recalled(text: str, messages: Iterable[str]) -> str:
    """A stored text as the Sentence of the first of `messages` that it fits; where it fits none, as it is.

    A value holds no comma followed by a space: what else somebody added to a message is no value of it.
    """
    for one in messages:
        found = _pattern(one).fullmatch(text)
        if found:
            return Sentence(text, one, values=found.groupdict())
    return text


@cache
def _pattern(message: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", message)
    texts, names = map(re.escape, pieces[::2]), [rf"(?P<{name}>(?:(?!, ).)+?)" for name in pieces[1::2]]
    return re.compile("".join(part for pair in zip(texts, [*names, ""], strict=True) for part in pair))


def said(error: BaseException) -> str:
    """The text of an error: the Sentence that it was raised with, where it was."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, Sentence) else str(error)
