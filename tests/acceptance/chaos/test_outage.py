"""A database that is away, for less and for more than a lease (DESIGN P1, P2, section 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.chaos.outage import outage
from tests.acceptance.chaos.stage import QUICK, stage
from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.worker import Timing

pytestmark = pytest.mark.postgresql


def test_all_roles_come_back_by_themselves(server: PostgresServer, tmp_path: Path) -> None:
    """The short form of `python -m tests.acceptance.chaos.outage`, with a lease of seconds."""
    told = outage(server, tmp_path, timing=QUICK, away_sec=QUICK.lease_sec + 2)
    assert told.findings == []
    assert told.figures["handlers stopped at the end of their lease"] == 4


def test_a_handler_waits_for_a_server_that_is_away_for_less_than_its_lease(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Longer than a transaction is retried: its checkpoint waits, and the job does not fail by it."""
    with stage(server.create_database(empty=True), tmp_path, timing=Timing()) as on:
        on.add_targets(1)
        job_id = on.world.submit("t0").id
        on.fleet.start("machine")
        on.wait_for_steps([job_id])
        server.stop()
        wait_until(lambda: on.logged("the handler waits"), timeout=30)
        server.start()
        on.wait_for_steps([job_id], after=clock.boot_seconds())
        on.gate.touch()
        on.wait_for_ends([job_id])
        job = on.world.job(job_id)
        assert (job.attempt_count, job.error_msg, len(on.lines("start"))) == (0, None, 1)
