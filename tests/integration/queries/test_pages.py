"""The overview, targets, documents, logs, and the status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    add_document,
    fill,
    finished_job,
    log_lines,
    running_job,
)
from tests.helpers.asking import KEY, change_key, counted_statements, read, submit
from webqueue import clock, jobs, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import DocumentVersion, Job, Process, RateKey, Target
from webqueue.queries import DocumentFilter, TargetFilter


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


def test_the_count_of_cooldowns_is_that_of_the_list_it_leads_to(example: Database) -> None:
    """A key that runs (a job may begin a cooldown and go on), and one that is paused, are shown as that."""

    def counted() -> tuple[int, int]:
        shown = read(example, lambda s: queries.list_rate_keys(s, state="cooling_down"))
        return read(example, queries.counts).cooling_down, len(shown.items)

    def begin(session: Session) -> None:
        running_job(session, "news")
        key = session.get_one(RateKey, KEY)
        key.cooldown_until, key.cooldown_cause = clock.now(session) + timedelta(hours=1), "HTTP 429"

    assert counted() == (0, 0)
    example.run(begin)
    assert counted() == (0, 0)
    change_key(example, status="idle", leased_by=None)
    assert counted() == (1, 1)
    change_key(example, paused_at=datetime.now(UTC), paused_by="ann")
    assert counted() == (0, 0)


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
