"""Between stored rows, specs, and the plain data of the file: one form of each value, so that equal things compare so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from webqueue.config.specs import HttpSpec, RateGroupSpec, SiteSpec, Spec, TargetSpec
from webqueue.models import RateGroupRow, Site, Target
from webqueue.politeness.rate_key import host_of

GROUP_FIELDS = tuple(RateGroupSpec.model_fields)
SITE_FIELDS = tuple(SiteSpec.model_fields)
TARGET_FIELDS = (
    "code",
    "site",
    "handler",
    *(
        name
        for name in TargetSpec.model_fields
        if name not in {"code", "site", "handler", "params", "learned_interval_sec"}
    ),
    "params",
)


def spec_data(spec: Spec, fields: tuple[str, ...]) -> dict[str, Any]:
    """The whole spec as plain data, in the order of `fields`."""
    dumped = spec.model_dump()
    return {name: plain(dumped[name]) for name in fields}


def group_data(row: RateGroupRow) -> dict[str, Any]:
    """A stored rate group as the file writes it."""
    return {name: plain(getattr(row, name)) for name in GROUP_FIELDS}


def site_data(row: Site) -> dict[str, Any]:
    """A stored site as the file writes it, secrets in clear."""
    data = {name: plain(getattr(row, name)) for name in SITE_FIELDS if name != "http"}
    http = row.http or {}
    defaults = HttpSpec().model_dump()
    return data | {"http": {name: plain(http.get(name, value)) for name, value in defaults.items()}}


def target_data(row: Target) -> dict[str, Any]:
    """A stored target as the file writes it, secrets in clear."""
    special = {
        "site": row.site_code,
        "retry": {"times": row.retry_times, "wait_sec": row.retry_wait_sec},
        "tags": list(row.tags or []),
        "params": row.params or {},
    }
    return {name: plain(special[name] if name in special else getattr(row, name)) for name in TARGET_FIELDS}


def write_group(row: RateGroupRow, spec: RateGroupSpec) -> None:
    """Give a row everything of its spec."""
    for name in GROUP_FIELDS:
        setattr(row, name, getattr(spec, name))


def write_site(row: Site, spec: SiteSpec, now: datetime) -> None:
    """Give a row everything of its spec; what operators and runs changed stays."""
    for name in SITE_FIELDS:
        if name not in {"code", "http"}:
            setattr(row, name, getattr(spec, name))
    row.http = plain(spec.http.model_dump())
    row.host = host_of(spec.base_url)
    row.changed_at = now


def write_target(row: Target, spec: TargetSpec, now: datetime) -> None:
    """Give a row everything of its spec; what operators and runs changed stays."""
    for name in TARGET_FIELDS:
        if name not in {"code", "site", "retry", "tags", "params"}:
            setattr(row, name, getattr(spec, name))
    row.site_code = spec.site
    row.retry_times, row.retry_wait_sec = spec.retry.times, spec.retry.wait_sec
    row.tags = list(spec.tags)
    row.params = plain(spec.params)
    row.changed_at = now


def plain(value: Any) -> Any:
    """The one form of a value: whole numbers without a point, times in UTC, lists and dicts copied."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal; unlike in Python, true is not 1."""
    if type(one) is type(other) and isinstance(one, str | int | float | None):
        return bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
