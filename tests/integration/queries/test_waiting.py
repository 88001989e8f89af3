"""Why a job waits, and its place in the line."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from tests.helpers.admin import (
    add_site,
    add_target,
    running_job,
)
from tests.helpers.asking import KEY, change_key, job_of, read, submit
from webqueue import clock, jobs, queries
from webqueue.database import Database
from webqueue.models import Job, Process
from webqueue.queries.waiting import ordinal


def waiting_of(database: Database, job_id: str) -> queries.Waiting:
    found = job_of(database, job_id).waiting
    assert found is not None
    return found


def test_a_job_that_nothing_holds_up_is_about_to_start(example: Database) -> None:
    waiting = waiting_of(example, submit(example))
    assert (waiting.reason, waiting.position, waiting.behind) == ("starting", 1, None)
    assert waiting.earliest_start is not None


def test_a_job_waits_behind_the_running_one_or_the_first_in_line(example: Database) -> None:
    ids = [submit(example, from_page=page) for page in (1, 2, 3)]
    third = waiting_of(example, ids[2])
    assert (third.reason, third.position) == ("behind", 3)
    assert third.behind is not None
    assert third.behind.seq == 1, "the first in line is the oldest"
    assert third.message == "3rd in line, behind #1 news."
    example.run(lambda s: running_job(s, "archive"))
    first = waiting_of(example, ids[0])
    assert first.message == f"Next, behind #4 archive, which runs in {KEY} now."
    example.run(lambda s: jobs.move_to_front(s, ids[2], by="ann"))
    assert [waiting_of(example, job_id).position for job_id in ids] == [2, 3, 1]
    assert [job.id for job in read(example, lambda s: queries.list_key_queue(s, KEY))] == [
        ids[2],
        ids[0],
        ids[1],
    ]


def test_a_job_waits_for_the_cooldown_and_the_gap_of_its_key(example: Database) -> None:
    job_id = submit(example)
    now: datetime = read(example, clock.now)
    change_key(example, gap_until=now + timedelta(seconds=20), gap_cause="interval")
    waiting = waiting_of(example, job_id)
    assert (waiting.reason, waiting.earliest_start) == ("gap", now + timedelta(seconds=20))
    change_key(example, cooldown_until=now + timedelta(minutes=5), cooldown_cause="HTTP 429")
    waiting = waiting_of(example, job_id)
    assert (waiting.reason, waiting.earliest_start) == ("cooldown", now + timedelta(minutes=5))
    assert waiting.message == f"Rate key {KEY} is cooling down (HTTP 429)."
    assert any("gap" in sentence for sentence in waiting.also)


def test_a_job_waits_for_a_person(example: Database) -> None:
    job_id = submit(example)
    example.run(lambda s: jobs.pause_key(s, KEY, by="ann", note="owner asked"))
    waiting = waiting_of(example, job_id)
    assert (waiting.reason, waiting.earliest_start) == ("key_paused", None)
    assert waiting.message == f"Rate key {KEY} is paused by ann: owner asked."
    example.run(lambda s: jobs.pause_all(s, by="bob"))
    waiting = waiting_of(example, job_id)
    assert waiting.reason == "all_paused"
    assert "by bob" in waiting.message
    assert waiting.also[0].startswith(f"Rate key {KEY} is paused")
    example.run(lambda s: jobs.resume_all(s, by="bob"))
    example.run(lambda s: jobs.resume_key(s, KEY, by="bob"))
    assert waiting_of(example, job_id).reason == "starting"


def test_a_job_waits_for_a_worker(example: Database) -> None:
    job_id = submit(example)
    example.run(lambda s: s.execute(update(Process).values(threads=1)))
    example.run(lambda s: add_site(s, "other", "http://other.example/"))
    example.run(lambda s: add_target(s, "other_news", "other"))
    example.run(lambda s: running_job(s, "other_news"))
    assert waiting_of(example, job_id).reason == "pool_full"
    silent = timedelta(seconds=61)
    example.run(lambda s: s.execute(update(Process).values(heartbeat_at=clock.now(s) - silent)))
    waiting = waiting_of(example, job_id)
    assert (waiting.reason, waiting.earliest_start) == ("no_worker", None)


def test_a_job_waits_until_it_is_due(example: Database) -> None:
    job_id = submit(example)
    due = read(example, clock.now) + timedelta(hours=1)
    example.run(lambda s: s.execute(update(Job).values(due_at=due, retry_at=due)))
    waiting = waiting_of(example, job_id)
    assert (waiting.reason, waiting.earliest_start) == ("not_due", due)


def test_only_queued_jobs_wait(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    assert job_of(example, job.id).waiting is None


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (113, "113th")],
)
def test_places_are_counted_as_people_do(number: int, words: str) -> None:
    assert ordinal(number) == words
