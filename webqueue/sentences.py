"""English sentences that can be said in another language later.

What is refused, and why a job waits, is told by layers that know no browser: the API, the commands and the logs get these
texts as they are, in English. Pages say them again in the language of their reader (`webqueue.web.languages.told`), for
which a text keeps what it was made of. `make messages` collects the first argument of `say`, and both of `say_some`.

What goes into the database keeps its English alone. It is made with `stored`, whose messages have a context of their own in
the catalogs; whoever reads it wraps it in a `StoredText`, of which `Messages` finds out again what it was made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

# The contexts, in the catalogs, of messages that are stored, and of those that are only parts of them.
STORED: Final = "stored"
PART: Final = "part of stored"


class Sentence(str):
    """An English text, and what it was made of.

    Attributes:
        message: with placeholders such as `%(job)s`; the id in the catalogs.
        plural: the same for more than one, empty where the number does not matter.
        number: that chooses between both.
        values: of the placeholders; one may be a Sentence itself.
        context: of the message in the catalogs.
    """

    __slots__ = ("context", "message", "number", "plural", "values")

    context: str
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
        context: str = "",
    ) -> Self:
        made = super().__new__(cls, text)
        made.message, made.plural, made.number = message or text, plural, number
        made.values, made.context = values or {}, context
        return made


class StoredText(str):
    """An English text from the database: webqueue's own, or what a person, a program or a server wrote."""

    __slots__ = ()


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


def stored(message: str, /, **values: object) -> Sentence:
    """`say`, for a text that goes into the database, so that pages know it again in years.

    The names of the placeholders say what can stand there: see `_SHAPES` and `_MESSAGES`.
    """
    return Sentence(message % values if values else message, message, values=values, context=STORED)


def part(message: str, /, **values: object) -> Sentence:
    """A value of a stored message: too short to be known by itself, where it may be anybody's."""
    return Sentence(message % values if values else message, message, values=values, context=PART)


def part_message(text: str) -> str:
    """`text` itself: `message`, for a part of a stored text."""
    return text


def stored_some(one: str, many: str, number: int, /, **values: object) -> Sentence:
    """`say_some`, for a text that goes into the database."""
    values = {"count": f"{number:,}", **values}
    return Sentence((one if number == 1 else many) % values, one, many, number, values, STORED)


def stored_message(text: str) -> str:
    """`text` itself: `message`, for a text that goes into the database."""
    return text


# What stands in the place of a placeholder of this name; in the others, anything.
_NUMBER: Final = r"[\d.,]+(?:e[+-]?\d+)?"
_SHAPES: Final = {
    **dict.fromkeys(("all", "attempt", "count", "links", "most", "page", "port", "seconds", "status", "without"), _NUMBER),
    "host": r"[^\s,/]+",
    "url": r"\S+",
}  # fmt: skip
# What stands in the place of these is one of the messages itself: around it are too few words to know a message by.
_MESSAGES: Final = frozenset({"advice", "more", "what"})
_PLACEHOLDER: Final = re.compile(r"%\((\w+)\)s")
# A job's error is short; a longer text is somebody else's, and would take its time.
_LONGEST: Final = 5_000
_MOST_TRIES: Final = 1_000
_DEEPEST: Final = 20


class Messages:
    """Messages that stored texts are made of.

    Args:
        messages: each with its plural, empty where it has none, and its context.
    """

    def __init__(self, messages: Iterable[tuple[str, str, str]]) -> None:
        forms = [
            _Form(form, one, many, context)
            for one, many, context in messages
            for form in dict.fromkeys((one, many))
            if form
        ]
        # The narrower before the wider: the first that fits is taken.
        self._forms = sorted(forms, key=lambda form: (-form.own_length, form.text))
        self._whole = [form for form in self._forms if form.context == STORED]

    def made_as(self, text: str) -> Sentence | None:
        """The sentence that a stored text was made as; None where it was made of none of the messages."""
        if len(text) > _LONGEST:
            return None
        # A bound, for texts that somebody else wrote to take long.
        return self._first(self._whole, text, iter(range(_MOST_TRIES)), 0)

    def _first(self, forms: Iterable[_Form], text: str, tries: Iterator[int], depth: int) -> Sentence | None:
        for form in forms:
            values = self._values(form, text, tries, depth)
            if values is not None:
                number = int(re.sub(r"\D", "", str(values.get("count", ""))) or 1)
                return Sentence(text, form.message, form.plural, number, values, form.context)
        return None

    def _values(self, form: _Form, text: str, tries: Iterator[int], depth: int) -> dict[str, str] | None:
        """The values with which a message gives `text`, the first ones as short as can be; None where none do."""
        if not text.startswith(form.pieces[0]) or not text.endswith(form.pieces[-1]):
            return None
        if not form.names:
            return {} if text == form.pieces[0] else None
        found = self._values_from(form, text, len(form.pieces[0]), 0, tries, depth)
        return None if found is None else dict(zip(form.names, found, strict=True))

    def _values_from(
        self, form: _Form, text: str, start: int, place: int, tries: Iterator[int], depth: int
    ) -> list[str] | None:
        """Values of the placeholders from number `place` on, of the text from `start` on."""
        name, piece = form.names[place], form.pieces[place + 1]
        if place == len(form.names) - 1:
            last = self._value(name, text[start : len(text) - len(piece)], tries, depth)
            return None if last is None else [last]
        end = text.find(piece, start + 1)
        while end >= 0:
            value = self._value(name, text[start:end], tries, depth)
            if value is not None:
                rest = self._values_from(form, text, end + len(piece), place + 1, tries, depth)
                if rest is not None:
                    return [value, *rest]
            end = text.find(piece, end + 1) if value is not None or next(tries, None) is not None else -1
        return None

    def _value(self, name: str, text: str, tries: Iterator[int], depth: int) -> str | None:
        """What can stand for the placeholder: a Sentence where it is one; None where it cannot be."""
        if not text or next(tries, None) is None:
            return None
        shape = _SHAPES.get(name)
        if shape is not None:
            return text if re.fullmatch(shape, text) else None
        within = self._first(self._forms, text, tries, depth + 1) if depth < _DEEPEST else None
        return within or (None if name in _MESSAGES else text)


class _Form:
    """A message in one of its numbers, as pieces of text around the names of its placeholders."""

    def __init__(self, text: str, message: str, plural: str, context: str) -> None:
        self.text, self.message, self.plural, self.context = text, message, plural, context
        pieces = _PLACEHOLDER.split(text)
        self.names = pieces[1::2]
        # Without values a percent sign is one (`say`).
        self.pieces = [piece.replace("%%", "%") for piece in pieces[::2]] if self.names else pieces
        self.own_length = sum(map(len, self.pieces))


def said(error: BaseException) -> str:
    """The text of an error: the Sentence that it was raised with, where it was."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, Sentence) else str(error)
