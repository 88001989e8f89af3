"""The export for retrieval behind done jobs: to a file, to an endpoint that refuses, hangs, and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.conftest import Serve
from tests.helpers.pools import QUICK, pool_of
from tests.helpers.servers.index import Index
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import clock, documents, settings
from webqueue.database import Database
from webqueue.deliveries import rag_export, switches
from webqueue.deliveries.files import covered_until, replace_documents
from webqueue.deliveries.loop import DeliveryLoop, deliverers
from webqueue.documents import DocumentDraft
from webqueue.errors import NotFoundError
from webqueue.handlers.protocol import Context
from webqueue.models import AuditEntry, Delivery, DeliveryStatus, Document, Job
from webqueue.outcomes import Cancelled, Done, Ending, Failed, Outcome
from webqueue.settings import Settings

LONG = " ".join(f"Sentence {number} of the report tells what came in." for number in range(60))


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    world.add_target("news")
    switch(world, None, on=True)
    return world


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def endpoint(index: Index, serve: Serve, world: World, database_url: str) -> Settings:
    """The settings of an installation that exports to the index."""
    url = serve(index).url + "/chunks"
    return with_settings(world, database_url, rag_export_url=url, rag_export_token="sesame")


def with_settings(world: World, database_url: str, **more: Any) -> Settings:
    instance = world.database.instance_path
    return settings.load(
        instance_path=instance, database_url=database_url, rag_export_chunk_chars=500, **more
    )


def switch(world: World, target: str | None, *, on: bool | None) -> switches.Switches:
    return world.database.run(
        lambda session: switches.switch(session, target, on, by="anna", now=clock.now(session))
    )


def run_job(
    world: World, *texts: str, ending: Ending | None = None, target: str = "news", **more: Any
) -> Job:
    """A job, from its submission to its end, that stores these texts as /0, /1, …; nothing is delivered meanwhile."""
    job_id = world.submit(target, **more).id
    claimed = world.claim_one()
    for number, text in enumerate(texts if claimed.job.source != "try" else ()):
        draft = DocumentDraft(url=f"http://www.example.org/{number}", title=f"Report {number}", text=text)
        world.database.run(
            lambda session, draft=draft: documents.store(  # type: ignore[misc]
                session, draft, target_code=target, job_id=job_id, root_id=job_id, now=clock.now(session)
            )
        )
    world.finish(claimed, ending or Done())
    return world.job(job_id)


@contextmanager
def delivering(world: World, chosen: Settings, *, loops: int = 1) -> Iterator[None]:
    running = [
        DeliveryLoop(world.database, deliverers(chosen), poll_sec=0.05, first_wait_sec=0.05).loop
        for _ in range(loops)
    ]
    for loop in running:
        loop.start()
    try:
        yield
    finally:
        for loop in running:
            loop.stop()
        for loop in running:
            loop.join(5)


def told(world: World, job: Job) -> dict[str, Any]:
    result = world.job(job.id).result
    assert result is not None
    found: dict[str, Any] = result["rag_export"]
    return found


def wait_for_export(world: World, job: Job, status: str = "completed") -> dict[str, Any]:
    wait_until(lambda: told(world, job)["status"] == status, message=f"the export to be {status}")
    return told(world, job)


def delivery(world: World) -> Delivery:
    with world.database.reading() as session:
        return session.scalars(select(Delivery)).one()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_file_has_every_chunk_once_and_of_the_newest_version(world: World, settings: Settings) -> None:
    short = settings.model_copy(update={"rag_export_chunk_chars": 500})
    path = world.database.instance_path / "exports" / "news.jsonl"
    with delivering(world, short):
        first = run_job(world, LONG, "A short one.", "", "港口办公室报告。")
        exported = wait_for_export(world, first)
        before = lines_of(path)
        second = run_job(world, "Now it is short.", "A short one.")
        wait_for_export(world, second)
    assert exported["file"] == "exports/news.jsonl"
    assert (exported["total"], exported["exported"], exported["failed"]) == (3, 3, 0)
    assert exported["chunks"] == len(before) > 5
    assert len({line["id"] for line in before}) == len(before)
    long = [line for line in before if line["url"] == "http://www.example.org/0"]
    assert [line["position"] for line in long] == list(range(len(long)))
    assert {line["chunks"] for line in long} == {len(long)}
    assert all(len(line["text"]) <= 500 for line in before)
    assert " ".join(line["text"] for line in long) == LONG
    assert set(long[0]) == {
        "id", "target", "site", "url", "title", "published_at", "first_seen_at", "changed_at", "version", "chunks",
        "position", "text", "content_hash",
    }  # fmt: skip
    after = {line["url"].rpartition("/")[2]: line for line in lines_of(path)}
    assert len(lines_of(path)) == len(after) == 3
    assert (after["0"]["text"], after["0"]["version"], after["0"]["id"]) == (
        "Now it is short.",
        2,
        long[0]["id"],
    )
    assert after["3"]["text"] == "港口办公室报告。"
    assert told(world, second)["exported"] == 1
    assert not list(path.parent.glob("*.part"))
    standing = path.stat().st_ino
    with delivering(world, short):
        third = run_job(world, "Now it is short.")
        assert wait_for_export(world, third)["total"] == 0
    assert path.stat().st_ino == standing, "it was written although nothing is new"


def test_an_endpoint_that_refuses_twice_gets_every_chunk_once(
    world: World, index: Index, endpoint: Settings
) -> None:
    index.answers = [503, 202, 429]
    with delivering(world, endpoint):
        job = run_job(world, LONG, "Second.", "Third.")
        assert job.status == "done"
        exported = wait_for_export(world, job)
    assert (exported["total"], exported["exported"], exported["attempts"]) == (3, 3, 3)
    assert exported["chunks"] == len(index.ids) == len(set(index.ids))
    assert len(index.posts) == 5
    assert len(set(index.posts)) == 3
    assert set(index.tokens) == {"Bearer sesame"}
    row = delivery(world)
    assert (row.status, row.attempts, row.last_error, row.retry_at) == (
        DeliveryStatus.DELIVERED,
        3,
        None,
        None,
    )


def test_a_failure_is_told_with_what_came_through(world: World, index: Index, endpoint: Settings) -> None:
    index.answers = [202, 500]
    job = run_job(world, "One.", "Two.", "Three.")
    assert told(world, job) == {"status": "running", "target_code": "news"}
    loop = DeliveryLoop(world.database, deliverers(endpoint), first_wait_sec=1000)
    loop.deliver_due()
    partial = told(world, job)
    assert (partial["status"], partial["total"], partial["exported"], partial["failed"]) == (
        "partial_failed",
        3,
        1,
        2,
    )
    assert "HTTP 500" in partial["error"]
    row = delivery(world)
    assert row.retry_at is not None
    assert datetime.fromisoformat(partial["next_try_at"]) > row.modified_at
    assert (row.retry_at - row.modified_at).total_seconds() > 900
    loop.deliver_due()
    assert len(index.posts) == 2, "it is not due yet"


def test_each_mark_has_the_place_of_the_document_that_it_counts(
    world: World, index: Index, endpoint: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a crash behind it counts that document twice."""
    monkeypatch.setattr(rag_export, "_BETWEEN_MARKS_SEC", 0.0)
    index.refused = {"Report 1"}
    marks: list[tuple[int, int, list[int]]] = []

    def look(_number: int) -> None:
        with world.database.reading() as session:
            told = session.scalars(select(Delivery.payload)).one().get("progress", {})
            before = session.scalars(select(Document.id).order_by(Document.id)).all()
        place = sum(one <= told.get("cursor", 0) for one in before)
        marks.append((place, told.get("exported", 0), [before.index(one) for one in told.get("refused", [])]))

    index.before_answer = look
    job = run_job(world, "Zero.", "One.", "Two.", "Three.")
    with delivering(world, endpoint):
        wait_for_export(world, job, "partial_failed")
        wait_until(lambda: len(marks) == 6, message="the document to be refused for the last time")
    assert marks == [(0, 0, []), (1, 1, []), (2, 1, [1]), (3, 2, [1]), (4, 3, [1]), (4, 3, [1])]


def test_documents_that_are_refused_are_left_out_after_three_tries(
    world: World, index: Index, endpoint: Settings
) -> None:
    index.refused = {"Report 1"}
    with delivering(world, endpoint):
        job = run_job(world, "One.", "Two.", "Three.")
        wait_until(lambda: delivery(world).status == DeliveryStatus.DELIVERED, message="the export to end")
    exported = told(world, job)
    assert (exported["status"], exported["exported"], exported["failed"]) == ("partial_failed", 2, 1)
    assert "HTTP 422" in exported["error"]
    assert "next_try_at" not in exported
    assert len(index.posts) == 2 + 3
    assert len(index.ids) == 2


def test_the_key_s_next_job_runs_while_a_delivery_hangs(
    world: World, index: Index, endpoint: Settings
) -> None:
    index.open.clear()

    def store(ctx: Context) -> Outcome:
        ctx.store(DocumentDraft(url="http://www.example.org/", title="Report", text="One."))
        return Done()

    with pool_of(world.database, endpoint, store, timing=QUICK):
        first = world.submit("news").id
        wait_until(lambda: index.posts, message="the endpoint to be asked")
        assert world.job(first).status == "done"
        assert world.key().status == "idle"
        second = world.submit("news").id
        wait_until(lambda: world.job(second).finished_at, message="the second job to end")
        assert told(world, world.job(first))["status"] == "running"
        index.open.set()
        wait_for_export(world, world.job(first))
    assert len(index.ids) == 1


def test_nothing_is_exported_unless_it_is_switched_on(world: World, settings: Settings) -> None:
    world.add_target("other")
    assert switch(world, None, on=False) == switches.Switches(False, {})
    assert run_job(world, "One.").result == {}
    switch(world, "other", on=True)
    assert run_job(world, "One.").result == {}
    assert "rag_export" in (run_job(world, "One.", target="other").result or {})
    switch(world, "other", on=None)
    assert run_job(world, "One.", target="other").result == {}
    switch(world, None, on=True)
    switch(world, "other", on=False)
    assert run_job(world, "One.", target="other").result == {}
    with pytest.raises(NotFoundError):
        switch(world, "nothing", on=True)
    with world.database.reading() as session:
        entries = session.scalars(
            select(AuditEntry).where(AuditEntry.object_kind == "rag_export").order_by(AuditEntry.id)
        ).all()
    assert [(entry.object_name, entry.after) for entry in entries][1:3] == [
        ("installation", {"on": False}),
        ("other", {"on": True}),
    ]


def test_only_done_jobs_export_and_nothing_that_others_stored_is_lost(
    world: World, index: Index, endpoint: Settings
) -> None:
    failed = run_job(world, "One.", ending=Failed("broken"))
    cancelled = run_job(world, "One.", "Two.", ending=Cancelled())
    trial = run_job(world, "One.", "Two.", "Never.", source="try")
    for job in (failed, cancelled, trial):
        assert "rag_export" not in (job.result or {})
    with delivering(world, endpoint):
        done = run_job(world, "One.", "Two.")
        assert wait_for_export(world, done)["exported"] == 2
        again = run_job(world, "One.", "Two.")
        assert wait_for_export(world, again)["exported"] == 0
    assert len(index.ids) == 2


def test_a_surprise_is_told_too(world: World, endpoint: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("webqueue.deliveries.rag_export.lines_of", broken)
    job = run_job(world, "One.")
    DeliveryLoop(world.database, deliverers(endpoint)).deliver_due()
    assert told(world, job)["status"] == "failed"
    assert told(world, job)["error"] == "ZeroDivisionError: a mistake"
    assert delivery(world).status == DeliveryStatus.QUEUED


def test_deliveries_that_are_through_are_forgotten_after_a_day(
    world: World, index: Index, endpoint: Settings
) -> None:
    loop = DeliveryLoop(world.database, deliverers(endpoint), poll_sec=0.05)
    for hours in (25, 23):
        job = run_job(world, f"Text of {hours}.")
        loop.deliver_due()
        assert told(world, job)["status"] == "completed"
        with world.database.transaction() as session:
            row = session.scalars(select(Delivery).where(Delivery.dedupe_key == f"rag_export:{job.id}")).one()
            assert row.delivered_at is not None
            row.delivered_at -= timedelta(hours=hours)
    index.answers = [503]
    waiting = run_job(world, "Not delivered.")
    DeliveryLoop(world.database, deliverers(endpoint), first_wait_sec=1000).deliver_due()
    DeliveryLoop(world.database, deliverers(endpoint)).deliver_due()
    with world.database.reading() as session:
        kept = session.scalars(select(Delivery.dedupe_key).order_by(Delivery.id)).all()
    assert kept == [f"rag_export:{job.id}", f"rag_export:{waiting.id}"]


def test_switching_it_off_ends_what_is_still_to_be_delivered(
    world: World, index: Index, endpoint: Settings
) -> None:
    index.answers = [503]
    job = run_job(world, "One.")
    with delivering(world, endpoint):
        wait_for_export(world, job, "failed")
        switch(world, None, on=False)
        wait_until(lambda: delivery(world).status == DeliveryStatus.DELIVERED, message="the export to end")
    assert "switched off" in told(world, job)["error"]
    assert index.ids == []


def test_what_was_dropped_while_it_was_off_goes_out_when_it_is_on_again(
    world: World, index: Index, endpoint: Settings
) -> None:
    with delivering(world, endpoint):
        first = run_job(world, "One.")
        wait_for_export(world, first)
    dropped = [run_job(world, "One.", "Two."), run_job(world, "One.", "Two.", "Three.")]
    switch(world, None, on=False)
    with delivering(world, endpoint):
        for job in dropped:
            wait_for_export(world, job, "failed")
        switch(world, None, on=True)
        again = run_job(world, "One.")
        assert wait_for_export(world, again)["exported"] == 2
    assert len(index.ids) == 3

    # The first window of a target, which has no beginning.
    world.add_target("other")
    never = run_job(world, "Four.", target="other")
    switch(world, None, on=False)
    with delivering(world, endpoint):
        wait_for_export(world, never, "failed")
        switch(world, None, on=True)
        assert wait_for_export(world, run_job(world, target="other"))["exported"] == 1


def test_a_file_that_somebody_else_has_put_there_is_made_whole(world: World, settings: Settings) -> None:
    """As a restored backup does, or an editor."""

    def export(*texts: str) -> list[str]:
        job = run_job(world, *texts)
        DeliveryLoop(world.database, deliverers(settings)).deliver_due()
        wait_for_export(world, job)
        return [line["text"] for line in lines_of(path)]

    path = world.database.instance_path / "exports" / "news.jsonl"
    assert export("One.") == ["One."]
    first = path.read_bytes()
    assert export("One.", "Two.") == ["One.", "Two."]
    path.write_bytes(first)
    assert export("One.", "Two.", "Three.") == ["One.", "Two.", "Three."]


def test_the_file_of_each_machine_that_delivers_is_whole(
    world: World, settings: Settings, database_url: str, tmp_path: Path
) -> None:
    other = Database(database_url, instance_path=tmp_path)

    def export(here: Database, *texts: str) -> tuple[int, list[str]]:
        job = run_job(world, *texts)
        DeliveryLoop(here, deliverers(settings)).deliver_due()
        path = here.instance_path / "exports" / "news.jsonl"
        return wait_for_export(world, job)["exported"], [line["text"] for line in lines_of(path)]

    try:
        assert export(world.database, "One.") == (1, ["One."])
        assert export(other, "One.", "Two.") == (2, ["One.", "Two."]), "the first one is on the other machine"
        assert export(other, "One.", "Two.", "Three.") == (1, ["One.", "Two.", "Three."])
        assert export(other, "One.") == (0, ["One.", "Two.", "Three."])
        assert export(other, "One.", "Two.", "3.")[0] == 1, "nothing was missed while nothing was new"
        assert export(world.database, "1.") == (3, ["1.", "Two.", "3."])
    finally:
        other.close()


def test_a_file_that_is_not_finished_takes_nobody_s_place(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    old = [b'{"id": "news:a:0"}\n', b'{"id": "news:b:0"}\n']
    first, second = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    assert replace_documents(path, {"news:a", "news:b"}, old, until=first) == 2

    def broken() -> Iterator[bytes]:
        yield b'{"id": "news:b:1"}\n'
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_documents(path, {"news:b"}, broken(), until=second)
    assert path.read_bytes() == b"".join(old)
    assert covered_until(path) == first
    replace_documents(path, {"news:b"}, [b'{"id": "news:b:1"}\n'], until=second)
    assert covered_until(path) == second
    replace_documents(path, set(), [], until=first)
    assert covered_until(path) == second, "what came late takes nothing away"
    assert [line["id"] for line in lines_of(path)] == ["news:a:0", "news:b:1"]


def test_a_file_is_its_owners_alone_until_somebody_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    until = datetime(2026, 1, 1, tzinfo=UTC)
    lines = [b'{"id": "news:a:0"}\n']
    part = tmp_path / ".news.jsonl.part"
    part.touch(0o644)  # left behind by a crash
    replace_documents(path, {"news:a"}, lines, until=until)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    replace_documents(path, {"news:a"}, lines, until=until)
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_settings_name_an_endpoint() -> None:
    with pytest.raises(Exception, match="WEBQUEUE_RAG_EXPORT_URL"):
        settings.load(rag_export_url="ftp://index.example.org/")
    assert "sesame" not in repr(settings.load(rag_export_token="sesame"))
