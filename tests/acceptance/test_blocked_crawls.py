"""Crawls that are blocked in every form, judged by the servers' own logs (DESIGN section 6)."""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import select

from tests.acceptance.harness import PATIENCE_SEC, Arena, arena_of
from tests.helpers.servers.base import Exchange, Request, Server
from tests.helpers.servers.blocking import BlockingSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from webqueue import clock, jobs, queries
from webqueue.database import Database
from webqueue.models import Document, Job, RateGroupRow
from webqueue.outcomes import Blocked, Done

PARAMS: Final = {
    "list_url": "news/index_{page}.html",
    "max_pages": 200,
    "item_selector": "ul.list a",
    "title_selector": "h1",
    "content_selector": "div.content",
}
PAGES, PER_PAGE, SERVED = 4, 5, 10
COOLDOWN_SEC: Final = 2.0
CHALLENGE: Final = "<!doctype html><title>Just a moment...</title><script>window._cf_chl_opt={}</script>"


def _status(status: int, body: str = "<title>No</title>") -> Callable[[Exchange], None]:
    return lambda exchange: exchange.send(body, status=status)


def _reset(exchange: Exchange) -> None:
    exchange.keep_alive = False
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(exchange.connection.detach())


# How a server blocks, and how many requests it takes to see that it does.
KINDS: Final[dict[str, tuple[Callable[[Exchange], None], int]]] = {
    "429": (_status(429), 1),
    "503": (_status(503), 1),
    "412": (_status(412), 1),
    "521": (_status(521), 1),
    "403": (_status(403), 3),
    "reset": (_reset, 3),
    "challenge with 200": (_status(200, CHALLENGE), 1),
    "challenge with 202": (_status(202, CHALLENGE), 1),
}


@pytest.fixture
def arena(database_url: str, instance: Path, open_database: Callable[[], Database]) -> Iterator[Arena]:
    with arena_of(database_url, instance, open_database) as arena:
        yield arena


def add_crawl(
    arena: Arena, code: str, server: Server, *, interval_sec: float = 0.0, cooldown_sec: int = 2
) -> None:
    """A site on the server and its target; blocks make neither its interval nor its cooldown longer."""
    with arena.world.database.transaction() as session:
        session.add(
            RateGroupRow(
                key=server.host,
                adapter="list",
                host_suffix=server.host,
                grow_interval=False,
                cooldown_factor=1,
            )
        )
    arena.world.add_site(code, server.url + "/", cooldown_sec=cooldown_sec)
    arena.world.add_target(code, site=code, handler="crawl", params=PARAMS, interval_sec=interval_sec)


def let_in_after(
    site: BlockingSite, refuse: Callable[[Exchange], None], *, knocks: int
) -> Callable[[Exchange], None]:
    """What the site does with a request in a block, which is over once it can be seen.

    Whoever knocks again earlier than he may is let in, and shows in the server's log.
    """
    numbers = itertools.count(1)

    def refuse_until_seen(exchange: Exchange) -> None:
        if next(numbers) % knocks == 0:
            site.unblock()
        refuse(exchange)

    return refuse_until_seen


def target_of(kind: str) -> str:
    """The code of the target whose server blocks in this way."""
    return "blocking_" + kind.replace(" ", "_")


def wait_for_chain(arena: Arena, target: str, *, until: Callable[[list[Job]], bool]) -> list[Job]:
    def found() -> list[Job]:
        chain = [job for job in arena.world.jobs() if job.target_code == target]
        return chain if until(chain) else []

    return wait_until(found, timeout=2 * PATIENCE_SEC, message=f"the chain of {target}")


def is_over(chain: list[Job]) -> bool:
    return all(job.finished_at is not None for job in chain)


def pauses_after(refused: list[Request], requests: list[Request]) -> list[float]:
    """Seconds from the last refusal of each block to the next request of any kind, by the server's log."""
    numbers = {request.number for request in refused}
    pauses = []
    for one, following in itertools.pairwise(requests):
        if one.number in numbers and following.number not in numbers:
            pauses.append(following.started - one.started)
    return pauses


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_blocks_again_and_again(arena: Arena, kind: str) -> None:
    refuse, seen = KINDS[kind]
    site = BlockingSite(NewsSite(pages=PAGES, per_page=PER_PAGE), after=SERVED, every=True)
    site.refuse = let_in_after(site, refuse, knocks=seen)
    with Server(site) as server, Server(NewsSite(pages=100), host="127.0.0.2", delay_sec=0.02) as other:
        add_crawl(arena, "blocking", server)
        add_crawl(arena, "other", other)
        arena.start_worker()
        arena.start_worker()
        arena.world.submit("other")
        arena.world.submit("blocking")
        chain = wait_for_chain(arena, "blocking", until=is_over)
        requests, refused = server.requests, list(site.refused)
        others = [request.started for request in other.requests]

    assert site.blocks >= 2
    assert len(refused) == seen * site.blocks
    pauses = pauses_after(refused, requests)
    assert len(pauses) == len(chain) - 1
    assert min(pauses) >= COOLDOWN_SEC, "a request came before the cooldown was over"
    assert server.max_concurrent == 1

    assert [job.status for job in chain] == ["failed"] * (len(chain) - 1) + ["done"]
    assert [job.source for job in chain] == ["api"] + ["retry"] * (len(chain) - 1)
    assert [job.cooldown_retry_count for job in chain] == list(range(len(chain)))
    assert {job.root_id for job in chain} == {chain[0].id}
    for before, after in itertools.pairwise(chain):
        assert before.error_msg == f"cooldown_abort; auto_retry_job={after.id}"
        assert after.from_page == (before.last_completed_page + 1 if before.last_completed_page else 0)
    with arena.world.database.reading() as session:
        assert [row.id for row in queries.chain(session, chain[0].root_id)] == [job.id for job in chain]
        stored = session.scalars(select(Document).where(Document.target_code == "blocking")).all()
    assert len({one.url for one in stored}) == len(stored) == PAGES * PER_PAGE
    assert {one.version for one in stored} == {1}

    blocked_at = [request.started for request in refused]
    assert any(0 < at - blocked_at[0] < COOLDOWN_SEC for at in others), "the other key was served meanwhile"


def test_a_kill_and_a_restart_in_the_middle_of_a_cooldown(arena: Arena) -> None:
    """A server for each kind of block; all cool down when both workers are killed and new ones start."""
    cooldown_sec = 60
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        sites: dict[str, BlockingSite] = {}
        for number, (kind, (refuse, seen)) in enumerate(KINDS.items(), start=2):
            site = sites[kind] = BlockingSite(NewsSite(pages=PAGES, per_page=PER_PAGE), after=SERVED)
            site.refuse = let_in_after(site, refuse, knocks=seen)
            servers[kind] = stack.enter_context(Server(site, host=f"127.0.0.{number}"))
            add_crawl(arena, target_of(kind), servers[kind], cooldown_sec=cooldown_sec)
        other = stack.enter_context(Server(NewsSite(pages=200), host="127.0.0.100", delay_sec=0.05))
        add_crawl(arena, "other", other)
        for _ in range(2):
            arena.start_worker(threads=5)
        for target in ("other", *map(target_of, KINDS)):
            arena.world.submit(target)
        for kind in KINDS:
            wait_for_chain(arena, target_of(kind), until=lambda chain: len(chain) == 2)
        cooling_until = {
            kind: arena.world.key(server.host).cooldown_until for kind, server in servers.items()
        }

        for worker in arena.workers:
            worker.kill()
        served_before = len(other.requests)
        for _ in range(2):
            arena.start_worker(threads=5)
        with arena.world.database.reading() as session:
            now = clock.now(session)
        for kind, until in cooling_until.items():
            assert until is not None
            assert now < until, f"too slow a machine: the restart came after the cooldown ({kind})"
        wait_until(lambda: len(other.requests) > served_before, timeout=PATIENCE_SEC, message="the other key")
        # Who asks for a run now waits for the end, too.
        for kind in KINDS:
            arena.world.submit(target_of(kind), source="manual", force=True)
        chains = {kind: wait_for_chain(arena, target_of(kind), until=is_over) for kind in KINDS}
        requests = {kind: server.requests for kind, server in servers.items()}

    for kind, chain in chains.items():
        assert [(job.source, job.status) for job in chain] == [
            ("api", "failed"),
            ("retry", "done"),
            ("manual", "done"),
        ], kind
        assert chain[1].from_page == (chain[0].last_completed_page or 0) + 1, kind
        assert servers[kind].max_concurrent == 1, kind
        (pause,) = pauses_after(sites[kind].refused, requests[kind])
        assert pause >= cooldown_sec, f"{kind}: a request came before the cooldown was over"
        with arena.world.database.reading() as session:
            stored = session.scalars(select(Document).where(Document.target_code == target_of(kind))).all()
        assert len({one.url for one in stored}) == len(stored) == PAGES * PER_PAGE, kind


def test_thirteen_attempts_at_most_against_a_server_that_always_blocks(arena: Arena) -> None:
    site = BlockingSite(NewsSite(), after=0)
    with Server(site) as server:
        add_crawl(arena, "hostile", server, cooldown_sec=0)
        arena.world.submit("hostile")
        arena.start_worker()
        chain = wait_for_chain(arena, "hostile", until=lambda chain: len(chain) >= 13 and is_over(chain))

    assert len(chain) == 13
    assert len(site.refused) == 13
    assert chain[-1].error_msg == "cooldown_abort; auto_retry_max_reached"
    assert chain[-1].result is not None
    assert chain[-1].result["auto_retry"] == {
        "status": "max_reached",
        "cooldown_retry_count": 12,
        "max_retries": 12,
    }


def test_eight_hours_of_a_block_cost_few_probes_and_leave_no_trace_for_long(database: Database) -> None:
    world = World(database)
    world.add_site()
    world.add_target("news", interval_sec=10)
    with clock.replaced(moment := Clock()):
        world.submit("news")
        over = moment.now + timedelta(hours=8)
        probes = 0
        while (due := world.key().retry_at) is not None:
            moment.now = max(moment.now, due)
            claimed = world.claim_one()
            if moment.now >= over:
                world.finish(claimed, Done())
                break
            probes += 1
            world.finish(claimed, Blocked("HTTP 429"))
        assert moment.now >= over, "the chain did not last that long"
        assert probes <= 12
        learned = world.target("news").learned_interval_sec
        assert learned is not None
        assert learned > 10

        clean = 1
        while world.target("news").learned_interval_sec is not None:
            world.submit("news")
            moment.advance(1)
            world.finish(world.claim_one(), Done())
            clean += 1
        assert clean <= 30
        assert world.key().consecutive_blocks == 0
    with database.reading() as session:
        causes = [change.cause for change in queries.interval_changes(session, "news", limit=100)]
    assert causes.count("HTTP 429") == probes
    assert all(cause == "HTTP 429" or cause.startswith("clean run ") for cause in causes)


def test_five_targets_of_a_host_and_two_other_hosts_at_one_tick(arena: Arena) -> None:
    interval_sec = 0.3
    with (
        Server(NewsSite(pages=2, per_page=3), delay_sec=0.02) as host,
        Server(NewsSite(pages=8), host="127.0.0.2", delay_sec=0.02) as second,
        Server(NewsSite(pages=8), host="127.0.0.3", delay_sec=0.02) as third,
    ):
        arena.world.add_site("host", host.url + "/")
        for number in range(5):
            arena.world.add_target(
                f"host{number}", site="host", handler="crawl", params=PARAMS, interval_sec=interval_sec
            )
        add_crawl(arena, "second", second, interval_sec=0.1)
        add_crawl(arena, "third", third, interval_sec=0.1)
        targets = [*(f"host{number}" for number in range(5)), "second", "third"]
        tick = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
        for target in targets:
            arena.world.submit(target, source="schedule", tick=tick)
        arena.start_worker(threads=4)
        arena.start_worker(threads=4)
        wait_until(lambda: is_over(arena.world.jobs()), timeout=2 * PATIENCE_SEC)
        spans = [(one.requests[0].started, one.requests[-1].started) for one in (host, second, third)]
        requests = host.requests
        assert [host.max_concurrent, second.max_concurrent, third.max_concurrent] == [1, 1, 1]

    assert [job.status for job in arena.world.jobs()] == ["done"] * 7
    gaps = [
        after.started - (before.ended or before.started) for before, after in itertools.pairwise(requests)
    ]
    assert len(gaps) > 5 * 6
    assert min(gaps) >= interval_sec
    assert max(start for start, _end in spans) < min(end for _start, end in spans), "one waited for another"


def test_two_jobs_in_a_row_keep_their_distance(arena: Arena) -> None:
    with Server(NewsSite(pages=1, per_page=1)) as server:
        add_crawl(arena, "slow", server, interval_sec=2)
        arena.world.database.run(partial(jobs.submit, target_code="slow", source="api", force=True))
        arena.world.database.run(partial(jobs.submit, target_code="slow", source="api"))
        arena.start_worker()
        arena.start_worker()
        wait_until(lambda: is_over(arena.world.jobs()), timeout=2 * PATIENCE_SEC)
        requests = server.requests

    assert [job.status for job in arena.world.jobs()] == ["done", "done"]
    gaps = [
        after.started - (before.ended or before.started) for before, after in itertools.pairwise(requests)
    ]
    assert len(gaps) >= 3
    assert min(gaps) >= 2
