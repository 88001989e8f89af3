"""Jobs: one run of a target each, and the lines they log."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from webqueue.database import JSONData, Text
from webqueue.leases import ModelWithQueue
from webqueue.models.base import KEY_LENGTH, Base


class JobStatus(StrEnum):
    """Stored statuses; `cancelling` is running with a stop requested, and never stored (DESIGN P8)."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class JobSource(StrEnum):
    """What made a job."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    RETRY = "retry"
    CONTINUE = "continue"
    API = "api"
    TRY = "try"


class Job(ModelWithQueue, Base):
    """One run of a target.

    `retry_at` is when it is due while queued, a mirror of its key's lease while running, NULL when final. A job is
    only ever claimed through its key (DESIGN section 5).
    """

    __tablename__ = "jobs"
    __table_args__ = (
        # The head of a key's queue. Only this index has the order, so the planner cannot walk another one.
        Index(
            "ix_jobs_queue",
            "rate_key",
            "retry_at",
            "seq",
            sqlite_where=text("status = 'queued'"),
            postgresql_where=text("status = 'queued'"),
        ),
        # Promise P1, in the database itself.
        Index(
            "uq_jobs_running",
            "rate_key",
            unique=True,
            sqlite_where=text("status = 'running'"),
            postgresql_where=text("status = 'running'"),
        ),
        # Equal jobs of a target (deduplication), and what overlaps a tick.
        Index(
            "ix_jobs_open",
            "target_code",
            "seq",
            sqlite_where=text("finished_at IS NULL"),
            postgresql_where=text("finished_at IS NULL"),
        ),
        # One tick makes at most one job (P7); jobs without a tick do not count.
        Index("uq_jobs_tick", "target_code", "tick", unique=True),
        Index("ix_jobs_target_seq", "target_code", "seq"),
        Index("ix_jobs_status_seq", "status", "seq"),
        Index("ix_jobs_rate_key_seq", "rate_key", "seq"),
        # The past ticks, where most jobs are runs by hand.
        Index("ix_jobs_source_seq", "source", "seq"),
        Index("ix_jobs_finished", "finished_at", "status"),
        # The last runs of a key or target, for the strips: however many queued jobs are newer.
        Index(
            "ix_jobs_key_finished",
            "rate_key",
            "finished_at",
            sqlite_where=text("finished_at IS NOT NULL"),
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
        Index(
            "ix_jobs_target_finished",
            "target_code",
            "finished_at",
            sqlite_where=text("finished_at IS NOT NULL"),
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
        Index("ix_jobs_root", "root_id", "seq"),
        # What opening hours have put off: a job that is moved to the front goes before the first of them.
        Index(
            "ix_jobs_put_off",
            "rate_key",
            "due_before_hours",
            sqlite_where=text("status = 'queued' AND due_before_hours IS NOT NULL"),
            postgresql_where=text("status = 'queued' AND due_before_hours IS NOT NULL"),
        ),
        {
            "sqlite_autoincrement": True
        },  # a number is never given twice, also after the newest job was deleted
    )

    StatusChoices = JobStatus
    INITIAL_STATE = JobStatus.QUEUED
    ACTIVE_STATE = JobStatus.RUNNING
    FINAL_STATES = (JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.SKIPPED)

    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(12), unique=True)
    root_id: Mapped[str] = mapped_column(String(12))
    retry_of: Mapped[str | None] = mapped_column(String(12))
    site_code: Mapped[str] = mapped_column(ForeignKey("sites.code"), index=True)
    target_code: Mapped[str] = mapped_column(ForeignKey("targets.code"))
    rate_key: Mapped[str] = mapped_column(String(KEY_LENGTH), ForeignKey("rate_keys.key"))
    source: Mapped[str] = mapped_column(String(15))
    created_by: Mapped[str] = mapped_column(String(128), default="")
    status: Mapped[str] = mapped_column(String(15), default=JobStatus.QUEUED)
    attention: Mapped[str | None] = mapped_column(Text)
    force: Mapped[bool] = mapped_column(default=False)
    from_page: Mapped[int] = mapped_column(default=0)
    tick: Mapped[datetime | None]

    due_at: Mapped[datetime]
    # When it would be due if its site were open then; NULL for a job whose due time opening hours did not move.
    due_before_hours: Mapped[datetime | None]
    retry_at: Mapped[datetime | None] = mapped_column()
    enqueued_at: Mapped[datetime]
    # The start of the present run, cleared by a recovery; `began_at` is the first start and stays.
    started_at: Mapped[datetime | None]
    began_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    moved_to_front_at: Mapped[datetime | None]

    lease_token: Mapped[int] = mapped_column(BigInteger, default=0)
    leased_by: Mapped[str | None] = mapped_column(String(64))
    stop_requested: Mapped[bool] = mapped_column(default=False)
    stop_requested_at: Mapped[datetime | None]
    stop_requested_by: Mapped[str | None] = mapped_column(String(128))
    # A stop that does not wait for the handler; only ever beside `stop_requested`.
    force_requested_at: Mapped[datetime | None]
    force_requested_by: Mapped[str | None] = mapped_column(String(128))
    # Of the present run, when it has a process of its own; its number is that of the worker's machine.
    process_group: Mapped[int | None] = mapped_column(BigInteger)

    attempt_count: Mapped[int] = mapped_column(default=0)
    cooldown_retry_count: Mapped[int] = mapped_column(default=0)
    failure_retry_count: Mapped[int] = mapped_column(default=0)

    current_page: Mapped[int] = mapped_column(default=0)
    last_completed_page: Mapped[int] = mapped_column(default=0)
    checkpoint: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)
    checkpoint_at: Mapped[datetime | None]
    progress_current: Mapped[int | None]
    progress_total: Mapped[int | None]
    progress_message: Mapped[str] = mapped_column(Text, default="")
    counters: Mapped[dict[str, Any]] = mapped_column(JSONData, default=dict)

    # Why it failed or was skipped, behind the recoveries on its way: they are added, never taken away (DESIGN section 5).
    error_msg: Mapped[str | None] = mapped_column(Text)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSONData)

    @classmethod
    def claim_refusal(cls) -> str | None:
        """Why the claim verbs of the protocol refuse: DESIGN section 5 claims the key, and takes its head."""
        return "A job is only ever claimed through its rate key (DESIGN section 5): use webqueue.jobs.claim."


class JobLog(Base):
    """A line that a job logged; `id` is the offset that a tail continues from."""

    __tablename__ = "job_logs"
    __table_args__ = (Index("ix_job_logs_job_id", "job_seq", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    job_seq: Mapped[int] = mapped_column(ForeignKey("jobs.seq", ondelete="CASCADE"))
    at: Mapped[datetime]
    level: Mapped[str] = mapped_column(String(10))
    message: Mapped[str] = mapped_column(Text)
