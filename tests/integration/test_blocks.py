"""What a block makes of keys and jobs: charges, evidence, lifts, the list of signatures (DESIGN section 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.conftest import Serve
from tests.helpers.fetching import Scripted
from tests.helpers.pools import pool_of
from tests.helpers.servers.base import Exchange
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World, assert_settled
from webqueue import clock, jobs, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.handlers.protocol import Context, Request
from webqueue.models import AuditEntry, KeyEvent, RateGroupRow, StoredSetting
from webqueue.outcomes import Blocked, Done
from webqueue.politeness.challenges import (
    SETTING,
    signatures_in_force,
    store_signatures,
    stored_signatures,
)
from webqueue.settings import Settings

OTHER = "other.example.org"


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    world.add_target("news", interval_sec=10)
    world.add_site("other", f"http://{OTHER}/")
    world.add_target("others", "other")
    return world


def events(world: World, key: str) -> list[KeyEvent]:
    with world.database.reading() as session:
        return list(session.scalars(select(KeyEvent).where(KeyEvent.rate_key == key).order_by(KeyEvent.id)))


def test_a_block_met_through_a_redirect_is_charged_to_the_host_that_answered_too(
    world: World, now: Clock
) -> None:
    world.submit("news")
    news = world.claim_one()
    waiting = world.submit("others").id

    world.finish(news, Blocked("challenge page (X, HTTP 302)", retry_after=900, rate_key=OTHER))

    for key in ("www.example.org", OTHER):
        row = world.key(key)
        assert row.cooldown_until == now.now + timedelta(seconds=900)
        assert (row.cooldown_cause, row.consecutive_blocks) == ("challenge page (X, HTTP 302)", 1)
        assert [event.kind for event in events(world, key)] == ["blocked"]
    job = world.job(news.lease.job_id)
    assert job.result is not None
    assert job.result["charged_rate_key"] == OTHER
    assert world.job(waiting).status == "queued"
    with world.database.reading() as session:
        assert_settled(session)


def test_a_charged_key_starts_nothing_before_its_cooldown_ends(world: World, now: Clock) -> None:
    world.submit("news")
    claimed = world.claim_one()
    world.finish(claimed, Blocked("HTTP 429", rate_key=OTHER))
    world.submit("others")

    now.advance(599)
    assert world.claim() == []
    now.advance(1)
    assert {one.lease.rate_key for one in world.claim()} == {"www.example.org", OTHER}


def test_a_charged_key_that_nobody_has_seen_is_made(world: World, now: Clock) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429", rate_key="captcha.example.net"))

    assert world.key("captcha.example.net").cooldown_until == now.now + timedelta(seconds=600)


@pytest.mark.parametrize(("own", "charged"), [(1.0, 3.0), (3.0, 1.0)])
def test_a_charged_key_grows_its_cooldown_by_the_factor_of_its_own_group(
    world: World, now: Clock, own: float, charged: float
) -> None:
    def groups(session: Session) -> None:
        for position, (host, factor) in enumerate([("www.example.org", own), (OTHER, charged)], 10):
            session.add(
                RateGroupRow(
                    position=position, key=host, adapter="list", host_suffix=host, cooldown_factor=factor
                )
            )

    world.database.run(groups)
    for _block in range(3):
        world.submit("news")
        world.finish(world.claim_one(), Blocked("HTTP 429", rate_key=OTHER))
        now.advance(7200)
        world.cancel(next(job.id for job in world.jobs() if job.status == "queued"))

    blocked_at = now.now - timedelta(seconds=7200)
    assert world.key().cooldown_until == blocked_at + timedelta(seconds=600 * own)
    assert world.key(OTHER).cooldown_until == blocked_at + timedelta(seconds=600 * charged)


def test_the_jobs_own_key_is_charged_once(world: World, now: Clock) -> None:
    world.submit("news")
    world.finish(world.claim_one(), Blocked("HTTP 429", rate_key="www.example.org"))

    assert world.key().consecutive_blocks == 1


def test_a_running_job_of_the_charged_key_keeps_its_lease(world: World, now: Clock) -> None:
    world.submit("news")
    world.submit("others")
    by_key = {one.lease.rate_key: one for one in world.claim()}

    world.finish(by_key["www.example.org"], Blocked("HTTP 429", rate_key=OTHER))

    assert world.key(OTHER).status == "leased"
    world.finish(by_key[OTHER], Done())
    row = world.key(OTHER)
    assert (row.status, row.consecutive_blocks) == ("idle", 0)
    assert row.cooldown_until == now.now + timedelta(seconds=600)


def test_a_key_that_no_table_could_hold_is_not_charged(world: World, settings: Settings) -> None:
    with pool_of(world.database, settings, lambda ctx: Blocked("HTTP 429", rate_key="x" * 1000)):
        job_id = world.submit("news").id
        wait_until(lambda: world.job(job_id).finished_at)

    assert str(world.job(job_id).error_msg).startswith("cooldown_abort; auto_retry_job=")
    assert world.key().consecutive_blocks == 1


def test_the_last_responses_are_kept_with_the_cooldown(
    world: World, settings: Settings, serve: Serve
) -> None:
    served = iter(range(1000))

    def page(exchange: Exchange) -> None:
        exchange.send("fine", status=200 if next(served) < 24 else 429, headers={"Retry-After": "1200"})

    server = serve(Scripted({"/page": page}))
    world.add_site("near", server.url, obey_robots=False)
    world.add_target("near_news", "near")

    def crawl(ctx: Context) -> Any:
        while True:
            ctx.fetch(Request(f"{server.url}/page?password=geheim"))

    with pool_of(world.database, settings, crawl):
        job_id = world.submit("near_news").id
        wait_until(lambda: world.job(job_id).finished_at)

    (event,) = events(world, "127.0.0.1")
    assert event.job_id == job_id
    data = event.data
    assert (data["cause"], data["seconds"], data["retry_after"]) == ("HTTP 429 from 127.0.0.1", 1200, 1200)
    assert data["consecutive_blocks"] == 1
    assert data["until"] == world.key("127.0.0.1").cooldown_until.isoformat()  # type: ignore[union-attr]
    assert [one["status"] for one in data["responses"]] == [200] * 19 + [429]
    assert set(data["responses"][0]) == {"at", "method", "url", "status", "error", "bytes", "ms"}
    assert "geheim" not in str(data)
    with world.database.reading() as session:
        (row,) = queries.key_events(session, "127.0.0.1")
    assert row.data == data


def test_a_lift_does_not_survive_the_next_block(world: World, now: Clock) -> None:
    world.submit("news")
    for _ in range(2):
        world.finish(world.claim_one(), Blocked("HTTP 429"))
        world.database.run(lambda session: jobs.lift_cooldown(session, "www.example.org", by="anna"))
        assert world.key().cooldown_until is None

    world.finish(world.claim_one(), Blocked("HTTP 503"))

    row = world.key()
    # The third in a row: a lift forgives nothing.
    assert row.consecutive_blocks == 3
    assert row.cooldown_until == now.now + timedelta(seconds=1200)
    assert world.claim() == []
    assert [event.kind for event in events(world, "www.example.org")] == [
        "blocked",
        "cooldown_lifted",
        "blocked",
        "cooldown_lifted",
        "blocked",
    ]


def test_a_lift_while_a_job_runs_does_not_survive_its_block(world: World, now: Clock) -> None:
    world.submit("news")
    world.submit("others")
    by_key = {one.lease.rate_key: one for one in world.claim()}
    world.finish(by_key[OTHER], Blocked("HTTP 429", rate_key="www.example.org"))
    world.database.run(lambda session: jobs.lift_cooldown(session, "www.example.org", by="anna"))
    world.finish(by_key["www.example.org"], Blocked("HTTP 429"))

    assert world.key().cooldown_until == now.now + timedelta(seconds=600)


def test_signatures_are_stored_checked_and_audited(database: Database, now: Clock) -> None:
    def store(data: Any) -> None:
        database.run(lambda session: store_signatures(session, data, by="anna", now=now.now))

    store([{"name": "ours", "body": "bitte warten"}, {"name": "Anubis", "enabled": False}])
    with database.reading() as session:
        names = [one.name for one in signatures_in_force(session)]
        assert [one.name for one in stored_signatures(session)] == ["ours", "Anubis"]
    assert names[0] == "ours"
    assert "Anubis" not in names
    assert "Cloudflare" in names

    with pytest.raises(InvalidInputError):
        store([{"name": "ours", "body": "("}])
    with database.reading() as session:
        assert [one.name for one in signatures_in_force(session)] == names
        (entry,) = session.scalars(select(AuditEntry))
        assert (entry.by, entry.object_name) == ("anna", SETTING)

    store([])
    with database.reading() as session:
        assert "Anubis" in [one.name for one in signatures_in_force(session)]


def test_a_stored_list_that_cannot_be_read_stops_no_crawl(database: Database, now: Clock) -> None:
    with database.transaction() as session:
        session.add(StoredSetting(name=SETTING, value=[{"name": "?"}], changed_at=now.now))
    with database.reading() as session:
        assert "Cloudflare" in [one.name for one in signatures_in_force(session)]


def test_an_edit_of_the_list_holds_from_the_next_job_on(
    world: World, settings: Settings, serve: Serve
) -> None:
    server = serve(Scripted({"/": lambda exchange: exchange.send("<p>Bitte warten</p>")}))
    world.add_site("near", server.url, obey_robots=False)
    world.add_target("near_news", "near")

    def crawl(ctx: Context) -> Done:
        return Done({"status": ctx.fetch(Request(server.url)).status})

    def run() -> str:
        job_id = world.submit("near_news").id
        wait_until(lambda: world.job(job_id).finished_at)
        return str(world.job(job_id).error_msg)

    with pool_of(world.database, settings, crawl):
        assert run() == "None"
        with world.database.transaction() as session:
            store_signatures(
                session, [{"name": "ours", "body": "bitte warten"}], by="anna", now=clock.now(session)
            )
        assert run().startswith("cooldown_abort")
    assert world.key("127.0.0.1").cooldown_cause == "challenge page (ours, HTTP 200) from 127.0.0.1"
