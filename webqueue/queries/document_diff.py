"""What changed between two versions of a document, for people to read.

Lines are compared first, then the words (Chinese: the signs) of lines that changed. Everything is bounded: a text may
have a megabyte, and `difflib` is quadratic where texts have little in common. Its `autojunk`
ignores what makes up more than a hundredth of 200 items, in a line of Chinese nearly every sign: it is for the few passages
that would take too long without it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from webqueue.errors import NotFoundError
from webqueue.models import DocumentVersion
from webqueue.queries.numbers import is_number
from webqueue.sentences import say

Op = Literal["same", "ins", "del", "gap"]

CONTEXT_LINES: Final = 2
MAX_LINES: Final = 1_000  # of the part that differs, on each side
MAX_WORDS: Final = 800  # of one changed passage, on each side
MAX_ALL_WORDS: Final = 16_000  # of all changed passages
MAX_SHOWN: Final = 100_000  # characters
# Equal words, each with each, of one changed passage and of all: with many the time is cubic.
_MAX_PAIRS: Final = 50_000
_MAX_ALL_PAIRS: Final = 200_000
_LONG_RUN: Final = 400  # unchanged characters within a line, beyond which the middle is left out
_RUN_ENDS: Final = 120
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\s+|[^\w\s]")


@dataclass(frozen=True)
class Span:
    """A stretch of text: unchanged, added or removed; a `gap` stands for `count` unchanged characters left out."""

    op: Op
    text: str = ""
    count: int = 0


@dataclass(frozen=True)
class Passage:
    """A few lines: unchanged and folded away (`folded` lines), or shown."""

    spans: tuple[Span, ...]
    folded: int = 0


@dataclass(frozen=True)
class Diff:
    """What changed from version `older` to version `newer`.

    Attributes:
        title: the title's spans where it changed, else empty.
        passages: in the order of the text.
        added: how many words (Chinese: signs) were added; `removed` likewise.
        cut: why it is not complete, or not by words; empty when it is.
    """

    older: int
    newer: int
    title: tuple[Span, ...]
    passages: tuple[Passage, ...]
    added: int
    removed: int
    cut: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether title and text are the same."""
        return not self.title and not (self.added or self.removed)


class _Notes:
    """What was left out, each thing once, and how many words may still be compared."""

    def __init__(self) -> None:
        self.told: dict[str, None] = {}
        self.words = MAX_ALL_WORDS
        self.pairs = _MAX_ALL_PAIRS

    def add(self, note: str) -> None:
        self.told[note] = None


def version_diff(session: Session, document_id: int, older: int, newer: int) -> Diff:
    """Compare two versions of a document.

    Raises:
        NotFoundError: one of them does not exist.
    """
    for wanted in (older, newer):
        if not is_number(wanted):
            raise NotFoundError(say("version of document %(number)s", number=document_id), str(wanted))
    statement = (
        select(DocumentVersion)
        .where(DocumentVersion.document_id == document_id, DocumentVersion.version.in_({older, newer}))
        .options(undefer(DocumentVersion.text))
    )
    found = {row.version: row for row in session.scalars(statement)}
    for wanted in (older, newer):
        if wanted not in found:
            raise NotFoundError(say("version of document %(number)s", number=document_id), str(wanted))
    before, after = found[older], found[newer]
    title = tuple(_by_words(before.title, after.title, _Notes())) if before.title != after.title else ()
    return _diff(older, newer, title, before.text, after.text)


def text_diff(before: str, after: str) -> Diff:
    """Compare two texts."""
    return _diff(1, 2, (), before, after)


def _diff(older: int, newer: int, title: tuple[Span, ...], before: str, after: str) -> Diff:
    notes = _Notes()
    passages = tuple(_shortened(_passages(before.splitlines(), after.splitlines(), notes), notes))
    spans = [span for passage in passages for span in passage.spans]
    return Diff(
        older,
        newer,
        title,
        passages,
        added=sum(_count(span.text) for span in spans if span.op == "ins"),
        removed=sum(_count(span.text) for span in spans if span.op == "del"),
        cut=tuple(notes.told),
    )


def _passages(old: list[str], new: list[str], notes: _Notes) -> Iterator[Passage]:
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(old_middle), len(new_middle)) > MAX_LINES:
        notes.add(
            say(
                "The texts differ over more than %(most)s lines; the first %(most)s of each are compared.",
                most=f"{MAX_LINES:,}",
            )
        )
        old_middle, new_middle, end = old_middle[:MAX_LINES], new_middle[:MAX_LINES], 0
    if not old_middle and not new_middle:
        yield from _unchanged(old, at_start=True, at_end=True)
        return
    yield from _unchanged(old[:start], at_start=True, at_end=False)
    for op, i, j, k, m in SequenceMatcher(None, old_middle, new_middle).get_opcodes():
        if op == "equal":
            yield from _unchanged(old_middle[i:j], at_start=False, at_end=False)
        else:
            removed, added = "\n".join(old_middle[i:j]), "\n".join(new_middle[k:m])
            yield Passage(tuple(_by_words(removed, added, notes)))
    yield from _unchanged(old[len(old) - end :] if end else [], at_start=False, at_end=True)


def _unchanged(lines: list[str], *, at_start: bool, at_end: bool) -> Iterator[Passage]:
    """Unchanged lines, of which those next to a change are shown and the rest is folded."""
    if not lines:
        return
    head = 0 if at_start else CONTEXT_LINES
    tail = 0 if at_end else CONTEXT_LINES
    if len(lines) <= head + tail + 1:
        yield Passage((Span("same", "\n".join(lines)),))
        return
    middle = lines[head : len(lines) - tail]
    if head:
        yield Passage((Span("same", "\n".join(lines[:head])),))
    yield Passage((Span("same", "\n".join(middle)),), folded=len(middle))
    if tail:
        yield Passage((Span("same", "\n".join(lines[-tail:])),))


def _by_words(before: str, after: str, notes: _Notes) -> Iterator[Span]:
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    yield from _run(old[:start])
    notes.words -= len(old_middle) + len(new_middle)
    if max(len(old_middle), len(new_middle)) > MAX_WORDS or notes.words < 0:
        notes.add(
            say(
                "Passages that changed over many words are shown whole, once as they were and once as they "
                "are."
            )
        )
        yield from _spans("del", old_middle)
        yield from _spans("ins", new_middle)
    else:
        counts = Counter(new_middle)
        pairs = sum(counts[word] for word in old_middle)
        hurry = pairs > min(_MAX_PAIRS, notes.pairs)
        notes.pairs -= 0 if hurry else pairs
        yield from _changed(old_middle, new_middle, hurry=hurry)
    yield from _run(old[len(old) - end :] if end else [])


def _changed(old: list[str], new: list[str], *, hurry: bool) -> Iterator[Span]:
    """Words that differ at both ends. Where only a space or sign between two changes is the same, they are one change."""
    removed: list[str] = []
    added: list[str] = []
    for op, i, j, k, m in SequenceMatcher(None, old, new, autojunk=hurry).get_opcodes():
        if op == "equal" and any(_is_word(word) for word in old[i:j]):
            yield from _spans("del", removed)
            yield from _spans("ins", added)
            removed, added = [], []
            yield from _run(old[i:j])
        else:
            removed += old[i:j]
            added += new[k:m]
    yield from _spans("del", removed)
    yield from _spans("ins", added)


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _spans(op: Op, words: Sequence[str]) -> Iterator[Span]:
    """A span for each line, so that each line shows its sign."""
    for line in "".join(words).splitlines(keepends=True):
        yield Span(op, line)


def _run(words: Sequence[str]) -> Iterator[Span]:
    text = "".join(words)
    if len(text) <= _LONG_RUN:
        if text:
            yield Span("same", text)
        return
    yield Span("same", text[:_RUN_ENDS])
    yield Span("gap", count=len(text) - 2 * _RUN_ENDS)
    yield Span("same", text[-_RUN_ENDS:])


def _shortened(passages: Iterator[Passage], notes: _Notes) -> Iterator[Passage]:
    """At most MAX_SHOWN characters; folded lines that do not fit are counted, and not sent."""
    left = MAX_SHOWN
    for passage in passages:
        size = sum(len(span.text) for span in passage.spans)
        if size <= left:
            left -= size
            yield passage
        elif passage.folded:
            yield Passage((), passage.folded)
        else:
            notes.add(
                say("Only the first %(most)s characters of the difference are shown.", most=f"{MAX_SHOWN:,}")
            )
            shares = max(1, left // max(1, len(passage.spans)))
            yield Passage(tuple(Span(span.op, span.text[:shares], span.count) for span in passage.spans))
            return


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items at the start are the same."""
    for count, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return count
    return min(len(old), len(new))


def _count(text: str) -> int:
    return sum(1 for word in _WORD.findall(text) if not word.isspace())
