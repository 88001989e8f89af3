"""A full disk, and files that may not be written: said, survived, and nothing runs twice (SQLite)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from tests.acceptance.chaos import disks
from tests.acceptance.chaos.disks import Disk
from tests.acceptance.chaos.stage import PATIENCE_SEC, QUICK, stage
from tests.helpers.installation import Installation
from tests.helpers.waiting import wait_until
from webqueue import clock

JOBS = 2
DISKS: dict[str, Callable[[Path], AbstractContextManager[Disk]]] = {
    "full": disks.small_disk,
    "limit": disks.limited_files,
    "read-only": disks.frozen_files,
}


@pytest.mark.parametrize("kind", DISKS)
def test_handlers_stop_with_their_lease_and_all_goes_on_afterwards(kind: str, tmp_path: Path) -> None:
    with DISKS[kind](tmp_path / "disk") as disk:
        url = f"sqlite:///{disk.folder / 'webqueue.sqlite3'}"
        installation = Installation(tmp_path / "web", more={"WEBQUEUE_DATABASE_URL": url})
        with stage(url, tmp_path / "stage") as on, installation:
            codes = on.add_targets(JOBS)
            pids = [on.fleet.start("machine").pid for _ in range(2)]
            web = installation.serve(role="web")
            web.token = installation.token()
            pids.append(web.process.pid)
            job_ids = [on.world.submit(code).id for code in codes]
            on.wait_for_steps(job_ids)

            disk.take(pids)
            taken_at = clock.boot_seconds()
            refused = web.ask("POST", "targets/t0/run", {"force": True})
            assert refused.status == 503, refused
            assert disk.words in refused.data["detail"], "the error is shown"
            assert web.ask("GET", f"jobs/{job_ids[0]}").status == 200, "what is stored can be read"
            wait_until(
                lambda: {line.job for line in on.lines("end") if line.at > taken_at} == set(job_ids),
                timeout=PATIENCE_SEC,
                message="the handlers to stop",
            )
            latest = taken_at + QUICK.lease_sec - QUICK.margin_sec
            assert [line for line in on.lines("step") if line.at > latest] == [], "none beyond its lease"
            if kind != "limit":  # which holds for the log as well
                assert on.logged(disk.error)
                with pytest.raises(DBAPIError, match=r"disk|readonly"):
                    on.world.submit("t0", force=True)

            disk.give(pids)
            given_at = clock.boot_seconds()
            on.wait_for_steps(job_ids, after=given_at)
            again = web.ask("POST", "targets/t0/run", {"force": True})
            assert again.status == 202, again
            on.gate.touch()
            on.wait_for_ends([*job_ids, again.job["id"]])
            assert on.overlaps() == []
            assert [on.world.job(job_id).attempt_count for job_id in job_ids] == [0] * JOBS
