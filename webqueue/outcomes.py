"""What a handler's run came to. Handlers return one of these; an exception means surprise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Checkpoint:
    """The durable point from which a retry resumes.

    Attributes:
        page: the last completed list page, 0 before the first.
        data: free JSON of the handler.
    """

    page: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """The run did its work. `attention` says why a person should look at it all the same (DESIGN P12)."""

    result: Mapping[str, Any] = field(default_factory=dict)
    attention: str | None = None


@dataclass(frozen=True)
class Failed:
    """The run could not do its work; `error` says what is wrong, where, and what to do."""

    error: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Blocked:
    """The server said "too much": the whole key cools down, and the job is retried from `checkpoint`.

    Attributes:
        reason: what was met, e.g. `HTTP 429 from www.example.org`.
        retry_after: seconds that the server asked for, None when it did not say.
        checkpoint: where the retry resumes; None means the last one that was committed.
        rate_key: of the host that answered so, where a redirect led to another key than the job's: it is charged too.
    """

    reason: str
    retry_after: int | None = None
    checkpoint: Checkpoint | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    rate_key: str | None = None


@dataclass(frozen=True)
class Cancelled:
    """The handler stopped because it was asked to (`ctx.should_stop()`)."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutOfTime:
    """The worker's word, never a handler's: the run was stopped at its time limit.

    It is continued by a new job when it advanced its checkpoint, else it failed (DESIGN section 6).
    """

    max_runtime_sec: int
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutOfHours:
    """The worker's word, never a handler's: the run was stopped because its site's allowed hours ended.

    It is continued by a new job, due when they begin again (DESIGN section 6).
    """

    result: Mapping[str, Any] = field(default_factory=dict)


Outcome = Done | Failed | Blocked | Cancelled
Ending = Outcome | OutOfTime | OutOfHours
