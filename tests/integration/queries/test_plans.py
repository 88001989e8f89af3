"""The hot path runs on indexes, whatever the tables look like: the statements that are really sent are explained.

20,000 jobs in 1,000 keys, of which one has 15,000 waiting: what a planner believes of the average key is wrong for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from tests.helpers.plans import Sent, recorded, scans
from tests.helpers.world import START, Clock, World
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.models import Job, RateKey, Site, Target
from webqueue.outcomes import Blocked, Done, Failed

TABLES = frozenset({"jobs", "rate_keys"})
KEYS = 1_000
DEEP = "deep.test"
WAITING = 15_000
DONE = 5_000
NOW = START + timedelta(days=30)


@pytest.fixture
def now() -> Iterator[Clock]:
    moving = Clock(NOW)
    with clock.replaced(moving):
        yield moving


@pytest.fixture
def world(database: Database, now: Clock) -> World:
    with database.transaction() as session:
        fill(session)
    return World(database)


def fill(session: Session) -> None:
    """Most keys have done jobs only; one has nearly all that wait, and one in twenty runs something."""
    names = [DEEP, *(f"h{number:04}.test" for number in range(KEYS - 1))]
    stamp = {"created_at": START, "changed_at": START}
    session.execute(
        insert(Site),
        [
            {"code": name, "name": name, "base_url": f"http://{name}/", "host": name, "adapter": "list"}
            | stamp
            for name in names
        ],
    )
    session.execute(
        insert(Target),
        [
            {"code": name, "site_code": name, "handler": "python", "interval_sec": 0.0, "retry_times": 1}
            | stamp
            for name in names
        ],
    )
    session.execute(insert(RateKey), [_key(name, number) for number, name in enumerate(names)])
    rows = [_job(number, names[1 + number % (KEYS - 1)], "done") for number in range(DONE)]
    rows += [_job(DONE + number, DEEP, "queued") for number in range(WAITING)]
    rows += [_job(DONE + WAITING + number, names[number], "running") for number in range(20, KEYS, 20)]
    for start in range(0, len(rows), 1_000):
        session.execute(insert(Job), rows[start : start + 1_000])


def _key(name: str, number: int) -> dict[str, Any]:
    running = number > 0 and number % 20 == 0
    until = NOW + timedelta(seconds=30 + number)
    return {
        "key": name,
        "status": "leased" if running else "idle",
        "retry_at": START if name == DEEP else until if running else None,
        "leased_by": f"w{number % 7}" if running else None,
        "lease_token": 1,
        "created_at": START,
        "modified_at": START,
    }


def _job(number: int, name: str, status: str) -> dict[str, Any]:
    due = START + timedelta(seconds=number)
    running = status == "running"
    return {
        "id": f"{number:012x}",
        "root_id": f"{number:012x}",
        "site_code": name,
        "target_code": name,
        "rate_key": name,
        "source": "schedule",
        "status": status,
        "due_at": due,
        "retry_at": None if status == "done" else NOW + timedelta(seconds=30 + number) if running else due,
        "enqueued_at": due,
        "started_at": due if running else None,
        "finished_at": due if status == "done" else None,
        "modified_at": due,
        "lease_token": 1,
        "leased_by": f"w{number % 7}" if running else None,
    }


def explain(database: Database, sent: list[Sent]) -> list[str]:
    """What is wrong with the plans, each with its statement."""
    problems = []
    for one in _distinct(sent):
        with database.write_engine.connect() as connection:
            problems += [f"{part}\n    {one}" for part in scans(connection, one, TABLES)]
            connection.rollback()
    return problems


def _distinct(sent: list[Sent]) -> list[Sent]:
    return list({one.text: one for one in sent}.values())


def walk(world: World, now: Clock) -> None:
    """Every verb of the hot path, on the deep key and on another."""
    run = world.database.run
    shallow, other = "h0001.test", "h0003.test"
    for code in (DEEP, shallow):
        submitted = world.submit(code, force=True)
        assert not submitted.deduplicated
        assert world.submit(code, force=True).deduplicated
        assert submitted.position == (1_001 if code == DEEP else 1)
    world.submit(other, source="schedule", tick=NOW)
    run(lambda session: jobs.submit(session, other, source="schedule", tick=NOW))
    claimed = {one.lease.rate_key: one for one in world.claim("w9", limit=3)}
    assert set(claimed) == {DEEP, shallow, other}
    leases = [one.lease for one in claimed.values()]
    with world.database.heartbeat() as session:
        assert jobs.renew(session, "w9", leases) == set()
    deep = claimed[DEEP].lease
    verbs: list[Callable[[Session], Any]] = [
        lambda session: jobs.stop_requests(session, "w9"),
        lambda session: jobs.progress(session, deep, current=1, total=2),
        lambda session: jobs.checkpoint(session, deep, 1, {}),
        lambda session: jobs.add_log_lines(session, deep, [(NOW, "info", "line")]),
        lambda session: jobs.record_interval(session, deep, 3.0),
        jobs.earliest_due,
        jobs.paused_all,
        lambda session: jobs.cancel(session, f"{DONE + 7:012x}", by="anna"),
        lambda session: jobs.cancel(session, claimed[other].lease.job_id, by="anna"),
        lambda session: jobs.move_to_front(session, f"{DONE + 14_000:012x}", by="anna"),
        lambda session: jobs.pause_key(session, DEEP, by="anna"),
        lambda session: jobs.resume_key(session, DEEP, by="anna"),
    ]
    for verb in verbs:
        run(verb)
    now.advance(1)
    world.finish(claimed[DEEP], Failed("no"))
    world.finish(claimed[shallow], Blocked("HTTP 429"))
    world.finish(claimed[other], Done())
    [again] = world.claim("w9", limit=3)
    world.hand_back(again)
    world.claim("w9", limit=3)
    run(lambda session: jobs.free_dead(session, ["w9"]))
    now.advance(70)
    assert world.claim("w8", limit=3)  # takes over what ended


@pytest.mark.parametrize("analyzed", [True, False], ids=["analyzed", "unanalyzed"])
def test_no_verb_scans_jobs_or_keys(world: World, database: Database, now: Clock, analyzed: bool) -> None:
    if analyzed:
        with database.transaction() as session:
            session.execute(text("ANALYZE"))
    with recorded(database) as sent:
        walk(world, now)
    assert len(_distinct(sent)) > 25
    problems = explain(database, sent)
    assert not problems, "\n".join(problems)
