"""Versions of pages: they change with what a page shows, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    add_target,
    log_lines,
    running_job,
)
from tests.helpers.asking import KEY, job_of, read, submit
from tests.helpers.world import START, Clock
from webqueue import clock, config, jobs, processes, queries
from webqueue.database import Database
from webqueue.models import Job, Process, StoredSetting


def test_a_worker_that_is_forgotten_takes_what_it_noted_of_its_disk_along(database: Database) -> None:
    with clock.replaced(Clock()), database.transaction() as session:
        for worker in ("silent", "alive"):
            processes.beat(session, worker, role="worker")
            processes.note_low_disk(session, worker, "/ is full")
    later = Clock(START + processes.FORGET_AFTER + timedelta(seconds=1))
    with clock.replaced(later), database.transaction() as session:
        processes.beat(session, "alive", role="worker")
        processes.forget_silent(session)
        names = session.scalars(
            select(StoredSetting.name).where(StoredSetting.name.startswith("disk_low"))
        ).all()
    assert names == ["disk_low:alive"]


def test_the_version_changes_with_everything_that_pages_show_and_with_nothing_else(example: Database) -> None:
    job_id = submit(example)
    running = example.run(lambda s: running_job(s, "archive"))
    changes: list[Callable[[Session], object]] = [
        lambda s: jobs.submit(s, "news", by="ann", from_page=7),
        lambda s: jobs.move_to_front(s, job_id, by="ann"),
        lambda s: jobs.pause_key(s, KEY, by="ann"),
        lambda s: jobs.resume_key(s, KEY, by="ann"),
        lambda s: jobs.pause_all(s, by="ann"),
        lambda s: jobs.cancel(s, job_id, by="ann"),
        lambda s: s.execute(update(Job).where(Job.seq == running.seq).values(progress_current=3)),
        lambda s: s.execute(update(Job).where(Job.seq == running.seq).values(stop_requested=True)),
        lambda s: s.execute(update(Process).values(heartbeat_at=clock.now(s) - timedelta(hours=1))),
        lambda s: add_target(s, "third", "example"),
        lambda s: add_target(s, "fourth", "example"),
        lambda s: config.delete_target(s, "third", by="ann", now=clock.now(s)),
    ]
    before = read(example, queries.state_version)
    for number, change in enumerate(changes):
        assert read(example, queries.state_version) == before
        example.run(change)
        after = read(example, queries.state_version)
        assert after != before, f"change {number} is not seen"
        before = after


def test_a_key_that_no_worker_takes_is_told_when_it_has_waited_for_long(example: Database) -> None:
    submit(example)
    now = clock.local_now()
    with clock.replaced(lambda: now):
        before = read(example, queries.state_version)
    with clock.replaced(lambda: now + timedelta(seconds=30)):
        assert read(example, queries.state_version) == before
    with clock.replaced(lambda: now + timedelta(seconds=75)):
        example.run(lambda s: s.execute(update(Process).values(heartbeat_at=clock.now(s))))
        assert read(example, lambda s: queries.get_status(s).overdue_keys) == 1
        assert read(example, queries.state_version) != before


def test_the_version_of_a_job_follows_its_row_and_its_log(example: Database) -> None:
    running = example.run(lambda s: running_job(s, "news"))
    other = submit(example, "archive")
    before = read(example, lambda s: queries.job_version(s, running.seq))
    example.run(lambda s: jobs.cancel(s, other, by="ann"))
    assert read(example, lambda s: queries.job_version(s, running.seq)) == before, "another job's business"
    example.run(lambda s: log_lines(s, running, "a line"))
    logged = read(example, lambda s: queries.job_version(s, running.seq))
    example.run(lambda s: s.execute(update(Job).values(progress_current=3)))
    assert len({before, logged, read(example, lambda s: queries.job_version(s, running.seq))}) == 3


def test_a_waiting_job_follows_its_key(example: Database) -> None:
    job_id = submit(example)
    seq = job_of(example, job_id).seq
    before = read(example, lambda s: queries.job_version(s, seq))
    example.run(lambda s: jobs.pause_key(s, KEY, by="ann"))
    assert read(example, lambda s: queries.job_version(s, seq)) != before
