"""The demo in an installation of one's own: it shows what the pages are about, and leaves nothing behind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update

from tests.helpers.interleaving import Background, Meeting
from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from webqueue import clock, config, jobs
from webqueue.database import Database
from webqueue.errors import ConflictError, NotFoundError
from webqueue.handlers import registry
from webqueue.models import (
    AuditEntry,
    Document,
    Job,
    JobLog,
    JobSource,
    KeyEvent,
    RateKey,
    RateKeyNote,
    RateKeyStatus,
    Site,
    Target,
)
from webqueue.settings import Settings

OWN_SITE: dict[str, Any] = {"base_url": "http://www.example.org/"}
OWN_TARGET: dict[str, Any] = {
    "site": "example",
    "handler": "python",
    "params": {"function": "webqueue.demo.walk:walk", "kwargs": {"site": "gazette"}},
}


def load(database: Database) -> tuple[str, ...]:
    return database.run(lambda s: config.load_demo(s, by="ann", now=clock.now(s)))


def remove(database: Database) -> tuple[str, ...]:
    while not database.run(config.forget_demo_jobs).is_all:
        pass
    return database.run(lambda s: config.remove_demo(s, by="ann", now=clock.now(s)))


def submit(database: Database, code: str) -> None:
    database.run(lambda s: jobs.submit(s, code, source=JobSource.MANUAL, by="ann"))


def count(database: Database, model: Any) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


def jobs_of(database: Database, code: str) -> list[Job]:
    with database.reading() as session:
        return list(session.scalars(select(Job).where(Job.target_code == f"demo_{code}").order_by(Job.seq)))


def ended(database: Database, code: str, number: int = 1) -> Callable[[], bool]:
    def look() -> bool:
        found = jobs_of(database, code)
        return len(found) >= number and found[number - 1].finished_at is not None

    return look


def test_it_shows_what_may_come_and_leaves_nothing_behind(database: Database, settings: Settings) -> None:
    codes = load(database)
    assert len(codes) == count(database, Target) == 7
    assert count(database, Site) == 6
    # Quicker than for a person who looks on.
    database.run(lambda s: s.execute(update(Target).values(interval_sec=0.01)))
    for code in codes:
        submit(database, code)
    with pool_of(database, settings, {"python": registry.get("python")}):
        for target in ("gazette_notices", "gazette_archive", "rivers_notices", "forests_notices"):
            wait_until(ended(database, target), timeout=60)
            (job,) = jobs_of(database, target)
            assert (job.status, job.attention) == ("done", None)
        assert job.progress_current == job.progress_total == 18
        assert job.last_completed_page == 3

        wait_until(ended(database, "registry_notices"))
        (failed,) = jobs_of(database, "registry_notices")
        assert failed.status == "failed"
        assert "No link to a notice on list page 1 of Old Registry" in str(failed.error_msg)

        wait_until(ended(database, "museum_notices"))
        (museum,) = jobs_of(database, "museum_notices")
        assert museum.status == "done"
        assert "None of the notices has a text" in str(museum.attention)

        wait_until(lambda: len(jobs_of(database, "harbour_notices")) == 2)
        blocked, retry = jobs_of(database, "harbour_notices")
        assert (blocked.last_completed_page, retry.status) == (2, "queued")
        with database.reading() as session:
            shut_until = session.get_one(RateKey, "harbour.invalid").cooldown_until
            assert shut_until is not None
            assert shut_until > clock.now(session)
            assert session.get_one(Target, "demo_harbour_notices").learned_interval_sec == pytest.approx(1.01)
        database.run(lambda s: s.execute(update(Target).values(learned_interval_sec=None)))
        database.run(lambda s: jobs.lift_cooldown(s, "harbour.invalid", by="ann"))
        wait_until(ended(database, "harbour_notices", 2))
        assert jobs_of(database, "harbour_notices")[1].last_completed_page == 4

        with database.reading() as session:
            gazette, archive = (jobs_of(database, f"gazette_{one}")[0] for one in ("notices", "archive"))
            assert archive.started_at is not None
            assert gazette.finished_at is not None
            assert archive.started_at >= gazette.finished_at, "they share a key"
    assert count(database, Document) == 0
    assert count(database, JobLog) > 0

    assert remove(database) == tuple(sorted(codes))
    for model in (Target, Site, Job, JobLog, KeyEvent, RateKey):
        assert count(database, model) == 0, model
    with database.reading() as session:
        deleted = session.scalars(select(AuditEntry.object_name).where(AuditEntry.action == "deleted"))
        assert set(codes) < set(deleted)
    assert load(database) == codes, "it can be loaded again"


def test_a_walk_stops_when_it_is_cancelled(database: Database, settings: Settings) -> None:
    load(database)
    submit(database, "demo_gazette_notices")
    with pool_of(database, settings, {"python": registry.get("python")}):
        wait_until(lambda: jobs_of(database, "gazette_notices")[0].progress_current)
        (job,) = jobs_of(database, "gazette_notices")
        with pytest.raises(ConflictError, match="The demo has got 1 job meanwhile"):
            remove(database)
        assert database.run(lambda s: jobs.cancel(s, job.id, by="ann")) == "cancelling"
        wait_until(ended(database, "gazette_notices"))
    assert jobs_of(database, "gazette_notices")[0].status == "cancelled"


def test_it_is_not_loaded_among_what_is_there(database: Database) -> None:
    def put(code: str) -> None:
        database.run(lambda s: config.put_site(s, code, OWN_SITE, by="ann", now=clock.now(s)))

    put("demo_harbour")
    with pytest.raises(ConflictError, match="'demo_harbour' is in the way"):
        load(database)
    put("example")
    database.run(lambda s: config.delete_site(s, "demo_harbour", by="ann", now=clock.now(s)))
    database.run(lambda s: config.put_target(s, "news", OWN_TARGET, by="ann", now=clock.now(s)))
    with pytest.raises(ConflictError, match="There are targets already"):
        load(database)
    assert count(database, Target) == 1


def test_what_somebody_made_of_it_stays(database: Database) -> None:
    load(database)

    def put(code: str, **changes: Any) -> None:
        data = {**OWN_TARGET, **changes}
        database.run(lambda s: config.put_target(s, code, data, by="ann", now=clock.now(s)))

    database.run(lambda s: config.put_site(s, "example", OWN_SITE, by="ann", now=clock.now(s)))
    put("news")
    put("mine", site="demo_gazette")
    put("demo_museum_notices", site="demo_museum", params={"function": "os.path:join"})
    submit(database, "news")
    submit(database, "demo_rivers_notices")

    with database.reading() as session:
        demo = config.find_demo(session)
    assert len(demo.targets) == 6
    assert "demo_museum_notices" not in demo.targets
    assert (demo.jobs, len(demo.open_jobs)) == (1, 1)
    database.run(lambda s: config.pause_demo(s, by="ann", now=clock.now(s)))
    with database.reading() as session:
        paused = session.scalars(select(Target.code).where(Target.paused_at.is_not(None)))
        assert set(paused) == set(demo.targets)

    database.run(lambda s: jobs.cancel(s, demo.open_jobs[0], by="ann"))
    remove(database)
    with database.reading() as session:
        assert set(session.scalars(select(Target.code))) == {"news", "mine", "demo_museum_notices"}
        assert set(session.scalars(select(Site.code))) == {"example", "demo_gazette", "demo_museum"}
        assert set(session.scalars(select(Job.target_code))) == {"news"}
        left = {key.key: key.status for key in session.scalars(select(RateKey))}
    assert left == dict.fromkeys(("www.example.org", "gazette.invalid", "museum.invalid"), RateKeyStatus.IDLE)


def edit_target(database: Database, code: str, **changes: Any) -> None:
    with database.reading() as session:
        data = {**config.target_data(session.get_one(Target, code)), **changes}
    database.run(lambda s: config.put_target(s, code, data, by="ann", now=clock.now(s)))


def edit_site(database: Database, code: str, **changes: Any) -> None:
    with database.reading() as session:
        data = {**config.site_data(session.get_one(Site, code)), **changes}
    database.run(lambda s: config.put_site(s, code, data, by="ann", now=clock.now(s)))


def own_site(database: Database, code: str, **more: Any) -> None:
    data = {**OWN_SITE, **more}
    database.run(lambda s: config.put_site(s, code, data, by="ann", now=clock.now(s)))


def names_of(database: Database, column: Any) -> set[str]:
    with database.reading() as session:
        return set(session.scalars(select(column)))


def cancelled_run(database: Database, code: str) -> None:
    submitted = database.run(lambda s: jobs.submit(s, code, source=JobSource.MANUAL, by="ann"))
    database.run(lambda s: jobs.cancel(s, submitted.id, by="ann"))


def test_a_target_that_was_moved_takes_no_site_of_somebodys_own_with_it(database: Database) -> None:
    load(database)
    own_site(database, "example")
    edit_target(database, "demo_rivers_notices", site="example", tags=["mine"], note="Moved.")
    remove(database)
    assert names_of(database, Target.code) == set()
    assert names_of(database, Site.code) == {"example"}
    assert names_of(database, RateKey.key) == {"www.example.org"}
    assert len(load(database)) == 7


def test_sites_and_keys_that_other_jobs_had_stay(database: Database) -> None:
    load(database)

    def put(code: str, site: str) -> None:
        data = {**OWN_TARGET, "site": site}
        database.run(lambda s: config.put_target(s, code, data, by="ann", now=clock.now(s)))

    def put_site(**fields: Any) -> None:
        data = {**OWN_SITE, **fields}
        database.run(lambda s: config.put_site(s, "example", data, by="ann", now=clock.now(s)))

    put_site(rate_key="harbour.invalid")
    put("moved", "demo_museum")
    put("rekeyed", "example")
    for code in ("moved", "rekeyed"):
        submit(database, code)
        with database.reading() as session:
            job = session.scalars(select(Job.id).where(Job.target_code == code)).one()
        database.run(functools.partial(jobs.cancel, job_id=job, by="ann"))
    put_site()
    put("moved", "example")
    remove(database)
    with database.reading() as session:
        assert set(session.scalars(select(Site.code))) == {"example", "demo_museum"}
        kept = set(session.scalars(select(RateKey.key)))
    assert kept == {"www.example.org", "museum.invalid", "harbour.invalid"}


def test_the_key_of_a_site_of_somebodys_own_keeps_its_note(database: Database) -> None:
    load(database)
    own_site(database, "example", rate_key="ministries.invalid")

    def note(session: Any) -> None:
        for key in ("ministries.invalid", "museum.invalid"):
            config.describe_key(
                session, key, owner="ann", note="Be gentle.", by="ann", now=clock.now(session)
            )
            jobs.pause_key(session, key, by="ann")

    database.run(note)
    remove(database)
    assert names_of(database, RateKey.key) == names_of(database, RateKeyNote.key) == {"ministries.invalid"}
    assert names_of(database, KeyEvent.rate_key) == {"ministries.invalid"}


def test_a_site_that_got_another_address_stays(database: Database) -> None:
    load(database)
    edit_site(database, "demo_museum", base_url="http://www.example.org/", name="My museum")
    remove(database)
    assert names_of(database, Site.code) == {"demo_museum"}
    assert names_of(database, RateKey.key) == {"www.example.org"}


def test_a_target_that_has_documents_stays(database: Database) -> None:
    load(database)
    cancelled_run(database, "demo_museum_notices")

    def store(session: Any) -> None:
        now = clock.now(session)
        session.add(
            Document(
                target_code="demo_museum_notices", url="http://www.example.org/1", url_hash="1", content_hash="1",
                first_seen_at=now, last_seen_at=now, changed_at=now,
                first_job_id="1", last_job_id="1", last_root_id="1",
            )
        )  # fmt: skip

    database.run(store)
    remove(database)
    assert names_of(database, Target.code) == names_of(database, Job.target_code) == {"demo_museum_notices"}
    assert names_of(database, Site.code) == {"demo_museum"}
    with database.reading() as session:
        assert config.find_demo(session).targets == (), "it is somebody's own now"


def test_keys_of_a_rate_group_stay_and_those_from_before_go(database: Database) -> None:
    load(database)
    cancelled_run(database, "demo_gazette_notices")
    edit_site(database, "demo_gazette", adapter="list")
    group = "rate_groups:\n  - {adapter: list, host_suffix: gazette.invalid, key: nobody}\n"
    database.run(lambda s: config.import_file(s, group, by="ann", now=clock.now(s)))
    submit(database, "demo_gazette_archive")
    assert {job.rate_key for job in jobs_of(database, "gazette_archive")} == {"nobody"}
    database.run(lambda s: jobs.cancel(s, jobs_of(database, "gazette_archive")[0].id, by="ann"))
    remove(database)
    assert names_of(database, Site.code) == set()
    assert names_of(database, RateKey.key) == {"nobody"}


def test_who_runs_a_target_while_it_is_taken_out_is_told_that_it_is_gone(
    database: Database, open_database: Callable[[], Database]
) -> None:
    """Its key is there when the run begins, and deleted when its lock is got."""
    load(database)
    meeting = Meeting(database, open_database())
    with database.transaction() as session:
        session.scalars(select(RateKey).with_for_update()).all()
        rival = Background(
            lambda: meeting.other.run(
                lambda s: jobs.submit(s, "demo_museum_notices", source=JobSource.MANUAL, by="bob")
            )
        )
        if not database.is_sqlite:
            meeting.wait_until_blocked(rival)
        config.remove_demo(session, by="ann", now=clock.now(session))
    with pytest.raises(NotFoundError):
        rival.result()
    for model in (Target, Site, Job, RateKey):
        assert count(database, model) == 0, model
