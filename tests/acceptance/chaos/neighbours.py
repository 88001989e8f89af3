"""Two `webqueue serve` and the command line at work on one SQLite file at the same time.

`python -m tests.acceptance.chaos.neighbours` does it for five minutes; NEIGHBOURS_SEC says otherwise.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.chaos.judge import Case, Finding, overlaps
from tests.acceptance.chaos.records import Records
from tests.acceptance.chaos.witness import VARIABLE, Witness
from tests.helpers.installation import Installation, Served, file_of, site_yaml, target_yaml
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parents[3]
SITES = 30
SEED = 7
# Runs of its own that each server may have waiting.
BACKLOG = 40
FIRST_NUMBER = 1_000
LONGEST_END_SEC = 180.0
# What must not be in any log: somebody waited in vain, or so long that a lease was in danger.
FORBIDDEN = (
    "database is locked",
    "lease not renewed",
    "lease lost",
    "job recovered",
    "its lease is extended",
)


@dataclass
class Told:
    """What came of it."""

    findings: list[Finding] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


def neighbours(installation: Installation, seconds: float) -> Told:
    """Let them work beside one another for so many seconds; then wait until every job has ended.

    Args:
        installation: an empty one on SQLite.
        seconds: how long jobs are submitted.
    """
    witness = Witness(installation.instance / "witness.jsonl")
    installation.more |= {
        VARIABLE: str(witness.path),
        "PYTHONPATH": str(ROOT),
        "WEBQUEUE_HOST_COOLDOWN_DELAY_SEC": "1",
    }
    servers = [installation.serve(), installation.serve()]
    installation.describe(_file())
    told = Told()
    numbers = itertools.count(FIRST_NUMBER)
    ending = threading.Event()
    visitors = [
        threading.Thread(target=_visit, args=(server, numbers, witness, ending, told)) for server in servers
    ]
    for visitor in visitors:
        visitor.start()
    try:
        _command(installation, numbers, time.monotonic() + seconds, told)
    finally:
        ending.set()
        for visitor in visitors:
            visitor.join()
    wait_until(
        lambda: all(job.finished_at is not None for job in installation.jobs()),
        timeout=LONGEST_END_SEC,
        message="every job to end",
        every=0.5,
    )
    _look(installation, servers, witness, told)
    return told


def _file() -> str:
    function = {"function": "tests.acceptance.chaos.handlers:work", "kwargs": {"seed": SEED}}
    # A job that is blocked each time would wait for minutes at the end, in cooldowns that double: they stay at a second.
    group = {
        "key": "unused",
        "adapter": "list",
        "host_suffix": "example.org",
        "grow_interval": False,
        "cooldown_factor": 1,
    }
    hosts = [f"s{number}.example.org" for number in range(SITES)]
    sites = [site_yaml(f"s{number}", f"http://{host}", rate_key=host) for number, host in enumerate(hosts)]
    targets = [
        {
            **target_yaml(f"t{number}", f"s{number}", {}),
            "handler": "python",
            "params": function,
            "interval_sec": 0,
            "schedule": "* * * * *" if number % 5 == 0 else None,
        }
        for number in range(SITES)
    ]
    return file_of(sites, targets, [group])


def _visit(
    server: Served, numbers: itertools.count[int], witness: Witness, ending: threading.Event, told: Told
) -> None:
    """Press "Run now" again and again, and look at the lists as the pages do."""
    asked = 0
    counter = Witness(witness.path)
    while not ending.is_set():
        if asked - counter.ends() // 2 >= BACKLOG:
            ending.wait(0.05)
            continue
        number = next(numbers)
        asked += 1
        answers = [
            server.ask("POST", f"targets/t{number % SITES}/run", {"from_page": number}),
            server.ask("GET", "rate-keys"),
        ]
        told.figures["requests"] += len(answers)
        for answer in answers:
            if answer.status not in {200, 202}:
                told.findings.append(Finding("request", f"{answer.status}: {answer.data}"))


def _command(installation: Installation, numbers: itertools.count[int], until: float, told: Told) -> None:
    """Every command that reads or writes, one after another."""
    file = installation.instance / "sites.yaml"
    file.write_text(_file())
    while True:  # whole rounds
        number = next(numbers)
        for command in (
            ["run", f"t{number % SITES}", "--from-page", str(number)],
            ["jobs", "list", "--json"],
            ["rate-keys", "pause", "s1.example.org"],
            ["rate-keys", "resume", "s1.example.org"],
            ["import", str(file)],
        ):
            done = installation.command(*command, timeout=120)
            told.figures["commands"] += 1
            if done.returncode != 0 or any(text in done.stderr for text in FORBIDDEN):
                told.findings.append(Finding("command", f"{' '.join(command)}: {done.stderr.strip()}"))
        if time.monotonic() > until:
            return


def _look(installation: Installation, servers: list[Served], witness: Witness, told: Told) -> None:
    jobs = installation.jobs()
    told.figures["jobs"] = len(jobs)
    told.figures.update(Counter(f"jobs {job.status}" for job in jobs))
    case = Case(witness.lines(), Records(), [], SEED)
    told.findings += overlaps(case)
    told.figures["runs"] = case.figures["runs"]
    ran = sum(job.status != "skipped" for job in jobs)
    if case.figures["runs"] != ran:
        told.findings.append(Finding("runs", f"{case.figures['runs']} runs of {ran} jobs"))
    if recovered := sum(job.attempt_count for job in jobs):
        told.findings.append(Finding("attempts", f"{recovered} recoveries although nobody died"))
    for server in servers:
        log = server.log.read_text()
        told.figures["log lines"] += log.count("\n")
        for text in FORBIDDEN:
            if count := log.count(text):
                told.findings.append(Finding("logged", f"{count} × {text!r} in {server.log.name}"))
        if server.terminate() != 0:
            told.findings.append(Finding("exit code", server.log.name))


def main() -> int:
    """Do it; the exit code is 1 when something is not as it should be."""
    seconds = float(os.environ.get("NEIGHBOURS_SEC", "300"))
    folder = Path(tempfile.mkdtemp(prefix="webqueue-neighbours-"))
    with Installation(folder) as installation:
        told = neighbours(installation, seconds)
    lines = [f"two servers and the command line on one SQLite file for {seconds:g} s"]
    lines += [f"  {name}: {count}" for name, count in sorted(told.figures.items())]
    lines += [f"  findings: {len(told.findings)}"]
    lines += [f"    {finding.kind}: {finding.text}" for finding in told.findings[:20]]
    sys.stdout.write("\n".join(lines) + "\n")
    if told.findings:
        sys.stdout.write(f"  everything is kept in {folder}\n")
    else:
        shutil.rmtree(folder)
    return int(bool(told.findings))


if __name__ == "__main__":
    sys.exit(main())
