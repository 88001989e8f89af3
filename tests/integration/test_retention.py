"""Rules of single targets, logs by count and age, and a page that tells what the next round removes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from tests.helpers.browsing import Browser
from tests.helpers.world import Clock, World
from webqueue import clock, jobs
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.jobs import Rule
from webqueue.models import AuditEntry, Document, Job, JobLog
from webqueue.outcomes import Done
from webqueue.queries.kept_jobs import kept_jobs
from webqueue.settings import Settings
from webqueue.worker.keeping import HistoryKeeper


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    world = World(database)
    world.add_site()
    for code in ("news", "more"):
        world.add_target(code)
    return world


def run(world: World, target: str, times: int) -> None:
    for _ in range(times):
        world.submit(target)
        claimed = world.claim_one()
        with world.database.transaction() as session:
            session.add(JobLog(job_seq=claimed.job.seq, at=clock.now(session), level="info", message="line"))
        world.finish(claimed, Done())


def set_rule(world: World, target: str, rule: Rule) -> None:
    world.database.run(lambda s: jobs.set_rule(s, target, rule, by="anna", now=clock.now(s)))


def counts(world: World) -> dict[str, tuple[int, int]]:
    """Of each target its jobs, and those of them that have a log."""
    with world.database.reading() as session:
        rows = session.execute(
            select(Job.target_code, func.count(Job.seq.distinct()), func.count(JobLog.job_seq.distinct()))
            .outerjoin(JobLog, JobLog.job_seq == Job.seq)
            .group_by(Job.target_code)
        )
        return {target: (number, logs) for target, number, logs in rows}


def told(world: World, settings: Settings) -> dict[str, tuple[int, int]]:
    with world.database.reading() as session:
        _default, rows = kept_jobs(session, settings)
    return {row.target: (row.goes, row.logs_go) for row in rows}


def test_a_target_keeps_what_its_own_rule_says_and_the_page_told_it(
    world: World, now: Clock, settings: Settings
) -> None:
    settings = settings.model_copy(update={"keep_jobs": 20, "keep_logs": 10})
    run(world, "news", 25)
    run(world, "more", 25)
    set_rule(world, "more", Rule(jobs=3, logs=1))
    assert told(world, settings) == {"news": (5, 15), "more": (22, 24)}
    HistoryKeeper(world.database, settings).keep()
    assert counts(world) == {"news": (20, 10), "more": (3, 1)}
    assert told(world, settings) == {"news": (0, 0), "more": (0, 0)}

    # A longer rule than the installation's, which has an end by age as well.
    set_rule(world, "more", Rule(days=10_000, logs=0))
    now.advance(401 * 86_400)
    HistoryKeeper(world.database, settings).keep()
    assert counts(world) == {"more": (3, 0)}
    set_rule(world, "more", Rule())
    HistoryKeeper(world.database, settings).keep()
    assert counts(world) == {}
    with world.database.reading() as session:
        changes = [row.after for row in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
        assert changes == [{"jobs": 3, "logs": 1}, {"days": 10_000, "logs": 0}, {}]
        assert session.scalar(select(func.count()).select_from(Document)) == 0


def test_logs_go_by_age_while_their_jobs_stay(world: World, now: Clock, settings: Settings) -> None:
    settings = settings.model_copy(update={"keep_logs_days": 30})
    run(world, "news", 2)
    now.advance(timedelta(days=31).total_seconds())
    run(world, "news", 1)
    HistoryKeeper(world.database, settings).keep()
    assert counts(world) == {"news": (3, 1)}


def test_small_batches_and_running_jobs(world: World, now: Clock, settings: Settings) -> None:
    run(world, "news", 3)
    world.submit("news")
    running = world.claim_one()
    set_rule(world, "news", Rule(jobs=1, logs=0))
    keeper = HistoryKeeper(world.database, settings)
    assert keeper.keep() > 100, "it was one batch"
    assert counts(world) == {"news": (2, 0)}
    assert world.job(running.lease.job_id).status == "running"


def test_long_logs_go_in_several_batches(
    world: World, now: Clock, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(world, "news", 3)
    set_rule(world, "news", Rule(logs=0))
    monkeypatch.setattr(jobs.forget_logs, "__kwdefaults__", {"limit": 2})
    keeper = HistoryKeeper(world.database, settings)
    with world.database.reading() as session:
        before = session.scalar(select(func.count()).select_from(JobLog)) or 0
    assert keeper.keep() < 10, "there are more"
    with world.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(JobLog)) == before - 2
    while keeper.keep() < 10:
        pass
    assert counts(world) == {"news": (3, 0)}


@pytest.mark.parametrize("engine_name", ["sqlite"])
class TestPage:
    def test_it_shows_and_changes_rules(self, world: World, settings: Settings) -> None:
        run(world, "news", 3)
        app = create_app(settings, world.database)
        browser = Browser(app, world.database)
        set_rule(world, "news", Rule(jobs=1))
        page = browser.get("/settings/retention").text
        assert "its own rule" in page
        assert '<td data-l="Next round removes" class="num">2' in page
        wrong = browser.post("/settings/retention", target="news", jobs="x", days="", logs="", log_days="")
        assert wrong.status_code == 422
        assert "must be a whole number" in wrong.text
        wrong = browser.post("/settings/retention", target="news", jobs="0", days="", logs="", log_days="")
        assert "must be 1 to 1,000,000" in wrong.text
        assert browser.post("/settings/retention", target="news").status_code == 303
        assert "its own rule" not in browser.get("/settings/retention").text
        viewer = Browser(app, world.database, "viewer")
        assert "Give a target a rule of its own" not in viewer.get("/settings/retention").text
        assert viewer.post("/settings/retention", target="news", jobs="1").status_code == 403

    def test_bounds(self, world: World) -> None:
        with pytest.raises(InvalidInputError, match="36,500"):
            set_rule(world, "news", Rule(days=40_000))
