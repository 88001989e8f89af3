"""What the database says at the end, and a log of every change of a status that the database itself keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from tests.helpers.world import assert_settled
from webqueue.database import Database
from webqueue.models import Job, JobLog

FINAL = ("done", "failed", "cancelled", "skipped")

_AUDIT_TABLE = "CREATE TABLE chaos_audit (job_seq INTEGER, old_status VARCHAR(15), new_status VARCHAR(15))"
_AUDIT_SQLITE = """
CREATE TRIGGER chaos_audit_status AFTER UPDATE OF status ON jobs
BEGIN INSERT INTO chaos_audit VALUES (new.seq, old.status, new.status); END
"""
_AUDIT_POSTGRESQL = """
CREATE FUNCTION chaos_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO chaos_audit VALUES (NEW.seq, OLD.status, NEW.status); RETURN NULL; END $$;
CREATE TRIGGER chaos_audit_status AFTER UPDATE OF status ON jobs FOR EACH ROW EXECUTE FUNCTION chaos_audit()
"""


@dataclass(frozen=True)
class JobFacts:
    """A job's row; times on `clock.boot_seconds`.

    Attributes:
        finals: how often a final status was written.
        rewritten: how often a final status was changed into another one.
    """

    id: str
    seq: int
    key: str
    target: str
    source: str
    status: str
    from_page: int
    retry_of: str | None
    error_msg: str
    token: int
    attempts: int
    moved: bool
    tick: datetime | None
    due_at: float
    enqueued_at: float
    finished_at: float | None
    finals: int
    rewritten: int


def audit(database: Database) -> None:
    """Let the database note every change of a job's status, whoever makes it."""
    with database.transaction() as session:
        session.execute(text(_AUDIT_TABLE))
        statement = _AUDIT_SQLITE if database.is_sqlite else _AUDIT_POSTGRESQL
        session.connection().exec_driver_sql(statement)


def facts(database: Database, boot_time: Callable[[float], float]) -> list[JobFacts]:
    """Every job as it is now.

    Args:
        boot_time: turns seconds since 1970 into those of `clock.boot_seconds`.
    """

    def at(moment: datetime) -> float:
        return boot_time(moment.timestamp())

    with database.reading() as session:
        finals: dict[int, int] = {}
        rewritten: dict[int, int] = {}
        for seq, old, new in session.execute(text("SELECT job_seq, old_status, new_status FROM chaos_audit")):
            if new in FINAL:
                finals[seq] = finals.get(seq, 0) + 1
            if old in FINAL:
                rewritten[seq] = rewritten.get(seq, 0) + 1
        return [
            JobFacts(
                id=job.id,
                seq=job.seq,
                key=job.rate_key,
                target=job.target_code,
                source=job.source,
                status=job.status,
                from_page=job.from_page,
                retry_of=job.retry_of,
                error_msg=job.error_msg or "",
                token=job.lease_token,
                attempts=job.attempt_count,
                moved=job.moved_to_front_at is not None,
                tick=job.tick,
                due_at=at(job.due_at),
                enqueued_at=at(job.enqueued_at),
                finished_at=None if job.finished_at is None else at(job.finished_at),
                finals=finals.get(job.seq, 0),
                rewritten=rewritten.get(job.seq, 0),
            )
            for job in session.query(Job).order_by(Job.seq)
        ]


def log_lines(database: Database, beginning: str) -> int:
    """How many lines of the jobs' logs begin like this."""
    with database.reading() as session:
        return session.query(JobLog).filter(JobLog.message.startswith(beginning)).count()


def unsettled(database: Database) -> str | None:
    """What is wrong with the keys' times (see `assert_settled`); None when nothing is."""
    with database.reading() as session:
        try:
            assert_settled(session)
        except AssertionError as error:
            return str(error)
    return None
