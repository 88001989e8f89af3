"""What the audit log tells of a change: only what changed, also within fields that hold others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webqueue.queries import AuditRow


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"schedule": "0 3 * * *"}, {"schedule": None}, [("schedule", "0 3 * * *", None)]),
        (
            {"params": {"list_url": "a", "item_selector": "li"}},
            {"params": {"list_url": "b", "item_selector": "li", "max_pages": 3}},
            [("params.list_url", "a", "b"), ("params.max_pages", None, 3)],
        ),
        # A secret that changed looks the same before and after; that it did must still be told.
        (
            {"params": {"token": "*"}},
            {"params": {"token": "*"}},
            [("params", {"token": "*"}, {"token": "*"})],
        ),
        (None, {"params": {"list_url": "a"}}, [("params", None, {"list_url": "a"})]),
    ],
)
def test_fields(
    before: dict[str, Any] | None, after: dict[str, Any], told: list[tuple[str, Any, Any]]
) -> None:
    row = AuditRow(1, datetime(2026, 11, 30, tzinfo=UTC), "ann", "changed", "target", "news", before, after)
    assert row.fields == told
