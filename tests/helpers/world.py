"""Sites, targets and workers for tests of the verbs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.models import Job, RateKey, Site, Target
from webqueue.outcomes import Done, Ending

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that stands until it is moved; use it with `clock.replaced(clock)`."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class World:
    """One database, and the verbs as a worker and an operator call them, each in a transaction of its own."""

    database: Database
    policy: jobs.Policy = field(default_factory=jobs.Policy)
    life: dict[str, jobs.Life] = field(default_factory=dict)

    def add_site(self, code: str = "example", base_url: str = "http://www.example.org/", **more: Any) -> str:
        values = {"name": code, "adapter": "list", **more}
        host = values.pop("host", base_url.split("/")[2].split(":", maxsplit=1)[0])
        with self.database.transaction() as session:
            now = clock.now(session)
            session.add(
                Site(code=code, base_url=base_url, host=host, created_at=now, changed_at=now, **values)
            )
        return code

    def add_target(self, code: str, site: str = "example", **more: Any) -> str:
        values = {"handler": "python", "interval_sec": 0.0, "retry_times": 0, **more}
        with self.database.transaction() as session:
            now = clock.now(session)
            session.add(Target(code=code, site_code=site, created_at=now, changed_at=now, **values))
        return code

    def submit(self, target: str, **more: Any) -> jobs.Submitted:
        return self.database.run(lambda session: jobs.submit(session, target, **{"source": "api", **more}))

    def claim(self, worker: str = "w1", limit: int = 10) -> list[jobs.Claimed]:
        return self.database.run(
            lambda session: jobs.claim(
                session, worker, limit=limit, life=lambda owner: self.life.get(owner, jobs.Life.UNKNOWN)
            )
        )

    def claim_one(self, worker: str = "w1") -> jobs.Claimed:
        claimed = self.claim(worker)
        assert len(claimed) == 1, claimed
        return claimed[0]

    def finish(self, claimed: jobs.Claimed, ending: Ending | None = None, **more: Any) -> jobs.Finished:
        return self.database.run(
            lambda session: jobs.finish(session, claimed.lease, ending or Done(), self.policy, **more)
        )

    def hand_back(self, claimed: jobs.Claimed, *, stopped: bool = True) -> jobs.Finished:
        return self.database.run(lambda session: jobs.hand_back(session, claimed.lease, stopped=stopped))

    def cancel(self, job_id: str, by: str = "anna", **more: Any) -> str:
        return self.database.run(lambda session: jobs.cancel(session, job_id, by=by, **more))

    def job(self, job_id: str) -> Job:
        with self.database.reading() as session:
            return session.scalars(select(Job).where(Job.id == job_id)).one()

    def jobs(self) -> list[Job]:
        with self.database.reading() as session:
            return list(session.scalars(select(Job).order_by(Job.seq)))

    def key(self, name: str = "www.example.org") -> RateKey:
        with self.database.reading() as session:
            return session.get_one(RateKey, name)

    def target(self, code: str) -> Target:
        with self.database.reading() as session:
            return session.get_one(Target, code)


def assert_settled(session: Session) -> None:
    """Every key's `retry_at` is what `settle` makes of it, jobs and keys agree, and P1 holds (DESIGN sections 2, 5)."""
    jobs_of: dict[str, list[Job]] = defaultdict(list)
    for job in session.scalars(select(Job).order_by(Job.seq)):
        jobs_of[job.rate_key].append(job)
        _assert_due(job)
    for key in session.scalars(select(RateKey)):
        running = [job for job in jobs_of[key.key] if job.status == "running"]
        queued = [job for job in jobs_of[key.key] if job.status == "queued"]
        assert len(running) <= 1, f"P1: {key.key} runs {[job.id for job in running]}"
        assert key.extensions <= jobs.MAX_EXTENSIONS
        if key.status == "leased":
            assert running, f"{key.key} is leased, but runs nothing"
            mirror = (running[0].retry_at, running[0].lease_token, running[0].leased_by)
            assert (key.retry_at, key.lease_token, key.leased_by) == mirror, f"{key.key} and its job differ"
            assert running[0].started_at is not None
            continue
        assert not running, f"{key.key} runs {running[0].id} without a lease"
        assert (key.leased_by, key.extensions) == (None, 0)
        assert key.retry_at == settled(key, queued), (
            f"{key.key} with {len(queued)} queued jobs, a wake-up is lost or early"
        )


def settled(key: RateKey, queued: Sequence[Job]) -> datetime | None:
    """What DESIGN section 5 says of a key that is not leased, worked out from its jobs in another way than `settle`."""
    due = [job.due_at for job in queued]
    if not due:
        return None
    if key.paused_at is not None:
        return datetime(9999, 1, 1, tzinfo=UTC)
    shut = [time for time in (key.cooldown_until, key.gap_until) if time is not None]
    return max(min(due), *shut) if shut else min(due)


def _assert_due(job: Job) -> None:
    if job.status == "queued":
        assert (job.retry_at, job.finished_at, job.leased_by) == (job.due_at, None, None)
    elif job.status == "running":
        assert job.retry_at is not None
        assert job.finished_at is None
    else:
        assert job.retry_at is None, f"{job.id} is {job.status} and in the queue"
        assert job.finished_at is not None
