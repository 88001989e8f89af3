"""The errors of webqueue: one root, and the message says what is wrong, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from webqueue.sentences import Sentence, say


class WebqueueError(Exception):
    """Anything that webqueue refuses or cannot do. Its text is meant for the person who asked."""


class LeaseLostError(WebqueueError):
    """The job no longer belongs to this worker: it was taken over, cancelled, or its lease ended."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"The lease of job {job_id} is lost: another worker may be running it. Nothing was written."
        )
        self.job_id = job_id


class NotFoundError(WebqueueError):
    """There is no such thing."""

    def __init__(self, what: str, name: str) -> None:
        kind = what if isinstance(what, Sentence) else Sentence(what)
        super().__init__(say("There is no %(what)s %(name)s.", what=kind, name=repr(name)))
        self.what = what
        self.name = name


class ConflictError(WebqueueError):
    """The request is sound, but the present state does not allow it."""


class NotBuiltError(WebqueueError):
    """A value of the specification that this version does not have yet."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input: the field's path, a message, and the line of the file where it stands."""

    field: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, {self.field}" if self.line is not None else self.field
        return f"{where}: {self.message}"


class InvalidInputError(WebqueueError):
    """Input that was refused as a whole; `problems` names every field that is wrong."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems

    @classmethod
    def of(cls, field: str, message: str, line: int | None = None) -> InvalidInputError:
        return cls([Problem(field, message, line)])
