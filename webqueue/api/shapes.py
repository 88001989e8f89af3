"""Rows as the JSON of DESIGN section 8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from webqueue.api.asked import opaque
from webqueue.config import masked
from webqueue.config.rows import SITE_FIELDS, TARGET_FIELDS, plain
from webqueue.queries import (
    DocumentDetail,
    DocumentRow,
    JobRow,
    LogLine,
    NotBefore,
    RateKeyRow,
    SiteRow,
    Status,
    TargetRow,
    Waiting,
)
from webqueue.queries.site_states import SiteState

JOB_FIELDS = (
    "id",
    "seq",
    "site",
    "target",
    "rate_key",
    "source",
    "status",
    "attention",
    "force",
    "due_at",
    "enqueued_at",
    "started_at",
    "finished_at",
    "queued_for_sec",
    "running_for_sec",
    "current_page",
    "last_completed_page",
    "attempt_count",
    "cooldown_retry_count",
    "retry_of",
    "tick",
    "error_msg",
    "result",
    "from_page",
    "created_by",
    "counters",
)
DOCUMENT_FIELDS = (
    "id",
    "url",
    "target",
    "title",
    "published_at",
    "first_seen_at",
    "last_seen_at",
    "changed_at",
    "state",
    "gone_at",
    "version",
    "content_hash",
    "content_type",
    "job",
)
# What a site or target shows besides the fields of the file. It may be sent back, and changes nothing.
SITE_EXTRAS = ("paused", "next_tick", "last_job", "learned_interval_sec")
TARGET_EXTRAS = ("rate_key", *SITE_EXTRAS)


def moment(value: datetime | None) -> str | None:
    """A time in UTC, `2026-01-31T03:00:00Z`."""
    found: str | None = plain(value)
    return found


def listing(items: Iterable[Any], next_cursor: str | None = None) -> dict[str, Any]:
    """The answer of every listing; `next_cursor` as `queries` gives it."""
    return {"items": list(items), "next_cursor": opaque(next_cursor)}


def job(row: JobRow) -> dict[str, Any]:
    """A job."""
    data = {name: plain(getattr(row, name)) for name in JOB_FIELDS}
    progress = {"progress": asdict(row.progress), "waiting": _waiting(row.waiting)}
    return data | progress


def document(row: DocumentRow, text: str) -> dict[str, Any]:
    """A document with its text."""
    return {name: plain(getattr(row, name)) for name in DOCUMENT_FIELDS} | {"text": text}


def document_detail(row: DocumentDetail) -> dict[str, Any]:
    """A document with the list of its versions."""
    return document(row, row.text) | {
        "shown_version": row.shown_version,
        "versions": [plain(asdict(version)) for version in row.versions],
    }


def rate_key(row: RateKeyRow) -> dict[str, Any]:
    """A rate key."""
    return {
        "key": row.key,
        "state": row.state,
        "sites": list(row.sites),
        "running_job": None if row.running_job is None else job(row.running_job),
        "queued": row.queued,
        "next_start_at": moment(row.next_start_at),
        "not_before": _not_before(row.not_before),
        "paused_by": row.paused_by,
        "paused_at": moment(row.paused_at),
        "paused_note": row.paused_note,
        "consecutive_blocks": row.consecutive_blocks,
        "owner": row.owner,
        "note": row.note,
    }


def site(row: SiteRow, state: SiteState) -> dict[str, Any]:
    """A site: the fields of the file, secrets masked, and its present state. `rate_key` is the one in force."""
    data = masked({name: plain(getattr(row, name)) for name in SITE_FIELDS})
    return data | {
        "paused": state.paused,
        "next_tick": moment(state.next_tick),
        "last_job": None if state.last_job is None else job(state.last_job),
        "learned_interval_sec": None,  # each of its targets has its own
    }


def target(row: TargetRow) -> dict[str, Any]:
    """A target: the fields of the file, secrets masked, and its present state."""
    said = {
        "timezone": row.own_timezone,
        "retry": {"times": row.retry_times, "wait_sec": row.retry_wait_sec},
    }
    data = {name: plain(said[name] if name in said else getattr(row, name)) for name in TARGET_FIELDS}
    return masked(data) | {
        "rate_key": row.rate_key,
        "paused": row.paused,
        "next_tick": moment(row.next_tick),
        "last_job": None if row.last_job is None else job(row.last_job),
        "learned_interval_sec": plain(row.learned_interval_sec),
    }


def log_line(row: LogLine) -> dict[str, Any]:
    """A line of a job's log."""
    return {"id": row.id, "at": moment(row.at), "level": row.level, "message": row.message}


def status(row: Status, version: str) -> dict[str, Any]:
    """The state of the installation."""
    data: dict[str, Any] = plain(asdict(row))
    return {"version": version} | data


def _waiting(row: Waiting | None) -> Mapping[str, Any] | None:
    data: Mapping[str, Any] | None = None if row is None else plain(asdict(row))
    return data


def _not_before(row: NotBefore | None) -> Mapping[str, Any] | None:
    return None if row is None else {"at": moment(row.at), "kind": row.kind, "cause": row.cause}
