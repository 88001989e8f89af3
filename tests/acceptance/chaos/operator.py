"""The operator of a chaos: submits jobs, and cancels, pauses, lifts and moves at random, by the product's own verbs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.acceptance.chaos.plan import Plan
from tests.acceptance.chaos.records import Operation, Records, Submission
from tests.acceptance.chaos.witness import Witness
from tests.helpers.waiting import wait_until
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.errors import ConflictError, NotFoundError
from webqueue.models import Job, JobStatus

FIRST_NUMBER = 1_000  # smaller ones are the pages that retries resume from
BATCH_SHARE = 0.1
LONGEST_RESUME_SEC = 120.0  # the database may just be away


def key_name(number: int) -> str:
    return f"key-{number:03}"


def target_code(key: str) -> str:
    return key.replace("key", "target")


class Submitter:
    """One thread, so that submissions follow one another and their order is known.

    Args:
        database: opened for it.
        plan: says what is submitted.
        records: for what was asked and answered.
        witness: tells how many jobs have ended.
    """

    def __init__(self, database: Database, plan: Plan, records: Records, witness: Witness) -> None:
        self._database = database
        self._plan = plan
        self._records = records
        self._witness = witness
        self._dice = plan.dice("submissions")

    def run(self, stopping: threading.Event, time_is_up: Callable[[], bool]) -> None:
        """Submit everything that there is time for, never more than the backlog ahead of the workers."""
        submitted = 0
        while submitted < self._plan.jobs and not stopping.is_set() and not time_is_up():
            if submitted - self._witness.ends() >= self._plan.backlog:
                stopping.wait(0.05)
                continue
            batch = self._dice.randint(2, 6) if self._dice.random() < BATCH_SHARE else 1
            batch = min(batch, self._plan.jobs - submitted)
            numbers = [FIRST_NUMBER + submitted + more for more in range(batch)]
            self._submit({number: key_name(self._dice.randrange(self._plan.keys)) for number in numbers})
            submitted += batch

    def _submit(self, keys: dict[int, str]) -> None:
        """Submit several jobs in one transaction."""

        def work(session: Session) -> list[jobs.Submitted]:
            jobs.lock_keys_of_targets(session, {target_code(key) for key in keys.values()})
            return [
                jobs.submit(session, target_code(key), source="api", by="chaos", from_page=number)
                for number, key in keys.items()
            ]

        asked = clock.boot_seconds()
        try:
            answers: list[Any] = [one.id for one in self._database.run(work)]
        except DBAPIError:
            answers = [None] * len(keys)
        answered = clock.boot_seconds()
        for (number, key), job_id in zip(keys.items(), answers, strict=True):
            self._records.add(Submission(number, key, asked, answered, job_id))


class Operator:
    """Another thread: everything that an operator does to jobs and keys, at random."""

    def __init__(self, database: Database, plan: Plan, records: Records) -> None:
        self._database = database
        self._plan = plan
        self._records = records
        self._dice = plan.dice("operations")
        self._paused: dict[str, float] = {}

    def run(self, stopping: threading.Event, progress: Callable[[], float]) -> None:
        """Spread the operations over the run, as `progress` (0 to 1) tells; then end every pause."""
        done = 0
        while not stopping.is_set():
            self._resume_some(clock.boot_seconds())
            if done < self._plan.operations * progress():
                self._one()
                done += 1
            else:
                stopping.wait(0.02)
        wait_until(self._all_resumed, timeout=LONGEST_RESUME_SEC, every=0.05)

    def _one(self) -> None:
        verb = self._dice.choices(
            ["cancel_new", "cancel_old", "cancel_running", "pause", "lift", "front", "retry"],
            [20, 10, 15, 10, 20, 15, 10],
        )[0]
        key = key_name(self._dice.randrange(self._plan.keys))
        accepted = self._records.accepted()
        if verb == "pause":
            self._pause(key)
        elif verb == "lift":
            self._ask("lift", key, lambda session: jobs.lift_cooldown(session, key, by="chaos"))
        elif accepted:
            recent = [one.job_id for one in accepted[-self._plan.backlog :] if one.job_id is not None]
            if verb == "cancel_running":
                # The line is long: of all jobs hardly one in a hundred runs just now.
                recent = self._running(recent) or recent
            self._to_job(verb, self._dice.choice(recent[-20:] if verb == "cancel_new" else recent))

    def _running(self, job_ids: list[str]) -> list[str]:
        """Those of the jobs that run now; none while the database does not answer."""
        try:
            with self._database.reading() as session:
                running = set(session.scalars(select(Job.id).where(Job.status == JobStatus.RUNNING)))
        except DBAPIError:
            return []
        return [job_id for job_id in job_ids if job_id in running]

    def _to_job(self, verb: str, job_id: str) -> None:
        match verb:
            case "front":
                self._ask("front", job_id, lambda session: jobs.move_to_front(session, job_id, by="chaos"))
            case "retry":
                self._ask("retry", job_id, lambda session: jobs.retry(session, job_id, by="chaos").id)
            case _:
                self._ask("cancel", job_id, lambda session: jobs.cancel(session, job_id, by="chaos"))

    def _pause(self, key: str) -> None:
        if key in self._paused:
            return
        answer = self._ask("pause", key, lambda session: jobs.pause_key(session, key, by="chaos"))
        if answer != "refused":  # without an answer it may be paused
            self._paused[key] = clock.boot_seconds() + self._dice.uniform(0.2, 3.0)

    def _all_resumed(self) -> bool:
        self._resume_some(float("inf"))
        return not self._paused

    def _resume_some(self, until: float) -> None:
        for key, ends_at in list(self._paused.items()):
            if ends_at <= until and self._ask("resume", key, _resume(key)) is not None:
                del self._paused[key]

    def _ask(self, verb: str, subject: str, work: Callable[[Session], str | None]) -> str | None:
        asked = clock.boot_seconds()
        try:
            answer: str | None = self._database.run(work) or "done"
        except (ConflictError, NotFoundError):
            answer = "refused"
        except DBAPIError:
            answer = None
        self._records.add(Operation(verb, subject, asked, clock.boot_seconds(), answer))
        return answer


def _resume(key: str) -> Callable[[Session], None]:
    return lambda session: jobs.resume_key(session, key, by="chaos")
