"""What pages and API read: right, bounded, and with a fixed number of statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, select, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    add_document,
    add_site,
    add_target,
    add_worker,
    fill,
    finished_job,
    log_lines,
    running_job,
)
from tests.helpers.world import START, Clock
from webqueue import clock, jobs, processes, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import DocumentVersion, Job, KeyEvent, Process, RateKey, Site, StoredSetting, Target
from webqueue.queries import DocumentFilter, JobFilter, JobRow, TargetFilter
from webqueue.queries.waiting import ordinal

KEY = "www.example.org"


@pytest.fixture
def example(database: Database) -> Database:
    """A site with two targets, and a worker that lives."""

    def add(session: Session) -> None:
        add_worker(session, clock.now(session), threads=2)
        add_site(session, "example", f"http://{KEY}/")
        add_target(session, "news", "example", schedule="0 3 * * *")
        add_target(session, "archive", "example", note="Old letters", owner="Ann")

    database.run(add)
    return database


def read(database: Database, question: Callable[[Session], Any]) -> Any:
    with database.reading() as session:
        return question(session)


def submit(database: Database, target: str = "news", **more: Any) -> str:
    return database.run(lambda s: jobs.submit(s, target, by="ann", **more)).id


def job_of(database: Database, job_id: str) -> JobRow:
    with database.reading() as session:
        return queries.get_job(session, job_id)


@contextmanager
def counted_statements(database: Database) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("BEGIN", "ROLLBACK")):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


# --- one job


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


# --- lists


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
    assert one_key == many_keys <= 12


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


# --- why a job waits


def waiting_of(database: Database, job_id: str) -> queries.Waiting:
    found = job_of(database, job_id).waiting
    assert found is not None
    return found


def note_stuck(database: Database, job: Job, *, at: datetime) -> None:
    event = KeyEvent(rate_key=job.rate_key, at=at, kind="stuck", message="does not stop", job_id=job.id)
    database.run(lambda s: s.add(event))


def change_key(database: Database, **values: Any) -> None:
    database.run(lambda s: s.execute(update(RateKey).values(values)))


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


# --- rate keys


def key_of(database: Database, key: str = KEY) -> queries.RateKeyRow:
    with database.reading() as session:
        return queries.get_rate_key(session, key)


def test_a_key_tells_its_state(example: Database) -> None:
    unused = key_of(example)
    assert (unused.state, unused.sites, unused.queued) == ("idle", ("example",), 0)
    assert unused.next_start_at is not None, "the next tick"
    job = example.run(lambda s: running_job(s, "news"))
    submit(example, "archive")
    running = key_of(example)
    assert (running.state, running.queued, running.next_start_at) == ("running", 1, None)
    assert running.running_job is not None
    assert running.running_job.id == job.id
    change_key(example, extensions=1)
    assert key_of(example).state == "stuck"


def test_a_handler_that_its_worker_calls_stuck_is_shown_with_its_key(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    assert job.started_at is not None
    note_stuck(example, job, at=job.started_at - timedelta(seconds=1))
    assert key_of(example).state == "running", "that was an earlier run of the job"
    note_stuck(example, job, at=job.started_at + timedelta(minutes=5))
    assert key_of(example).state == "stuck"


def test_a_key_that_is_shut_tells_why_and_until_when(example: Database) -> None:
    submit(example)
    now: datetime = read(example, clock.now)
    until = now + timedelta(minutes=5)
    change_key(example, cooldown_until=until, cooldown_cause="HTTP 503", retry_at=until, consecutive_blocks=2)
    row = key_of(example)
    assert (row.state, row.next_start_at, row.consecutive_blocks) == ("cooling_down", until, 2)
    assert row.not_before == queries.NotBefore(until, "cooldown", "HTTP 503")
    example.run(lambda s: jobs.pause_key(s, KEY, by="ann", note="wait"))
    row = key_of(example)
    assert (row.state, row.paused_by, row.paused_note, row.next_start_at) == ("paused", "ann", "wait", None)
    assert read(example, lambda s: queries.key_events(s, KEY)), "a pause is noted"


def test_a_key_that_nobody_has_is_told(example: Database) -> None:
    with pytest.raises(NotFoundError, match="no rate key 'elsewhere'"):
        key_of(example, "elsewhere")


def test_a_job_belongs_to_the_key_that_is_stored_with_it(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    example.run(lambda s: add_site(s, "example", f"http://{KEY}/", rate_key="shared"))
    running = key_of(example)
    assert running.running_job is not None
    assert running.running_job.id == job.id
    assert running.sites == ()
    assert key_of(example, "shared").sites == ("example",)


def test_keys_are_listed_by_state(database: Database) -> None:
    fill(database)
    rows = read(database, queries.list_rate_keys).items
    assert rows[0].state == "running"
    assert {row.key: row.state for row in rows} == {
        "www.example.org": "running",
        "shop.example.com": "cooling_down",
        "archive.example.net": "paused",
        "hostile.example": "idle",
        "www.gz.example.cn": "idle",
    }
    cooling = read(database, lambda s: queries.list_rate_keys(s, state="cooling_down"))
    assert [row.key for row in cooling.items] == ["shop.example.com"]
    for state in ("running", "stuck", "cooling_down", "paused", "idle"):
        with database.reading() as session:
            listed = queries.list_rate_keys(session, state=state)
        assert [row.key for row in listed.items] == [row.key for row in rows if row.state == state]
    with pytest.raises(InvalidInputError, match="is none of"):
        read(database, lambda s: queries.list_rate_keys(s, state="hot"))


def test_every_key_is_on_some_page_whatever_its_state(database: Database) -> None:
    """More keys than a page holds; half never ran, so that only their sites tell of them; _ sorts its own way."""
    every = sorted(f"{'_' if number % 3 else ''}k-{number:03}" for number in range(230))

    def add(session: Session) -> None:
        times = {"created_at": START, "changed_at": START}
        session.add_all(
            Site(
                code=f"s{name[-3:]}",
                name=name,
                base_url=f"http://{name[-3:]}.example.org/",
                host=f"{name[-3:]}.example.org",
                adapter="list",
                rate_key=name,
                **times,
            )
            for name in every
        )
        session.flush()
        ran = [f"{number:03}" for number in range(1, 230, 2)]
        session.add_all(
            Target(code=f"t{number}", site_code=f"s{number}", handler="crawl", **times) for number in ran
        )
        session.flush()
        for number in ran:
            jobs.submit(session, f"t{number}", by="ann")
        for name in ("_k-005", "_k-227", "_k-229"):
            jobs.pause_key(session, name, by="ann")

    database.run(add)

    def names(limit: int, state: str | None = None) -> list[str]:
        found: list[str] = []
        cursor = None
        with database.reading() as session:
            while True:
                page = queries.list_rate_keys(session, state=state, cursor=cursor, limit=limit)
                assert len(page.items) <= limit
                found += [row.key for row in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    return found

    for limit in (60, 200):
        assert sorted(names(limit)) == every
        assert len(names(limit, "idle")) == 227
        assert sorted(names(limit, "paused")) == ["_k-005", "_k-227", "_k-229"]
    with pytest.raises(InvalidInputError, match="is no cursor"):
        read(database, lambda s: queries.list_rate_keys(s, cursor="\x00"))


def test_the_strip_has_the_last_twelve_runs_however_many_wait(example: Database) -> None:
    def history(session: Session) -> None:
        for number in range(15):
            finished_job(session, "news", ago=timedelta(minutes=15 - number), seconds=number)
        for page in range(1, 20):
            jobs.submit(session, "news", by="ann", from_page=page)

    example.run(history)
    assert [run.seconds for run in key_of(example).runs] == list(range(3, 15))
    target = read(example, lambda s: queries.get_target(s, "news"))
    assert [run.seconds for run in target.runs] == list(range(3, 15))


# --- overview, targets, documents, logs, status


def test_the_overview_counts_and_groups(database: Database) -> None:
    fill(database)
    counts = read(database, queries.counts)
    assert (counts.running, counts.queued, counts.cooling_down, counts.targets) == (1, 3, 1, 6)
    assert (counts.failed_24h, counts.done_24h, counts.attention_24h) == (4, 12, 1)
    groups = {group.target: group for group in read(database, queries.failures)}
    assert groups["shop_prices"].count == 3
    assert groups["hostile_target"].count == 1
    assert [job.target for job in read(database, queries.attention_jobs)] == ["gz_notices"]
    upcoming = read(database, queries.next_runs)
    assert [run.at for run in upcoming] == sorted(run.at for run in upcoming)
    assert "archive_letters" not in {run.target for run in upcoming}, "it is paused"


def test_a_failure_names_the_job_that_repeats_it_and_goes_when_that_is_done(example: Database) -> None:
    def blocked(minutes: int, root: str) -> dict[str, Any]:
        error = f"cooldown_abort; auto_retry_job={minutes:012x}"
        ago = timedelta(minutes=minutes)
        return {"ago": ago, "seconds": 1, "status": "failed", "error_msg": error, "root_id": root}

    def block(session: Session) -> None:
        for minutes, root in ((4, "a" * 12), (3, "b" * 12), (2, "c" * 12)):
            finished_job(session, "news", **blocked(minutes, root))
        finished_job(session, "news", ago=timedelta(minutes=1), seconds=1, root_id="a" * 12)

    example.run(block)
    retry = submit(example)
    example.run(lambda s: s.execute(update(Job).where(Job.id == retry).values(root_id="c" * 12)))
    (group,) = read(example, queries.failures)
    assert group.count == 2, "the first of the three has recovered by itself"
    assert group.last.chain_end is not None
    assert (group.last.chain_end.id, group.last.chain_end.status) == (retry, "queued")


def test_targets_show_what_runs_before_what_waits(example: Database) -> None:
    submit(example, from_page=1)
    running = example.run(lambda s: running_job(s, "news"))
    submit(example, from_page=2)
    target = read(example, lambda s: queries.get_target(s, "news"))
    assert target.open_job is not None
    assert target.open_job.id == running.id
    assert (target.rate_key, target.timezone, target.own_timezone) == (KEY, "UTC", None)


def test_targets_are_filtered_and_paged(example: Database) -> None:
    def found(cursor: str | None = None, limit: int = 50, **filters: Any) -> tuple[list[str], str | None]:
        with example.reading() as session:
            page = queries.list_targets(session, TargetFilter(**filters), cursor=cursor, limit=limit)
            return [target.code for target in page.items], page.next_cursor

    assert found() == (["archive", "news"], None)
    assert found(limit=1) == (["archive"], "archive")
    assert found(cursor="archive") == (["news"], None)
    assert found(q="LETTERS") == (["archive"], None)
    assert found(q="%") == ([], None)
    example.run(lambda s: setattr(s.get_one(Target, "news"), "tags", ["daily", "新闻 50%"]))
    assert found(q="新闻") == (["news"], None)
    assert found(q="DAIL") == (["news"], None)
    assert found(q="%") == (["news"], None)
    assert found(q="[") == found(q='"') == ([], None), "how tags are stored is not searched"
    assert found(state="scheduled") == (["news"], None)
    assert found(site="other") == ([], None)
    with pytest.raises(InvalidInputError, match="is none of"):
        found(state="green")


def test_documents_are_listed_without_their_texts(example: Database) -> None:
    def store(session: Session) -> None:
        job = finished_job(session, "news", ago=timedelta(hours=1), seconds=3)
        for number in range(5):
            add_document(
                session, job, f"http://{KEY}/{number}_%.html", f"Title {number}", "a long text", versions=2
            )

    example.run(store)
    with counted_statements(example) as sent:
        page = read(example, lambda s: queries.list_documents(s, limit=3))
    assert [document.title for document in page.items] == ["Title 4", "Title 3", "Title 2"]
    assert len(sent) == 1
    assert ".text" not in sent[0]
    older = read(example, lambda s: queries.list_documents(s, cursor=page.next_cursor))
    assert [document.title for document in older.items] == ["Title 1", "Title 0"]

    def found(**filters: Any) -> int:
        with example.reading() as session:
            return len(queries.list_documents(session, DocumentFilter(**filters)).items)

    assert found(q="title 3") == 1
    assert found(q="_%.html") == 5
    assert found(q="x%y") == 0
    assert found(job=page.items[0].job, target="news", state="live") == 5
    assert found(state="gone") == 0


def test_a_job_keeps_its_documents_when_a_later_one_stores_them_again(example: Database) -> None:
    def history(session: Session) -> tuple[str, str, str]:
        first, second, third = (
            finished_job(session, "news", ago=timedelta(hours=hours), seconds=3) for hours in (3, 2, 1)
        )
        add_document(session, first, f"http://{KEY}/kept", "kept", "text")
        changed = add_document(session, first, f"http://{KEY}/changed", "changed", "text")
        session.add(
            DocumentVersion(
                document_id=changed.id, version=2, stored_at=clock.now(session), job_id=second.id,
                title="changed", text="new", content_hash="2",
            )
        )  # fmt: skip
        changed.last_job_id = third.id
        add_document(session, third, f"http://{KEY}/new", "new", "text")
        return first.id, second.id, third.id

    def titles(job: str) -> list[str]:
        page = read(example, lambda s: queries.list_documents(s, DocumentFilter(job=job)))
        return [document.title for document in page.items]

    first, second, third = example.run(history)
    assert titles(first) == ["changed", "kept"]
    assert titles(second) == ["changed"]
    assert titles(third) == ["new", "changed"]


def test_the_documents_of_a_job_are_found_by_indexes(example: Database) -> None:
    if not example.is_sqlite:
        pytest.skip("PostgreSQL reads small tables from end to end, whatever indexes there are")
    with counted_statements(example) as sent:
        read(example, lambda s: queries.list_documents(s, DocumentFilter(job="0" * 12)))
    asked = sent[0].replace("?", "'0'")
    with example.reading() as session:
        plan = [row.detail for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}")]
    assert any("ix_document_versions_job" in step for step in plan), plan
    assert not any(step.startswith("SCAN") for step in plan), plan


def test_a_document_shows_the_version_that_was_asked_for(example: Database) -> None:
    job = example.run(lambda s: finished_job(s, "news", ago=timedelta(hours=1), seconds=3))
    document = example.run(lambda s: add_document(s, job, f"http://{KEY}/1", "Title", "text", versions=3))
    present = read(example, lambda s: queries.get_document(s, document.id))
    assert (present.shown_version, present.text) == (3, "text")
    assert [version.version for version in present.versions] == [3, 2, 1]
    old = read(example, lambda s: queries.get_document(s, document.id, version=1))
    assert (old.shown_version, old.text, old.version) == (1, "text (version 1)", 3)
    with pytest.raises(NotFoundError, match="no version"):
        read(example, lambda s: queries.get_document(s, document.id, version=4))
    with pytest.raises(NotFoundError, match="no document"):
        read(example, lambda s: queries.get_document(s, 4711))


def test_a_log_is_followed_by_offset(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    example.run(lambda s: log_lines(s, job, *(f"line {number}" for number in range(5))))
    tail = read(example, lambda s: queries.job_log_tail(s, job.seq, limit=2))
    assert [line.message for line in tail.lines] == ["line 3", "line 4"]
    assert tail.more
    example.run(lambda s: log_lines(s, job, "line 5"))
    new = read(example, lambda s: queries.job_log(s, job.seq, after=tail.next_offset))
    assert [line.message for line in new.lines] == ["line 5"]
    nothing = read(example, lambda s: queries.job_log(s, job.seq, after=new.next_offset))
    assert (nothing.lines, nothing.next_offset) == ((), new.next_offset)
    first = read(example, lambda s: queries.job_log(s, job.seq, limit=4))
    assert first.more


def test_a_chain_is_told_from_its_first_job(example: Database) -> None:
    first = example.run(
        lambda s: finished_job(s, "news", ago=timedelta(hours=1), seconds=3, status="failed", error_msg="x")
    )
    second = example.run(lambda s: jobs.retry(s, first.id, by="ann"))
    found = read(example, lambda s: queries.chain(s, first.root_id))
    assert [job.id for job in found] == [first.id, second.id]


def test_the_status_counts_who_lives(example: Database) -> None:
    submit(example)
    status = read(example, queries.get_status)
    assert (status.workers, status.threads, status.schedulers, status.queued, status.overdue_keys) == (
        1,
        2,
        1,
        1,
        0,
    )
    late = timedelta(seconds=90)
    change_key(example, retry_at=read(example, clock.now) - late)
    example.run(lambda s: s.execute(update(Process).values(heartbeat_at=clock.now(s) - late)))
    status = read(example, queries.get_status)
    assert (status.workers, status.schedulers, status.overdue_keys) == (0, 0, 1)


# --- versions


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
    ]
    before = read(example, queries.state_version)
    for number, change in enumerate(changes):
        assert read(example, queries.state_version) == before
        example.run(change)
        after = read(example, queries.state_version)
        assert after != before, f"change {number} is not seen"
        before = after


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


def test_the_key_of_any_url_is_told(example: Database) -> None:
    assert read(example, lambda s: queries.resolve_url(s, f"http://{KEY.upper()}:8080/x")) == KEY
    assert read(example, queries.sites_by_key) == {KEY: ("example",)}
