"""Texts that are stored in English, and known again by pages of another language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages.mofile import read_mo

from webqueue.models import RateKey
from webqueue.politeness import causes, interval
from webqueue.politeness.reactions import told_interval
from webqueue.sentences import PART, STORED, Messages, Sentence, part, stored, stored_some

PACKAGE = Path(__file__).parents[2] / "webqueue"
CATALOG = PACKAGE / "translations" / "zh" / "LC_MESSAGES" / "messages.mo"


@cache
def kept_messages() -> tuple[tuple[str, str, str], ...]:
    """Every message of stored texts: its forms, and its context."""
    with CATALOG.open("rb") as opened:
        found = [message for message in read_mo(opened) if message.context in {STORED, PART}]
    return tuple((*((m.id, "") if isinstance(m.id, str) else m.id), str(m.context)) for m in found)


@cache
def catalog() -> Messages:
    return Messages(kept_messages())


def made_as(text: str) -> Sentence:
    found = catalog().made_as(text)
    assert found is not None, text
    assert found == text
    return found


# A value of each kind; the values of these are messages themselves.
EXAMPLES = {
    **dict.fromkeys(("all", "attempt", "links", "most", "page", "port", "status", "without"), "7"),
    "count": "3",
    "seconds": "2.5",
    "host": "www.example.org",
    "url": "https://www.example.org/a?b=c",
    "what": "TLS was not agreed on",
    "more": "3 known",
    "advice": "Check the site's proxy.",
}


@pytest.mark.parametrize(("one", "many", "context"), kept_messages())
def test_every_stored_text_is_known_again(one: str, many: str, context: str) -> None:
    for form in filter(None, (one, many)):
        names = re.findall(r"%\((\w+)\)s", form)
        values = {name: EXAMPLES.get(name, f"'the {name}, say'") for name in names}
        text = form % values if names else form
        if context == PART:
            found = made_as(f"The process of the handler {text}.").values["what"]
        else:
            found = made_as(text)
        assert isinstance(found, Sentence)
        assert found.message == one
        assert {name: str(value) for name, value in found.values.items()} == values


def test_a_text_within_a_text_is_known_too() -> None:
    failure = stored(
        "%(url)s: %(what)s (%(count)s tries).",
        url="http://a.example/",
        what=stored("the name %(host)s was not found (%(why)s)", host="a.example", why="Errno -2 (sic)"),
        count=3,
    )
    found = made_as(str(stored("List page %(page)s could not be read: %(why)s", page=1, why=failure)))
    within = found.values["why"]
    assert isinstance(within, Sentence)
    assert within.message == failure.message
    innermost = within.values["what"]
    assert isinstance(innermost, Sentence)
    assert innermost.values == {"host": "a.example", "why": "Errno -2 (sic)"}


def test_a_note_behind_what_a_program_wrote_is_known_and_that_is_not() -> None:
    note = stored("abandoned after %(count)s restart recoveries", count=3)
    found = made_as(str(stored("%(before)s | %(what)s", before="disk full, sorry", what=note)))
    assert found.values["before"] == "disk full, sorry"
    assert not isinstance(found.values["before"], Sentence)
    assert isinstance(found.values["what"], Sentence)


def test_the_number_of_a_text_chooses_its_form_again() -> None:
    one, many = "List page 1 has %(count)s link; usual are", "List page 1 has %(count)s links; usual are"
    known = Messages([(one, many, STORED)])
    for number in (1, 1204):
        found = known.made_as(str(stored_some(one, many, number)))
        assert found is not None
        assert (found.message, found.plural, found.number) == (one, many, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the owner asked",
        "HTTP 429 from a.example, said a proxy",
        "HTTP 429 from a.example\n",
        "http 429 from a.example",
        "HTTP many from a.example",
        "ValueError: something else. And more",
        "https://a.example/: something else.",
        "my host is down",
        "a | b",
        "3 known",
        "3 new, 4 known",
        "running",
        "nothing",
    ],
)
def test_what_somebody_else_wrote_stays(text: str) -> None:
    assert catalog().made_as(text) is None


@pytest.mark.parametrize("piece", [" | ", ": ", ". ", " (", " of ", ", ", "3 new, "])
@pytest.mark.parametrize("start", ["", "https://a.example/: ", "List page 1: 3 links, "])
def test_a_text_that_was_written_to_take_long_comes_to_nothing(start: str, piece: str) -> None:
    assert catalog().made_as((start + piece * 3_000)[:5_000] + "x") is None
    assert catalog().made_as((start + piece * 300)[:1_000] + "x") is None


def test_without_values_a_percent_sign_is_one() -> None:
    known = Messages([("Write %40 for @.", "", STORED), ("100%% of %(count)s", "", STORED)])
    assert known.made_as(str(stored("Write %40 for @."))) is not None
    assert known.made_as(str(stored("100%% of %(count)s", count=3))) is not None


@pytest.mark.parametrize("kind", [interval.OWN, interval.LEARNED, interval.CRAWL_DELAY, None])
def test_the_interval_that_a_gap_is_kept_for_is_known_again(kind: str | None) -> None:
    told = told_interval(RateKey(interval_cause=kind, interval_sec=2.5))
    found = made_as(causes.AFTER_REQUEST % {"interval": told})
    assert isinstance(found.values["interval"], Sentence)


def test_a_part_is_its_english_text() -> None:
    assert part("%(count)s new", count=3) == "3 new"


# What ends up in the database: errors and attention of jobs, lines of their logs, causes, notes of events.
WRITTEN = {
    "Failed": 0,
    "Done": 1,
    "Blocked": 0,
    "FetchError": 2,
    "Failure": 1,
    "ListPageError": 0,
    "NoSitemapError": 0,
    "MalformedError": 0,
    "UndecodableError": 0,
    "EndpointError": 0,
    "Again": 0,
    "unreadable": 3,
    "note_event": 99,
    "keep_gap": 2,
    "JobLog": 99,
}
# Keywords of any call that do so.
FIELDS = {"error_msg", "attention", "nothing", "cause", "message"}
PLACES = ("handlers", "worker", "job_verbs", "politeness", "demo/walk.py", "scheduler.py", "deliveries")
# What stands there for others than readers of pages.
NOT_STORED = {
    "deliveries/alerts.py": "messages to people, in English as everything that leaves the installation",
    "handlers/isolated/wire.py": "what a handler's process does wrong",
    "handlers/lines.py": "behind what a program wrote",
    "politeness/challenges.py": "patterns",
    "politeness/report.py": "a command's",
    "worker/runs.py": "for the log of the process",
    "worker/watching.py": "for the log of the process",
}
# Slips of programmers, names, problems of a process, words within what a handler gave.
NOT_STORED_TEXTS = {
    "The job was asked to stop.",
    "asked to end by SIGTERM",
    "The worker sent no answer.",
    "There is no 0.",
    "a run that only stopped has a reason",
    "a job without a tick is always inserted",
    "the job of the tick was just seen",
    "a key without a request has no figures",
    "entities are not read",
    "another root element",
    "nested too deeply",
    "an integer of 0 bits",
    "0 of 0",
    "forced to stop",
    "Delivery 0 was taken over by another process. Nothing was written.",
    "an interval must be a finite number of seconds, not 0",
    "The evidence of requests cannot be written to 0: 0",
    "only 0 of 0 bytes were taken; the disk may be full",
    "the handler of job 0 is stuck",
    "the scheduler's last round failed: 0: 0",
}
NOT_STORED_CALLS = ("log.", "say", "say_some", "stored", "stored_some", "stored_message", "part", "part_message", "Field",
                    "message", "wrong", "Problem", "InvalidInputError.of", "ConflictError", "NotFoundError", "TypeError",
                    "AssertionError", "RuntimeError", "WebqueueError", "DeliveryLostError", "Loop", "re.compile")  # fmt: skip
WORDS = re.compile(r"[A-Za-z']{2,}[,;:]? [A-Za-z0]{2,}[,;:]? [A-Za-z]{2,}")
SOME_WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z0]|[A-Za-z]{2,}: |0 [A-Za-z]{2,}")


def sources() -> Iterator[Path]:
    for place in PLACES:
        found = PACKAGE / place
        yield from [found] if found.suffix else sorted(found.rglob("*.py"))


@pytest.mark.parametrize("file", list(sources()), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_stored_can_be_translated(file: Path) -> None:
    if str(file.relative_to(PACKAGE)) in NOT_STORED:
        return
    found = [
        f"{file}:{text.lineno}: {ast.unparse(text)}"
        for text in literals(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == [], "write stored(...) of webqueue.sentences, with placeholders, and its Chinese"


def literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Texts of several words that no marker stands around, and any text that is told to a call that stores it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.startswith("log.") or called.removeprefix("self.") in NOT_STORED_CALLS:
                continue
            place = 0 if called.endswith((".log", "_warn", "_tell")) else WRITTEN.get(called.split(".")[-1])
            told = node.args[place : place + 1] if place is not None else []
            yield from (arg for arg in told if is_text(arg))
            yield from (word.value for word in node.keywords if word.arg in FIELDS and is_text(word.value))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.Constant | ast.JoinedStr):
            text = words_of(node)
            if WORDS.search(text) and text not in NOT_STORED_TEXTS and "/proc/" not in text:
                yield node
            continue
        yield from literals(node)


def is_text(node: ast.expr) -> bool:
    if not isinstance(node, ast.Constant | ast.JoinedStr):
        return False
    text = words_of(node)
    return bool(SOME_WORDS.search(text)) and text not in NOT_STORED_TEXTS


def words_of(node: ast.Constant | ast.JoinedStr) -> str:
    """The text of a literal, with `0` in the place of its values."""
    pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(
        (one.value if isinstance(one.value, str) else "") if isinstance(one, ast.Constant) else "0"
        for one in pieces
    )
