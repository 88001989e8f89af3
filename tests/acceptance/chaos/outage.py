"""PostgreSQL away for longer than a lease, while workers, a scheduler and a web process are at work.

`python -m tests.acceptance.chaos.outage` does it with leases of 60 s.
"""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.acceptance.chaos.judge import Finding
from tests.acceptance.chaos.stage import PATIENCE_SEC, Stage, stage
from tests.helpers.installation import Installation, Served
from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.models import Target
from webqueue.worker import Timing

JOBS = 4
# A handler that waits for the database looks at its lease between two rounds of tries; it makes no request meanwhile.
GIVING_UP_SEC = 8.0


@dataclass
class Told:
    """What came of it."""

    findings: list[Finding] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)

    def expect(self, kind: str, text: str, *, holds: bool) -> None:
        """Note a finding unless it holds."""
        if not holds:
            self.findings.append(Finding(kind, text))


def outage(server: PostgresServer, folder: Path, *, timing: Timing, away_sec: float) -> Told:
    """Take the server away for `away_sec`, which is longer than a lease, and look at everybody.

    Args:
        server: takes a new database.
        folder: for logs and instance folders.
        timing: of the workers.
        away_sec: how long the server is away, in seconds.
    """
    told = Told()
    url = server.create_database(empty=True)
    installation = Installation(folder / "web", more={"WEBQUEUE_DATABASE_URL": url})
    with stage(url, folder, timing=timing) as on, installation:
        codes = on.add_targets(JOBS)
        on.world.add_site("ticked")
        on.world.add_target("ticked", site="ticked", schedule="* * * * *", params={"function": "os:getpid"})
        # On one machine, so that each knows of the other that it lives, and leaves it its ended leases to hand back.
        for role in ("worker", "worker", "scheduler"):
            on.fleet.start("machine", role=role).wait_until_ready()
        web = installation.serve(role="web")
        web.token = installation.token()
        job_ids = [on.world.submit(code).id for code in codes]
        on.wait_for_steps(job_ids)

        left_at = clock.boot_seconds()
        server.stop()
        on.witness.note("database_down")
        _wait_until_stopped(on, told, left_at, timing)
        told.expect("web", "the process answers", holds=_status(web, "/healthz") == 200)
        told.expect("web", "/readyz tells that it is not ready", holds=_status(web, "/readyz") == 503)
        told.expect("web", "a run is refused with 503", holds=web.ask("POST", "targets/t0/run").status == 503)
        wait_until(lambda: clock.boot_seconds() - left_at >= away_sec, timeout=away_sec + 1)

        server.start()
        back_at = clock.boot_seconds()
        on.witness.note("database_up")
        on.wait_for_steps(job_ids, after=back_at)
        told.figures["ms until every job went on"] = round(1000 * (clock.boot_seconds() - back_at))
        _look_at_web_and_scheduler(on, told, web)
        on.gate.touch()
        on.wait_for_ends(job_ids)
        told.findings += on.overlaps()
        for job_id in job_ids:
            job = on.world.job(job_id)
            told.expect(
                "attempts", f"{job_id} cost {job.attempt_count} attempts", holds=job.attempt_count == 0
            )
            steps = sorted({line.step for line in on.lines("step", job=job_id)})
            told.expect("steps", f"{job_id} left some out", holds=steps == list(range(1, len(steps) + 1)))
    return told


def _wait_until_stopped(on: Stage, told: Told, left_at: float, timing: Timing) -> None:
    """Every handler ends, after a while without a database, and not long after its lease."""
    wait_until(
        lambda: len(on.lines("end", outcome="broken off")) + len(on.lines("end", outcome="stopped")) == JOBS,
        timeout=timing.lease_sec + PATIENCE_SEC,
        message="the handlers to stop",
    )
    latest = left_at + timing.lease_sec - timing.margin_sec
    ends = on.lines("end")
    told.figures["handlers stopped at the end of their lease"] = len(ends)
    told.figures["ms of the last end after its lease"] = round(
        1000 * (max(line.at for line in ends) - latest)
    )
    late = [line for line in on.lines("step") if line.at > latest]
    told.expect("lease", f"{len(late)} steps after the end of the lease", holds=not late)
    told.expect(
        "lease", "handlers end with their lease", holds=max(line.at for line in ends) < latest + GIVING_UP_SEC
    )


def _look_at_web_and_scheduler(on: Stage, told: Told, web: Served) -> None:
    wait_until(
        lambda: web.ask("POST", "targets/ticked/run").status in {200, 202},
        timeout=PATIENCE_SEC,
        message="the web process to take a job",
    )
    with on.world.database.transaction() as session:
        target = session.get_one(Target, "ticked")
        # Due at once, whichever second of the minute it is.
        target.next_tick_at = target.fires_at = clock.now(session).replace(second=0, microsecond=0)
        target.overlap = "allow"
    wait_until(
        lambda: any(job.source == "schedule" for job in on.world.jobs()),
        timeout=PATIENCE_SEC,
        message="the scheduler to make a job",
    )
    told.figures["roles that came back"] = 3
    told.expect("web", "/healthz", holds=_status(web, "/healthz") == 200)


def _status(web: Served, path: str) -> int:
    parts = urlsplit(web.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_SEC)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def main() -> int:
    """Do it with the times of production; the exit code is 1 when something is not as it should be."""
    began = time.monotonic()
    with PostgresServer(durable=True) as server:
        told = outage(
            server, Path(tempfile.mkdtemp(prefix="webqueue-outage-")), timing=Timing(), away_sec=65.0
        )
    lines = [f"PostgreSQL away for 65 s; {time.monotonic() - began:.0f} s in all"]
    lines += [f"  {name}: {count}" for name, count in sorted(told.figures.items())]
    lines += [f"  findings: {len(told.findings)}"]
    lines += [f"    {finding.kind}: {finding.text}" for finding in told.findings]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(told.findings))


if __name__ == "__main__":
    sys.exit(main())
