"""Jobs as pages and API read them: right, bounded, and with a fixed number of statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    fill,
    finished_job,
    running_job,
)
from tests.helpers.asking import KEY, counted_statements, job_of, read, submit
from webqueue import clock, jobs, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Job
from webqueue.queries import JobFilter, JobRow


def test_a_job_is_found_by_id_and_by_number(example: Database) -> None:
    job_id = submit(example)
    for name in (job_id, "1", "#1"):
        assert job_of(example, name).id == job_id
    for name in ("2", "#", "", "x" * 12, "9" * 30, "１"):
        with pytest.raises(NotFoundError, match="no job"):
            job_of(example, name)


def test_queued_for_is_never_negative_and_a_run_of_no_time_has_a_duration(example: Database) -> None:
    job = example.run(lambda s: finished_job(s, "news", ago=timedelta(), seconds=0.0))
    row = job_of(example, job.id)
    assert row.running_for_sec == 0.0
    ahead = timedelta(hours=8)  # as a clock without a zone would have written it
    example.run(lambda s: s.execute(update(Job).values(enqueued_at=clock.now(s) + ahead)))
    assert job_of(example, job.id).queued_for_sec == 0.0


def test_a_job_that_never_ran_has_no_duration(example: Database) -> None:
    job_id = submit(example)
    assert job_of(example, job_id).running_for_sec is None
    example.run(lambda s: jobs.cancel(s, job_id, by="ann"))
    row = job_of(example, job_id)
    assert (row.status, row.running_for_sec) == ("cancelled", None)
    assert row.finished_at is not None
    assert row.queued_for_sec == round((row.finished_at - row.enqueued_at).total_seconds(), 3), (
        "it waits no more"
    )


def test_cancelling_is_told_and_not_stored(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    assert job_of(example, job.id).status == "running"
    example.run(lambda s: jobs.cancel(s, job.id, by="bob"))
    row = job_of(example, job.id)
    assert (row.status, row.stop_requested_by) == ("cancelling", "bob")
    assert not row.can_cancel
    assert read(example, lambda s: s.get_one(Job, job.seq).status) == "running"


def test_pages_follow_each_other_in_both_directions(example: Database) -> None:
    for number in range(1, 8):
        submit(example, from_page=number)

    def page(cursor: str | None) -> queries.Page[JobRow]:
        with example.reading() as session:
            return queries.list_jobs(session, cursor=cursor, limit=3)

    def numbers(found: queries.Page[JobRow]) -> list[int]:
        return [job.seq for job in found.items]

    first = page(None)
    second = page(first.next_cursor)
    third = page(second.next_cursor)
    assert [numbers(found) for found in (first, second, third)] == [[7, 6, 5], [4, 3, 2], [1]]
    assert first.previous_cursor is None
    assert third.next_cursor is None
    assert numbers(page(third.previous_cursor)) == numbers(second)
    assert numbers(page(second.previous_cursor)) == numbers(first)
    assert page(second.previous_cursor).previous_cursor is None


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "１", "9" * 40, "++1"])
def test_a_cursor_of_nobody_is_refused(example: Database, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a cursor"):
        read(example, lambda s: queries.list_jobs(s, cursor=cursor))


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_a_limit(example: Database, limit: int) -> None:
    with pytest.raises(InvalidInputError, match="not between 1 and 200"):
        read(example, lambda s: queries.list_jobs(s, limit=limit))


def test_jobs_are_filtered(example: Database) -> None:
    def history(session: Session) -> None:
        for hours in (30, 20, 2):
            finished_job(session, "news", ago=timedelta(hours=hours), seconds=5, status="failed")
        finished_job(session, "archive", ago=timedelta(hours=1), seconds=5, attention="Nothing new for long")
        running_job(session, "archive")

    example.run(history)
    queued = submit(example)
    now = read(example, clock.now)

    def found(**filters: Any) -> list[int]:
        with example.reading() as session:
            return [job.seq for job in queries.list_jobs(session, JobFilter(**filters)).items]

    assert found() == [6, 5, 4, 3, 2, 1]
    assert found(status="failed") == [3, 2, 1]
    assert found(status="failed", finished_since=now - timedelta(days=1)) == [3, 2]
    assert found(status="queued") == [6]
    assert found(target="archive") == [5, 4]
    assert found(site="example", source="schedule") == [4, 3, 2, 1]
    assert found(rate_key="elsewhere") == []
    assert found(attention=True) == [4]
    assert found(since=now - timedelta(hours=21)) == [6, 5, 4, 3, 2]
    assert found(until=now - timedelta(hours=21)) == [1]
    assert found(since=now - timedelta(hours=21), until=now - timedelta(hours=3)) == [2]
    assert found(since=now + timedelta(hours=1)) == []
    assert found(status="running") == [5]
    assert found(status="cancelling") == []
    example.run(lambda s: jobs.cancel(s, job_of(example, "5").id, by="ann"))
    assert found(status="cancelling") == found(status="running") == [5]
    example.run(lambda s: jobs.cancel(s, queued, by="ann"))
    assert found(status="cancelled") == [6]


@pytest.mark.parametrize(("name", "value"), [("status", "open"), ("source", "cron")])
def test_a_filter_that_is_none_names_those_that_are(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match="is none of") as refused:
        JobFilter(status=value) if name == "status" else JobFilter(source=value)
    assert refused.value.problems[0].field == name


def test_a_list_needs_the_same_statements_for_one_row_and_for_many(database: Database) -> None:
    fill(database)
    questions: list[Callable[[Session], object]] = [
        lambda s: queries.list_jobs(s, limit=2),
        lambda s: queries.list_jobs(s, limit=50),
        lambda s: queries.list_targets(s, limit=1),
        lambda s: queries.list_targets(s, limit=50),
        lambda s: queries.list_rate_keys(s, limit=1),
        lambda s: queries.list_rate_keys(s, limit=50),
    ]
    counts = []
    for question in questions:
        with counted_statements(database) as sent:
            read(database, question)
        counts.append(len([statement for statement in sent if "clock_timestamp" not in statement]))
    few_jobs, many_jobs, one_target, many_targets, one_key, many_keys = counts
    assert few_jobs == many_jobs <= 10
    assert one_target == many_targets <= 11
    assert one_key == many_keys <= 13


def test_the_same_reads_change_nothing(database: Database) -> None:
    fill(database)
    with counted_statements(database) as sent:
        read(database, lambda s: (queries.list_jobs(s), queries.counts(s), queries.get_status(s)))
    assert [
        statement for statement in sent if not statement.lstrip().upper().startswith(("SELECT", "WITH"))
    ] == []


def test_no_page_reads_all_jobs(database: Database) -> None:
    """SQLite's planner, on a database with every kind of row: each look at jobs goes through an index."""
    if not database.is_sqlite:
        pytest.skip("PostgreSQL reads small tables from end to end, whatever indexes there are")
    fill(database)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    with database.reading() as session:
        queries.list_jobs(session)
        queries.list_jobs(session, JobFilter(status="failed"))
        queries.list_jobs(session, JobFilter(target="example_news", since=clock.now(session)))
        queries.list_key_queue(session, KEY)
        queries.list_rate_keys(session)
        queries.list_targets(session)
        queries.counts(session)
        queries.failures(session)
        queries.attention_jobs(session)
        queries.state_version(session)
        queries.get_status(session)
    event.remove(database.engine, "before_cursor_execute", note)
    assert len(asked) > 30
    with database.reading() as session:
        for statement, parameters in asked:
            plan = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [row.detail for row in plan]
            whole = [step for step in steps if re.match(r"SCAN (jobs|job_logs|documents)(?! USING)", step)]
            assert not [step for step in whole if "ORDER BY jobs.seq DESC" not in statement], statement
            if "jobs.finished_at >=" in statement:
                # By the index of a status it would go through all jobs that ever came to it.
                assert any("ix_jobs_finished" in step for step in steps), (statement, steps)
