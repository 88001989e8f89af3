"""Writing job rows; every write of a running one names its lease token."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, func, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from webqueue.jobs_sql.heads import QUEUED, RUNNING
from webqueue.models import Job


def insert_job(session: Session, values: dict[str, Any]) -> int | None:
    """Insert a job; None when its id exists, or its tick has made one already (P7)."""
    dialect = session.get_bind().dialect.name
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(Job).values(values)
    # All rows of a RETURNING are fetched: SQLite keeps the statement open otherwise.
    rows = session.execute(insert.on_conflict_do_nothing().returning(Job.seq)).all()
    return int(rows[0].seq) if rows else None


def start_job(
    session: Session, seq: int, *, token: int, worker_id: str, until: datetime, now: datetime
) -> bool:
    """Queued → running under a new token; False when the job is not queued any more."""
    return _hit(
        session.execute(
            update(Job)
            .where(Job.seq == seq, QUEUED)
            .values(
                status="running",
                lease_token=token,
                leased_by=worker_id,
                process_group=None,
                retry_at=until,
                started_at=now,
                began_at=func.coalesce(Job.began_at, now, type_=Job.began_at.type),
                modified_at=now,
            )
            .execution_options(synchronize_session=False)
        )
    )


def move_queued(
    session: Session, site_code: str, old_keys: Collection[str], new_key: str, now: datetime
) -> None:
    """Give the site's queued jobs of the old keys the new one; all these keys are locked."""
    session.execute(
        update(Job)
        .where(Job.site_code == site_code, Job.rate_key.in_(sorted(old_keys)), QUEUED)
        .values(rate_key=new_key, modified_at=now)
        .execution_options(synchronize_session=False)
    )


def postpone(session: Session, key: str, site_code: str, until: datetime, now: datetime) -> None:
    """Let the site's queued jobs in a locked key be due no earlier than `until`; what they waited for is kept."""
    session.execute(
        update(Job)
        .where(Job.rate_key == key, Job.site_code == site_code, QUEUED, Job.retry_at < until)
        .values(
            due_before_hours=func.coalesce(Job.due_before_hours, Job.due_at, type_=Job.due_before_hours.type),
            due_at=until,
            retry_at=until,
            modified_at=now,
        )
        .execution_options(synchronize_session=False)
    )


def postpone_one(session: Session, seq: int, until: datetime) -> None:
    """Let one queued job, which `postpone` has moved, be due at `until`."""
    session.execute(
        update(Job)
        .where(Job.seq == seq, QUEUED)
        .values(due_at=until, retry_at=until)
        .execution_options(synchronize_session=False)
    )


def unpostpone(session: Session, site_codes: Collection[str], now: datetime) -> None:
    """Take back what `postpone` did to the queued jobs of these sites; their keys are locked."""
    session.execute(
        update(Job)
        .where(Job.site_code.in_(sorted(site_codes)), QUEUED, Job.due_before_hours.is_not(None))
        .values(
            due_at=Job.due_before_hours,
            retry_at=Job.due_before_hours,
            due_before_hours=None,
            modified_at=now,
        )
        .execution_options(synchronize_session=False)
    )


def update_running(session: Session, seq: int, token: int, values: dict[str, Any]) -> bool:
    """Change a running job, fenced by its lease token; False = the lease is lost, nothing was written (P4)."""
    return _hit(
        session.execute(
            update(Job)
            .where(Job.seq == seq, Job.lease_token == token, RUNNING)
            .values(values)
            .execution_options(synchronize_session=False)
        )
    )


def _hit(result: Any) -> bool:
    return cast("CursorResult[Any]", result).rowcount == 1
