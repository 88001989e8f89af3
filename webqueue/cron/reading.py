"""Reading a cron expression, and what is wrong with one."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import datetime

from cronsim import CronSim, CronSimError

from webqueue.cron.schedule import Schedule
from webqueue.cron.timezones import timezone_problem
from webqueue.errors import InvalidInputError, Problem
from webqueue.sentences import say, say_some

MAX_EXPRESSION_LENGTH = 200

_NAMED_SCHEDULES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# In any 50 years of this century every date falls on every weekday that it can fall on. What finds no match
# from here never fires; and so the answer does not depend on the day on which somebody saves a schedule.
_START_OF_CENTURY = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall-clock time without a zone


@dataclass(frozen=True)
class _Field:
    name: str
    values: str
    term: re.Pattern[str]
    largest_step: int


def _field(name: str, values: str, value: str, largest_step: int, also: str = "") -> _Field:
    term = rf"(?:\*|(?P<low>{value})(?:-(?P<high>{value}))?)(?:/(?P<step>[0-9]+))?{also}"
    return _Field(name, values, re.compile(term), largest_step)


_FIELDS = (
    _field(say("minute"), "0-59", "[0-9]+", 60),
    _field(say("hour"), "0-23", "[0-9]+", 24),
    _field(
        say("day of the month"), say("1-31, L (the last day), LW (the last weekday)"), "[0-9]+", 31, "|L|LW"
    ),
    _field(say("month"), say("1-12 or JAN-DEC"), "[0-9]+|[A-Z]{3}", 12),
    _field(
        say("day of the week"),
        say("0-7 (0 and 7 are Sunday) or SUN-SAT, 1#2 (the second Monday), 5L (the last Friday)"),
        "[0-9]+|[A-Z]{3}",
        7,
        "|(?:[0-9]+|[A-Z]{3})#[1-5]|[0-9]L",
    ),
)


def parse(expr: str, timezone: str) -> Schedule:
    """Read a cron expression of five fields (or `@hourly`, `@daily`, …) for the wall clock of `timezone`.

    Raises InvalidInputError with problems for `schedule` (naming the cron field and the values it may have)
    and for `timezone`: both, where both are wrong. Six fields are refused, because the sixth means seconds to
    one program and years to another; so is what never fires (DESIGN §7).
    """
    return _parsed(expr, timezone)


@functools.lru_cache(maxsize=1024)  # hundreds of targets may get one schedule within a transaction
def _parsed(expr: str, timezone: str) -> Schedule:
    fields, problems = _read_expression(expr)
    if (problem := timezone_problem(timezone)) is not None:
        problems.append(Problem("timezone", problem))
    if problems:
        raise InvalidInputError(problems)
    return Schedule(expression=expr.strip(" \t\r\n"), fields=fields, timezone=timezone)


def _read_expression(expr: str) -> tuple[str, list[Problem]]:
    text = expr.strip(" \t\r\n")
    problem = _problem_of_text(text)
    if problem:
        return "", [Problem("schedule", problem)]
    fields = _NAMED_SCHEDULES.get(text.lower(), text.upper()).split()
    if len(fields) != len(_FIELDS):
        return "", [Problem("schedule", _wrong_count(text, len(fields)))]
    problems = [
        Problem("schedule", message)
        for field, written in zip(_FIELDS, fields, strict=True)
        if (message := _problem_of_field(field, written)) is not None
    ]
    if problems:
        return "", problems
    joined = " ".join(
        _without_step_of_one(field, written) for field, written in zip(_FIELDS, fields, strict=True)
    )
    if not _fires(joined):
        return "", [
            Problem(
                "schedule",
                say(
                    "%(text)s never fires: no month has such a day. Change day, month or weekday.",
                    text=repr(text),
                ),
            )
        ]
    return joined, []


def _problem_of_text(text: str) -> str | None:
    if not text:
        return say(
            "The schedule is empty. Write five fields (minute hour day month weekday), such as 0 3 * * *."
        )
    if len(text) > MAX_EXPRESSION_LENGTH:
        return say(
            "The schedule has %(count)s characters; allowed are %(most)s.",
            count=len(text),
            most=MAX_EXPRESSION_LENGTH,
        )
    strange = next((char for char in text if char != "\t" and not " " <= char <= "~"), None)
    if strange is not None:
        return say(
            "The schedule contains the character %(character)s; write plain ASCII letters, digits and signs.",
            character=ascii(strange),
        )
    if text.startswith("@") and text.lower() not in _NAMED_SCHEDULES:
        return say(
            "There is no schedule %(text)s; the named ones are %(known)s.",
            text=repr(text),
            known=", ".join(_NAMED_SCHEDULES),
        )
    return None


def _wrong_count(text: str, count: int) -> str:
    message = say_some(
        "%(text)s has %(count)s field; exactly five are needed: minute hour day month weekday.",
        "%(text)s has %(count)s fields; exactly five are needed: minute hour day month weekday.",
        count,
        text=repr(text),
    )
    if count <= len(_FIELDS):
        return message
    return say("%(message)s A field for seconds or years is not supported.", message=message)


def _problem_of_field(field: _Field, written: str) -> str | None:
    for term in written.split(","):
        match = field.term.fullmatch(term)
        if match is None or not _is_in_range(field, term):
            problem = say(
                "The %(field)s field has %(term)s; allowed are %(values)s, *, ranges, lists and steps.",
                field=field.name,
                term=repr(term),
                values=field.values,
            )
            return _with_wrapping_hint(problem, match)
        if match["step"] and not 1 <= int(match["step"]) <= field.largest_step:
            return say(
                "The %(field)s field has the step %(step)s; allowed are 1 to %(most)s.",
                field=field.name,
                step=match["step"],
                most=field.largest_step,
            )
    return None


def _is_in_range(field: _Field, term: str) -> bool:
    """Whether cronsim takes the term, all other fields being `*`. Steps are judged elsewhere."""
    probe = ["*"] * len(_FIELDS)
    probe[_FIELDS.index(field)] = term.partition("/")[0]
    try:
        CronSim(" ".join(probe), _START_OF_CENTURY)
    except CronSimError:
        return False
    return True


def _with_wrapping_hint(problem: str, match: re.Match[str] | None) -> str:
    if match is None or match["high"] is None:
        return problem
    return say(
        "%(problem)s A range runs upwards; one that wraps round is written as two, such as 22-23,0-2.",
        problem=problem,
    )


def _without_step_of_one(field: _Field, written: str) -> str:
    """`5-5/10` means 5 alone; cronsim would read it as `5/10`, which goes on to the end of the range."""
    terms = []
    for term in written.split(","):
        match = field.term.fullmatch(term)
        is_single = match is not None and match["high"] is not None and match["low"] == match["high"]
        terms.append(match["low"] if match is not None and is_single else term)
    return ",".join(terms)


def _fires(fields: str) -> bool:
    try:
        next(CronSim(fields, _START_OF_CENTURY))
    except (CronSimError, StopIteration):
        return False
    return True
