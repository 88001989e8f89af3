"""How the stop of a running job stands, and what a Force stop of it would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue import clock
from webqueue.models import Job, JobStatus, Process
from webqueue.queries.runs import RUNNING
from webqueue.queries.stuck import does_not_stop
from webqueue.sentences import say, say_some

# A handler may be in the middle of something; whoever forces it before has not waited for it.
FORCE_AFTER = timedelta(seconds=30)


@dataclass(frozen=True)
class Stopping:
    """A running job, seen by somebody who wants it to stop.

    Attributes:
        isolated: it has a process of its own, which can be killed; else it has a thread, which cannot.
        stuck: it does not stop.
        offers_force: it has been cancelling for 30 s, and nobody has forced it yet.
        host, pid: of its worker, as far as that has told.
        beside: how many other jobs that worker runs now.
    """

    isolated: bool
    stuck: bool
    offers_force: bool
    forced_at: datetime | None
    forced_by: str | None
    host: str | None
    pid: int | None
    beside: int

    @property
    def worker(self) -> str:
        """The worker's process, in words."""
        if self.pid is None:
            return say("worker")
        return say("worker (process %(pid)s on %(host)s)", pid=self.pid, host=self.host)

    @property
    def force_does(self) -> str:
        """What a Force stop does, for whoever has to decide about it."""
        if self.isolated:
            return say(
                "It runs in a process of its own: that one is killed with everything that it has started, "
                "and cannot "
                "tidy up. The job ends cancelled, and starts no retry."
            )
        others = (
            say_some(
                "Its other job is handed back with its checkpoint.",
                "Its %(count)s other jobs are handed back with their checkpoints.",
                self.beside,
            )
            if self.beside
            else say("It runs no other job.")
        )
        return say(
            "It runs in a thread, and a thread cannot be killed: its whole %(worker)s ends instead. "
            "%(others)s "
            "The job ends cancelled, and its rate key stays shut for 10 s more. Where that process serves "
            "these pages "
            "too, they are away until somebody, or the service manager, has started it again. A target with "
            "the "
            "parameter isolated can be killed alone.",
            worker=self.worker,
            others=others,
        )


def stopping(session: Session, seq: int) -> Stopping | None:
    """The stop of the running job with this number; None when it does not run."""
    job = session.get(Job, seq)
    if job is None or job.status != JobStatus.RUNNING:
        return None
    now = clock.now(session)
    process = session.get(Process, job.leased_by) if job.leased_by is not None else None
    beside = session.scalar(
        select(func.count())
        .select_from(Job)
        .where(Job.status == RUNNING, Job.leased_by == job.leased_by, Job.seq != job.seq)
    )
    asked = job.stop_requested_at
    return Stopping(
        isolated=job.process_group is not None,
        stuck=bool(session.scalar(select(does_not_stop(now)).where(Job.seq == seq))),
        offers_force=asked is not None and asked <= now - FORCE_AFTER and job.force_requested_at is None,
        forced_at=job.force_requested_at,
        forced_by=job.force_requested_by,
        host=process.hostname if process is not None else None,
        pid=process.pid if process is not None else None,
        beside=int(beside or 0),
    )
