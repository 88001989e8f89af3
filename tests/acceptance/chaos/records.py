"""What the operator of a chaos asked for, when, and what was answered."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Submission:
    """A job that was asked for.

    Attributes:
        number: of the submission; the job's script, too. Submissions follow one another.
        job_id: None when no answer came: then it may have been accepted or not.
    """

    number: int
    key: str
    asked_at: float
    answered_at: float
    job_id: str | None


@dataclass(frozen=True)
class Operation:
    """Anything else that was asked for; times on `clock.boot_seconds`.

    Attributes:
        verb: `cancel`, `pause`, `resume`, `lift`, `front` or `retry`.
        subject: a job's id or a key.
        answer: what was answered; None when no answer came.
    """

    verb: str
    subject: str
    asked_at: float
    answered_at: float
    answer: str | None


@dataclass
class Records:
    """Everything that was asked for, in the order of the answers."""

    submissions: list[Submission] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, record: Submission | Operation) -> None:
        with self.lock:
            if isinstance(record, Submission):
                self.submissions.append(record)
            else:
                self.operations.append(record)

    def accepted(self) -> list[Submission]:
        """Submissions that were answered."""
        with self.lock:
            return [one for one in self.submissions if one.job_id is not None]

    def of(self, verb: str) -> list[Operation]:
        """The operations with this verb."""
        with self.lock:
            return [one for one in self.operations if one.verb == verb]
