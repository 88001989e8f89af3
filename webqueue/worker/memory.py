"""What earlier jobs of a target left for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import Job, JobSource, JobStatus


def last_result(session: Session, target_code: str) -> Mapping[str, Any]:
    """The result of the target's last done job, trials left out; empty when there is none.

    It walks backwards through the index by target and time of finishing, whose end it rarely leaves.
    """
    result = session.execute(
        select(Job.result)
        .where(
            Job.target_code == target_code,
            Job.finished_at.is_not(None),
            Job.status == JobStatus.DONE,
            Job.source != JobSource.TRY,
        )
        .order_by(Job.finished_at.desc())
        .limit(1)
    ).scalar_one_or_none()
    return result or {}
