"""A small stage for single faults: one database, jobs that run on until a gate opens, and the lines they leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.acceptance.chaos.fleet import Fleet
from tests.acceptance.chaos.judge import Case, Finding, overlaps
from tests.acceptance.chaos.records import Records
from tests.acceptance.chaos.witness import Line, Witness
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import migrations
from webqueue.database import Database
from webqueue.worker import Timing

PATIENCE_SEC = 90.0
# A lease in seconds instead of a minute, everything else in proportion.
QUICK = Timing(
    lease_sec=4.0,
    heartbeat_sec=0.5,
    margin_sec=1.0,
    poll_sec=0.5,
    sweep_sec=0.5,
    watch_sec=0.2,
    flush_sec=0.2,
)

# The disks of these tests are small and get full: that crawls stop before is tested elsewhere.
DISKS_MAY_FILL = {"WEBQUEUE_DISK_FREE_MB": "0", "WEBQUEUE_DISK_FREE_PERCENT": "0"}


@dataclass
class Stage:
    """See the module.

    Attributes:
        gate: the jobs end when this file is there.
    """

    url: str
    folder: Path
    witness: Witness
    fleet: Fleet
    world: World
    gate: Path

    def add_targets(self, count: int, **more: object) -> list[str]:
        """Targets that step on until the gate opens, each with a key of its own; their codes."""
        codes = [f"t{number}" for number in range(count)]
        for code in codes:
            self.world.add_site(code, f"http://{code}.example.org/")
            params = {
                "function": "tests.acceptance.chaos.handlers:keep_on",
                "kwargs": {"gate": str(self.gate)},
            }
            self.world.add_target(code, site=code, params=params, **more)
        return codes

    def lines(self, what: str, **facts: object) -> list[Line]:
        """The lines with this word, and these facts."""
        return [
            line
            for line in self.witness.lines()
            if line.what == what and all(getattr(line, name) == value for name, value in facts.items())
        ]

    def wait_for_steps(self, job_ids: list[str], after: float = 0.0) -> None:
        """Wait until each of the jobs has made a step after this time."""

        def stepped() -> bool:
            return {line.job for line in self.lines("step") if line.at > after} >= set(job_ids)

        wait_until(stepped, timeout=PATIENCE_SEC, message=f"steps of {job_ids} after {after}")

    def wait_for_ends(self, job_ids: list[str], status: str = "done") -> None:
        """Wait until the jobs have this final status."""
        wait_until(
            lambda: all(self.world.job(job_id).status == status for job_id in job_ids),
            timeout=PATIENCE_SEC,
            message=f"{job_ids} to be {status}",
        )

    def overlaps(self) -> list[Finding]:
        """Runs of one key that went on beside one another (P1)."""
        return list(overlaps(Case(self.witness.lines(), Records(), [], 0)))

    def logged(self, text: str) -> list[str]:
        """The log lines of all processes with this text in them."""
        return [str(line) for line in self.fleet.logged() if text in str(line)]


@contextmanager
def stage(url: str, folder: Path, *, timing: Timing = QUICK) -> Iterator[Stage]:
    """A stage on the database `url`, which is migrated here; what runs is killed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(url, instance_path=folder)
    migrations.upgrade(database)
    witness = Witness(folder / "witness.jsonl")
    with Fleet(url, folder, witness, timing=replace(timing), environment=DISKS_MAY_FILL) as fleet:
        yield Stage(url, folder, witness, fleet, World(database), folder / "gate")
    database.close()
