"""Sites, targets and workers for tests of the verbs."""

from __future__ import annotations

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
    """Every key's `retry_at` is what `settle` would make of it, and no promise of DESIGN section 2 is broken."""
    for key in session.scalars(select(RateKey)):
        of_key = session.scalars(select(Job).where(Job.rate_key == key.key)).all()
        running = [job for job in of_key if job.status == "running"]
        queued = [job for job in of_key if job.status == "queued"]
        assert len(running) <= 1, f"P1: {key.key} runs {[job.id for job in running]}"
        if key.status == "leased":
            assert running, f"{key.key} is leased, but runs nothing"
            assert key.retry_at == running[0].retry_at, f"{key.key}: the mirror of its lease differs"
            continue
        assert not running, f"{key.key} runs {running[0].id} without a lease"
        if not queued:
            assert key.retry_at is None, f"{key.key} has no job, but is claimable"
        elif key.paused_at is not None:
            assert key.retry_at is not None
            assert key.retry_at.year == 9999, f"{key.key} is paused, but claimable"
        else:
            assert key.retry_at is not None, f"lost wake-up: {key.key} has {len(queued)} queued jobs"
            assert key.retry_at.year < 9999, f"lost wake-up: {key.key} is not paused"
