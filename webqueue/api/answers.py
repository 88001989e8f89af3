"""What the API answers, as types: made from the rows that `shapes` writes out, so that the two cannot differ by much.

Tests compare real answers with them, field by field: no field is missing, and none is too many.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from webqueue.api import shapes
from webqueue.config.specs import SiteSpec, TargetSpec
from webqueue.queries import DocumentRow, JobRow, RateKeyRow, Status
from webqueue.queries.documents import DocumentVersionRow
from webqueue.queries.logs import LogLine

_ANSWER = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


def _part_of(name: str, row: type, fields: tuple[str, ...], **more: Any) -> type[BaseModel]:
    hints = get_type_hints(row)
    typed: dict[str, Any] = {field: (hints[field], ...) for field in fields}
    made: type[BaseModel] = create_model(name, __config__=_ANSWER, **typed, **more)
    made.__doc__ = (row.__doc__ or "").partition("\n")[0]
    return made


_JOB_HINTS = get_type_hints(JobRow)
Job: Any = _part_of(
    "Job",
    JobRow,
    shapes.JOB_FIELDS,
    progress=(_JOB_HINTS["progress"], ...),
    waiting=(_JOB_HINTS["waiting"], ...),
)
Document: Any = _part_of("Document", DocumentRow, shapes.DOCUMENT_FIELDS, text=(str, ...))
DocumentDetail: Any = _part_of(
    "DocumentDetail",
    DocumentRow,
    shapes.DOCUMENT_FIELDS,
    text=(str, ...),
    shown_version=(int, ...),
    versions=(list[DocumentVersionRow], ...),
)


class NotBefore(BaseModel):
    """Before this time a key starts nothing."""

    model_config = _ANSWER
    at: datetime | None
    kind: str
    cause: str | None


_KEY_FIELDS = (
    "key", "state", "sites", "queued", "next_start_at", "paused_by", "paused_at", "paused_note", "consecutive_blocks",
    "owner", "note",
)  # fmt: skip
RateKey: Any = _part_of(
    "RateKey", RateKeyRow, _KEY_FIELDS, running_job=(Job | None, ...), not_before=(NotBefore | None, ...)
)
Installation: Any = _part_of("Installation", Status, tuple(get_type_hints(Status)), version=(str, ...))
Line: Any = _part_of("Line", LogLine, ("id", "at", "level", "message"))


class Site(SiteSpec):
    """A site in the fields of the import file, secrets masked, and its present state."""

    model_config = _ANSWER
    rate_key: str
    paused: bool
    next_tick: datetime | None
    last_job: Job | None
    learned_interval_sec: None


class Target(TargetSpec):
    """A target in the fields of the import file, secrets masked, and its present state."""

    model_config = _ANSWER
    rate_key: str
    paused: bool
    next_tick: datetime | None
    last_job: Job | None
    learned_interval_sec: float | None


class SiteBody(SiteSpec):
    """A site as PUT takes it; what is left out gets its default, and what GET shows besides changes nothing."""

    code: str = Field("", description="As in the address, or left out.")
    paused: Any = None
    next_tick: Any = None
    last_job: Any = None
    learned_interval_sec: Any = None


class TargetBody(TargetSpec):
    """A target as PUT takes it; what is left out gets its default, and what GET shows besides changes nothing."""

    code: str = Field("", description="As in the address, or left out.")
    rate_key: Any = None
    paused: Any = None
    next_tick: Any = None
    last_job: Any = None
    learned_interval_sec: Any = None


class RunBody(BaseModel):
    """How to run."""

    model_config = ConfigDict(extra="forbid")
    force: bool = Field(False, description="Go past known pages, and fetch them conditionally.")
    from_page: int = Field(0, description="The first list page; 0: the target's own.")


class PauseBody(BaseModel):
    """Why it is paused."""

    model_config = ConfigDict(extra="forbid")
    note: str = Field("", max_length=2000)


class NoBody(BaseModel):
    """Nothing, or an empty object."""

    model_config = ConfigDict(extra="forbid")


class JobAnswer(BaseModel):
    """The job after it."""

    model_config = _ANSWER
    job: Job


class SubmittedAnswer(BaseModel):
    """The job, and whether it stood already."""

    model_config = _ANSWER
    job: Job
    deduplicated: bool


class Resolved(BaseModel):
    """The rate key of a URL, and the sites that share it."""

    model_config = _ANSWER
    rate_key: str
    sites: list[str]


class Tick(BaseModel):
    """A scheduled time of a target."""

    model_config = _ANSWER
    at: datetime
    target: str
    site: str
    rate_key: str


class Preview(BaseModel):
    """A schedule in words, its next times in UTC, and what daylight saving does to it."""

    model_config = _ANSWER
    words: str
    next: list[datetime]
    notes: list[str]


class FieldProblem(BaseModel):
    """One field that is wrong."""

    model_config = _ANSWER
    field: str
    line: int | None
    message: str


class ProblemDetail(BaseModel):
    """A problem detail (RFC 9457)."""

    model_config = _ANSWER
    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: list[FieldProblem]


def listing(item: Any, **more: Any) -> type[BaseModel]:
    """The answer of a listing of `item`."""
    name = f"{item.__name__}s"
    fields: dict[str, Any] = {"items": (list[item], ...), "next_cursor": (str | None, ...), **more}
    made: type[BaseModel] = create_model(name, __config__=_ANSWER, **fields)
    made.__doc__ = "A part of a listing; `next_cursor` asks for the next one, null: that was all."
    return made


Sites, Targets, Jobs, Documents = (listing(item) for item in (Site, Target, Job, Document))
RateKeys, Ticks, Lines = listing(RateKey), listing(Tick), listing(Line, next_after=(int, ...))
