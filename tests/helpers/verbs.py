"""Verbs of jobs and keys, each to be run in a session, and two of them that meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.orm import Session

from tests.helpers.interleaving import Meeting
from tests.helpers.world import World, assert_settled
from webqueue import jobs
from webqueue.models import Site
from webqueue.outcomes import Done

KEY = "www.example.org"
Verb = Callable[[Session], Any]
both_ways = pytest.mark.parametrize("swapped", [False, True], ids=["as_named", "swapped"])


def settled(world: World) -> None:
    with world.database.reading() as session:
        assert_settled(session)


def submit(target: str, **more: Any) -> Verb:
    return lambda session: jobs.submit(session, target, **{"source": "api", **more})


def finish(world: World, claimed: jobs.Claimed, outcome: Any = None) -> Verb:
    return lambda session: jobs.finish(session, claimed.lease, outcome or Done(), world.policy)


def claim(worker: str = "w2", limit: int = 10) -> Verb:
    return lambda session: jobs.claim(session, worker, limit=limit, life=lambda _worker: jobs.Life.UNKNOWN)


def cancel(job_id: str) -> Verb:
    return lambda session: jobs.cancel(session, job_id, by="anna")


def pause(session: Session) -> None:
    jobs.pause_key(session, KEY, by="anna")


def resume(session: Session) -> None:
    jobs.resume_key(session, KEY, by="anna")


def lift(session: Session) -> None:
    jobs.lift_cooldown(session, KEY, by="anna")


def renew(claimed: jobs.Claimed) -> Verb:
    return lambda session: jobs.renew(session, claimed.lease.worker_id, [claimed.lease])


def meet(meeting: Meeting, first: Verb, second: Verb, *, swapped: bool) -> tuple[Any, Any]:
    """Both results, in the order of the arguments, whichever of the two came first."""
    if swapped:
        result, rival = meeting.run(second, first)
        return rival.result(), result
    result, rival = meeting.run(first, second)
    return result, rival.result()


def world_run(world: World) -> jobs.Claimed:
    world.submit("news")
    return world.claim_one()


def rekey(world: World, key: str | None) -> None:
    world.database.run(change_key(key))


def change_key(key: str | None) -> Verb:
    def change(session: Session) -> None:
        session.get_one(Site, "example").rate_key = key
        session.flush()
        jobs.rekey_site(session, "example")

    return change
