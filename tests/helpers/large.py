"""A large installation: rows written past the verbs, for ten thousand runs would take an hour."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from tests.helpers.admin import add_site, add_target, add_worker
from webqueue import clock, jobs
from webqueue.models import Job, RateKey

KEYS: Final = 40
TARGETS: Final = 300
QUEUED: Final = 200
STATUSES: Final = ("done", "done", "done", "failed", "cancelled", "skipped", "done", "failed")
_BATCH: Final = 10_000


def fill_large(session: Session, count: int) -> None:
    """40 keys, 300 targets, and `count` jobs, the last 200 of them waiting."""
    now = clock.now(session)
    add_worker(session, now)
    for number in range(KEYS):
        add_site(session, f"site_{number:02}", f"http://host{number:02}.example.org/")
    for number in range(TARGETS):
        add_target(
            session, f"target_{number:03}", f"site_{number % KEYS:02}", schedule=f"{number % 60} 3 * * *"
        )
    session.flush()
    rows: list[dict[str, Any]] = []
    for number in range(count):
        queued = number >= count - QUEUED
        target, site = number % TARGETS, number % TARGETS % KEYS
        began = now - timedelta(seconds=(count - number) * 60)
        job_id = f"{number:012x}"
        rows.append(
            {
                "id": job_id,
                "root_id": job_id,
                "site_code": f"site_{site:02}",
                "target_code": f"target_{target:03}",
                "rate_key": f"host{site:02}.example.org",
                "source": "manual",
                "created_by": "ann",
                "status": "queued" if queued else STATUSES[number % len(STATUSES)],
                "from_page": number if queued else 0,
                "due_at": began,
                "retry_at": began if queued else None,
                "enqueued_at": began,
                "started_at": None if queued else began,
                "began_at": None if queued else began,
                "finished_at": None if queued else began + timedelta(seconds=20 + number % 40),
                "error_msg": "HTTP 500"
                if not queued and STATUSES[number % len(STATUSES)] == "failed"
                else None,
            }
        )
        if len(rows) == _BATCH or number == count - 1:
            session.execute(insert(Job), rows)
            rows.clear()
    for key in session.scalars(select(RateKey).order_by(RateKey.key)).all():
        jobs.settle(session, key, now)
