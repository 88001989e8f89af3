"""Faults of the systems that webqueue follows, which must not come along (SEEDS C): those without a test elsewhere.

docs/explanation/faults-of-the-sources.md names the test of each; the last test here looks that they exist.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from tests.conftest import Serve
from tests.helpers.fetching import Scripted
from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.handlers.protocol import Context, FetchError, Request
from webqueue.leases import run_due
from webqueue.models import Delivery, DeliveryStatus
from webqueue.outcomes import Blocked, Done
from webqueue.politeness import keys
from webqueue.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "faults-of-the-sources.md"


def test_a_look_up_that_failed_is_made_anew(
    world: World, settings: Settings, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEEDS C 2: one failed look-up of a rate key was remembered for ever."""
    server = serve(Scripted({"/": lambda exchange: exchange.send("fine")}), host="127.0.0.2")
    world.add_site("near", server.url, obey_robots=False, rate_key="www.example.org")
    asked: list[str] = []

    def resolve(session: Session, url: str, adapter: str | None = None) -> str:
        asked.append(url)
        if len(asked) == 1:
            raise InvalidInputError.of("url", "the look-up failed")
        return keys.resolve_url(session, url, adapter)

    monkeypatch.setattr("webqueue.worker.services.resolve_url", resolve)

    def run(ctx: Context) -> Done:
        try:
            ctx.fetch(Request(server.url))
        except (InvalidInputError, FetchError) as error:
            return Done({"first": str(error), "then": ctx.fetch(Request(server.url)).status})
        raise AssertionError("the look-up did not fail")

    with pool_of(world.database, settings, run):
        job_id = world.submit("news").id
        wait_until(lambda: world.job(job_id).finished_at)

    result = world.job(job_id).result
    assert result is not None
    assert "the look-up failed" in result["first"]
    assert result["then"] == 200


def test_cooldown_and_counts_survive_a_restart(
    world: World, now: Clock, open_database: Callable[[], Database]
) -> None:
    """SEEDS C 4: cooldowns, and the count of cooldown retries, lived in memory."""
    world.submit("news")
    for _ in range(3):
        world.finish(world.claim_one(), Blocked("HTTP 429"))
        now.now = world.key().cooldown_until or now.now
    world.finish(world.claim_one(), Blocked("HTTP 429", retry_after=3600))
    world.database.close()

    again = World(open_database())

    key = again.key()
    assert (key.consecutive_blocks, key.cooldown_cause) == (4, "HTTP 429")
    assert key.cooldown_until == now.now + timedelta(hours=2), (
        "an hour, doubled by the fourth in a row, at most two"
    )
    assert again.claim() == []
    now.advance(7200)
    job = again.claim_one().job
    assert (job.source, job.cooldown_retry_count) == ("retry", 4)
    assert again.target("news").learned_interval_sec is not None


@pytest.mark.parametrize("place", ["release", "settle", "jobs_sql.update_running"])
def test_a_blocked_job_is_closed_and_retried_in_one_transaction(
    world: World, now: Clock, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """SEEDS C 8: the retry was queued first, and a crash before the job was closed made two."""
    world.submit("news")
    claimed = world.claim_one()
    with monkeypatch.context() as patch:

        def crash(*_: object, **__: object) -> None:
            raise RuntimeError("crash")

        patch.setattr(f"webqueue.job_verbs.finishing.{place}", crash)
        with pytest.raises(RuntimeError, match="crash"):
            world.finish(claimed, Blocked("HTTP 429"))
    (job,) = world.jobs()
    assert job.status == "running"
    assert world.key().cooldown_until is None

    world.finish(claimed, Blocked("HTTP 429"))
    assert [job.status for job in world.jobs()] == ["failed", "queued"]


def test_a_delivery_that_a_crash_interrupted_is_taken_up(database: Database, now: Clock) -> None:
    """SEEDS C 11: an export stayed "running" for ever after a crash."""
    with database.transaction() as session:
        session.add(
            Delivery(kind="export", dedupe_key="export:1", created_at=now.now, retry_at=now.now, payload={})
        )

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_due(Delivery, crash, database=database)
    assert run_due(Delivery, lambda *_: {"status": DeliveryStatus.DELIVERED}, database=database).handled == 0
    now.advance(61)
    assert run_due(Delivery, lambda *_: {"status": DeliveryStatus.DELIVERED}, database=database).handled == 1
    with database.reading() as session:
        assert session.get_one(Delivery, 1).status == DeliveryStatus.DELIVERED


def test_every_fault_has_its_test_named_and_the_test_exists() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 17))
    for number, cell in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)
        assert named, f"fault {number} has no test"
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, (
                f"fault {number} names {path}::{name}, which does not exist"
            )
