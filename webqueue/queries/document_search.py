"""Search over title, text and address of documents (docs/decisions/0009).

A query is plain text: its words, each to be found somewhere in the document, whatever the case. No sign in it means
anything else.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import URL, ColumnElement, Text, column, func, literal_column, or_, select, table, text
from sqlalchemy.orm import Session

from webqueue.database.types import storable
from webqueue.errors import InvalidInputError
from webqueue.migrations import search_index
from webqueue.migrations.search_index import FTS_TABLE, SEARCHED_CHARACTERS
from webqueue.models import Document
from webqueue.sentences import say

MAX_QUERY: Final = 200  # characters
SHORT_REACH: Final = 20_000
_TRIGRAM: Final = 3
_FEW: Final = 3_000  # hits, of which each text is read once
_KEPT_SEC: Final = 60.0
_MOST_KEPT: Final = 32
_BEFORE, _AFTER = 60, 180
_SPACES: Final = re.compile(r"\s+")

_FTS = table(FTS_TABLE, column("rowid"))


@dataclass(frozen=True)
class _Answer:
    """What the index named; `numbers` is None when they are many, `at` a reading of the monotonic clock."""

    numbers: list[int] | None
    at: float


class _Answers:
    """The last answers of the index, for those who turn pages: it reads each text that it names, up to three thousand.

    What changes within the minute may be missing on further pages; a first page is always new.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[URL, tuple[str, ...]], _Answer] = OrderedDict()

    def get(self, asked: tuple[URL, tuple[str, ...]]) -> _Answer | None:
        """The answer, when it is not old."""
        with self._lock:
            answer = self._kept.get(asked)
        return None if answer is None or time.monotonic() - answer.at > _KEPT_SEC else answer

    def put(self, asked: tuple[URL, tuple[str, ...]], numbers: list[int] | None) -> _Answer:
        """Keep an answer in place of the oldest one."""
        answer = _Answer(numbers, time.monotonic())
        with self._lock:
            self._kept.pop(asked, None)
            self._kept[asked] = answer
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return answer


_answers = _Answers()


@dataclass(frozen=True)
class Search:
    """The words of a query.

    Attributes:
        words: each at least one character, and each once.
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, query: str | None) -> Search:
        """The words of what somebody typed.

        Raises:
            InvalidInputError: it is longer than MAX_QUERY.
        """
        query = storable(query or "")
        if len(query) > MAX_QUERY:
            raise InvalidInputError.of(
                "q",
                say(
                    "has %(count)s characters; a search takes %(max_query)s.",
                    count=len(query),
                    max_query=MAX_QUERY,
                ),
            )
        return cls(tuple(dict.fromkeys(query.split())))

    @property
    def has_short_words(self) -> bool:
        """Whether a word is shorter than the index can find."""
        return any(len(word) < _TRIGRAM for word in self.words)


@dataclass(frozen=True)
class Piece:
    """A piece of a snippet; `hit` marks what was searched for."""

    text: str
    hit: bool = False


@dataclass(frozen=True)
class SearchState:
    """Whether documents are searched by an index, and what to do where they are not."""

    indexed: bool
    message: str


def state(session: Session) -> SearchState:
    """How documents are searched in this database."""
    if not search_index.exists(session.connection()):
        if session.get_bind().dialect.name == "sqlite":
            advice = say("this SQLite has no FTS5 with trigrams (3.34 or newer has)")
        else:
            advice = say(
                "let a superuser run CREATE EXTENSION pg_trgm in this database, then run webqueue db upgrade"
            )
        return SearchState(
            False, say("Documents are searched without an index, slowly: %(advice)s.", advice=advice)
        )
    if session.get_bind().dialect.name == "postgresql" and not _knows_all_letters(session):
        return SearchState(
            False,
            say(
                "The search index knows no Chinese, because this database's locale is C: such words are "
                "found, but "
                "slowly. Make the database with the locale C.UTF-8 or any other of UTF-8."
            ),
        )
    return SearchState(True, "")


def conditions(session: Session, search: Search, *, goes_on: bool = False) -> list[ColumnElement[bool]]:
    """What a document has to fulfil to be found, in the form that this database answers quickly.

    PostgreSQL's planner does not know what it costs to read long texts. Left to itself it walks through the documents from
    the newest on, since only a page of them is wanted, and for a rare word it reads them all. So the index is asked first;
    where it names few documents, those are the answer. Of a frequent word the newest documents soon fill a page.

    Args:
        session: of the caller's transaction.
        search: what is searched for.
        goes_on: whether it is for a further page: the index is then not asked again if it was a minute ago.
    """
    found = list(_conditions(session, search))
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    if not is_postgresql or search.has_short_words or not search.words:
        return found
    asked = (session.get_bind().engine.url, search.words)
    known = _answers.get(asked) if goes_on else None
    if known is None:
        known = _answers.put(asked, _numbers_by_index(session, found))
    numbers = known.numbers
    return found if numbers is None else [Document.id.in_(numbers)]


def _numbers_by_index(session: Session, found: list[ColumnElement[bool]]) -> list[int] | None:
    """The documents that the index names; None when they are many, or when there is no index."""
    if not search_index.exists(session.connection()):
        return None
    for way in ("enable_seqscan", "enable_indexscan"):
        session.execute(text(f"SET LOCAL {way} = off"))
    numbers = list(session.scalars(select(Document.id).where(*found).limit(_FEW + 1)))
    for way in ("enable_seqscan", "enable_indexscan"):
        session.execute(text(f"SET LOCAL {way} TO DEFAULT"))
    return numbers if len(numbers) <= _FEW else None


def _conditions(session: Session, search: Search) -> Iterator[ColumnElement[bool]]:
    if not search.words:
        return
    by_index = session.get_bind().dialect.name == "sqlite" and search_index.exists(session.connection())
    long_words = [word for word in search.words if len(word) >= _TRIGRAM]
    if by_index and long_words:
        yield Document.id.in_(select(_FTS.c.rowid).where(_fts_match(long_words)))
    for word in search.words:
        if not (by_index and len(word) >= _TRIGRAM):
            yield _contains(session, word)
    if search.has_short_words:
        yield Document.id > _newest(session) - SHORT_REACH


def reaches_all(session: Session, search: Search) -> bool:
    """Whether every document was looked at: short words are looked for in the newest ones only."""
    return not search.has_short_words or _newest(session) <= SHORT_REACH


def snippets(session: Session, search: Search, document_ids: Sequence[int]) -> dict[int, tuple[Piece, ...]]:
    """A short piece of each document's text around the first match, with the matches marked.

    A document that was found by its title or address alone has none.
    """
    if not search.words or not document_ids:
        return {}
    pattern = _pattern(search)
    statement = select(Document.id, func.substr(Document.text, 1, SEARCHED_CHARACTERS)).where(
        Document.id.in_(document_ids)
    )
    found: dict[int, tuple[Piece, ...]] = {}
    for row in session.execute(statement):
        start = str(row[1])
        first = pattern.search(start)
        if first is not None:
            found[int(row[0])] = _around(start, first.start(), pattern)
    return found


def marked(search: Search, text: str) -> tuple[Piece, ...]:
    """A short text with the matches marked; one piece when there is none."""
    return tuple(_pieces(text, _pattern(search))) if search.words else (Piece(text),)


def _fts_match(words: Sequence[str]) -> ColumnElement[bool]:
    """Each word in quotes is a phrase to FTS5, with every operator in it a mere sign."""
    phrases = " AND ".join('"' + word.replace('"', '""') + '"' for word in words)
    return column(FTS_TABLE).op("MATCH", is_comparison=True)(phrases)


def _contains(session: Session, word: str) -> ColumnElement[bool]:
    pattern = f"%{word.replace('/', '//').replace('%', '/%').replace('_', '/_')}%"
    # On PostgreSQL these are the very expressions of the index, the number a literal one.
    searched = (Document.title, Document.url, _start_of_text(session))
    if word.lower() == word.upper():
        # Chinese, say: nothing to be folded, which would cost several times as much.
        return or_(*(part.like(pattern, escape="/") for part in searched))
    return or_(*(part.ilike(pattern, escape="/") for part in searched))


def _start_of_text(session: Session) -> ColumnElement[str]:
    number: ColumnElement[int] = literal_column(str(SEARCHED_CHARACTERS))
    if session.get_bind().dialect.name == "postgresql":
        return func.left(Document.text, number, type_=Text())
    return func.substr(Document.text, 1, number, type_=Text())


def _newest(session: Session) -> int:
    return session.scalar(select(func.max(Document.id))) or 0


def _knows_all_letters(session: Session) -> bool:
    """Whether pg_trgm takes Chinese signs for letters; in the locale C it leaves them out."""
    return bool(session.scalar(select(func.cardinality(func.show_trgm("政府网站")))))


def _pattern(search: Search) -> re.Pattern[str]:
    longest_first = sorted(search.words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)


def _around(text: str, at: int, pattern: re.Pattern[str]) -> tuple[Piece, ...]:
    start, end = max(0, at - _BEFORE), min(len(text), at + _AFTER)
    piece = _SPACES.sub(" ", text[start:end]).strip()
    return tuple(_pieces(f"{'… ' if start else ''}{piece}{' …' if end < len(text) else ''}", pattern))


def _pieces(text: str, pattern: re.Pattern[str]) -> Iterator[Piece]:
    last = 0
    for match in pattern.finditer(text):
        if match.start() > last:
            yield Piece(text[last : match.start()])
        yield Piece(match[0], hit=True)
        last = match.end()
    if last < len(text):
        yield Piece(text[last:])
