"""One chaos from its beginning to the verdict."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sqlalchemy import func, select

from tests.acceptance.chaos import facts
from tests.acceptance.chaos.faults import Faults
from tests.acceptance.chaos.fleet import Fleet
from tests.acceptance.chaos.judge import COOLDOWN_SEC, Case, Finding, judge
from tests.acceptance.chaos.operator import Operator, Submitter, key_name, target_code
from tests.acceptance.chaos.plan import Plan
from tests.acceptance.chaos.process import UNSTOPPED
from tests.acceptance.chaos.records import Records
from tests.acceptance.chaos.witness import Witness
from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import clock, migrations
from webqueue.database import Database
from webqueue.models import Job, RateGroupRow, Target

ENVIRONMENT = {"WEBQUEUE_HOST_COOLDOWN_DELAY_SEC": str(int(COOLDOWN_SEC))}
# A server that is killed loses what it has answered to already when it answers before writing.
HONEST = {"synchronous_commit": "on"}
LONGEST_END_SEC = 300.0
LONGEST_SUBMISSION_SEC = 3_600.0
# Stopped; or a handler did not stop in time (P9); or SIGTERM came before the process had begun.
IN_ORDER = frozenset({0, UNSTOPPED, -signal.SIGTERM})


@dataclass
class Verdict:
    """What came of a chaos."""

    plan: Plan
    engine: str
    findings: list[Finding]
    figures: Counter[str]
    seconds: float
    faults: dict[str, int] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)


@contextmanager
def database_server(engine: str, folder: Path) -> Iterator[tuple[str, PostgresServer | None]]:
    """The URL of a migrated database of its own; for PostgreSQL with a server of its own."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgresServer(settings=HONEST)) if engine == "postgresql" else None
        url = f"sqlite:///{folder / 'webqueue.sqlite3'}" if server is None else server.create_database()
        database = Database(url, instance_path=folder)
        migrations.upgrade(database)
        database.close()
        yield url, server


def run(plan: Plan, engine: str, folder: Path) -> Verdict:
    """Do the chaos on `engine`, in `folder`, and judge it. To be called from the main thread."""
    with database_server(engine, folder) as (url, server):
        return _Chaos(plan, engine, folder, url, server).run()


class _Chaos:
    def __init__(
        self, plan: Plan, engine: str, folder: Path, url: str, server: PostgresServer | None
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._folder = folder
        self._url = url
        self._server = server
        self._witness = Witness(folder / "witness.jsonl")
        self._records = Records()
        self._databases: list[Database] = []
        self._problems: list[str] = []
        self._began = 0.0

    def run(self) -> Verdict:
        began = time.monotonic()
        _fill(self._open(), self._plan)
        fleet = Fleet(
            self._url, self._folder, self._witness, timing=self._plan.timing, environment=ENVIRONMENT
        )
        with fleet:
            faults = Faults(fleet, self._plan, self._witness, self._server, self._progress)
            faults.start()
            self._attack(faults)
            self._wait_for_the_end()
            codes = faults.end()
        seconds = time.monotonic() - began
        verdict = self._judge(seconds, fleet)
        verdict.faults = faults.done
        verdict.findings += [
            Finding("exit code", f"{name}: {code}") for name, code in codes.items() if code not in IN_ORDER
        ]
        verdict.findings += [Finding("operator", problem) for problem in self._problems]
        for database in self._databases:
            database.close()
        return verdict

    def _attack(self, faults: Faults) -> None:
        self._began = time.monotonic()
        ended, stopping = threading.Event(), threading.Event()
        submitter = Submitter(self._open(), self._plan, self._records, self._witness)
        operator = Operator(self._open(), self._plan, self._records)
        threads = [
            self._thread(lambda: submitter.run(stopping, self._time_is_up)),
            self._thread(lambda: operator.run(stopping, self._progress)),
        ]
        try:
            faults.run(ended)
            threads[0].join(
                LONGEST_SUBMISSION_SEC
            )  # retries end too, so the faults are done before the last job is in
        finally:
            stopping.set()
        for thread in threads:
            thread.join(LONGEST_END_SEC)

    def _time_is_up(self) -> bool:
        return 0 < self._plan.seconds < time.monotonic() - self._began

    def _thread(self, work: object) -> threading.Thread:
        def guarded() -> None:
            try:
                work()  # type: ignore[operator]
            except Exception as error:  # noqa: BLE001 - told in the verdict
                self._problems.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def _progress(self) -> float:
        """How much of the run is done, by its jobs or by its time, from 0 to 1."""
        by_jobs = self._witness.ends() / self._plan.jobs
        by_time = (time.monotonic() - self._began) / self._plan.seconds if self._plan.seconds else 0.0
        return min(1.0, max(by_jobs, by_time))

    def _wait_for_the_end(self) -> None:
        """Until every job has ended, however slowly; it is a problem when none ends for long."""
        database = self._open()
        _settle_schedules(database)
        left = _open_jobs(database)
        while left:
            try:
                wait_until(partial(_fewer_open_jobs, database, left), timeout=LONGEST_END_SEC, every=0.5)
            except AssertionError:
                self._problems.append(f"of {left} open jobs none ended in {LONGEST_END_SEC:g} s")
                return
            left = _open_jobs(database)

    def _judge(self, seconds: float, fleet: Fleet) -> Verdict:
        since_boot = _boot_minus_wall()
        database = self._open()
        lines = [
            replace(line, claimed_at=line.claimed_at + since_boot) if line.claimed_at else line
            for line in self._witness.lines()
        ]
        rows = facts.facts(database, lambda wall: wall + since_boot)
        case = Case(lines, self._records, rows, self._plan.seed)
        findings = judge(case)
        if unsettled := facts.unsettled(database):
            findings.append(Finding("unsettled", unsettled))
        case.figures.update(Counter(f"jobs {job.status}" for job in rows))
        case.figures["jobs"] = len(rows)
        case.figures["recoveries"] = sum(job.attempts for job in rows)
        case.figures["abandoned"] = sum("abandoned" in job.error_msg for job in rows)
        case.figures["handed back"] = facts.log_lines(database, "handed back")
        case.figures["delayed or blocked retries"] = sum(job.source == "retry" for job in rows)
        case.figures["submissions"] = len(self._records.submissions)
        case.figures["submissions without an answer"] = len(self._records.submissions) - len(
            self._records.accepted()
        )
        events: Counter[str] = Counter()
        for line in fleet.logged():
            events[_event(line)] += 1
        findings += [
            Finding("deadlock not retried", name)
            for name in events
            if "deadlock" in name and "retried" not in name
        ]
        return Verdict(self._plan, self._engine, findings, case.figures, seconds, events=events)

    def _open(self) -> Database:
        database = Database(self._url, instance_path=self._folder / "operator")
        self._databases.append(database)
        return database


def _event(line: dict[str, object]) -> str:
    """A log line without what differs each time."""
    if "event" not in line:
        return f"not a log line: {str(line['text'])[:80]}"
    if line.get("level") == "info" or str(line["event"]).startswith("Execution of job"):
        return str(line["event"]).partition(" (")[0]
    error = str(line.get("error", "")).splitlines()[0][:70] if line.get("error") else ""
    return f"{line['event']} ({line.get('loop', '')}{' ' if line.get('loop') else ''}{error})"


def _fill(database: Database, plan: Plan) -> None:
    """Sites with a key of their own, and a target each; some have a schedule where schedulers run."""
    facts.audit(database)
    world = World(database)
    with database.transaction() as session:
        # Intervals that grow would only slow the keys down here.
        session.add(
            RateGroupRow(
                key="unused",
                adapter="list",
                host_suffix="chaos.example",
                grow_interval=False,
                cooldown_factor=1,
            )
        )
    for number in range(plan.keys):
        key = key_name(number)
        world.add_site(key, f"http://{key}.chaos.example/", rate_key=key)
        scheduled = plan.schedulers > 0 and number % 4 == 0
        world.add_target(
            target_code(key),
            site=key,
            params={"function": "tests.acceptance.chaos.handlers:work", "kwargs": {"seed": plan.seed}},
            retry_times=2,
            retry_wait_sec=1,
            schedule="* * * * *" if scheduled else None,
            overlap="queue_one",
            catch_up="all",
        )
    if plan.schedulers:
        _start_schedules(database)


def _start_schedules(database: Database) -> None:
    from webqueue.config.ticks import restart_ticks
    from webqueue.models import Site

    with database.transaction() as session:
        now = clock.now(session)
        for target in session.scalars(select(Target).where(Target.schedule.is_not(None))):
            restart_ticks(target, session.get_one(Site, target.site_code), now)


def _open_jobs(database: Database) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count(Job.seq)).where(Job.finished_at.is_(None))) or 0


def _fewer_open_jobs(database: Database, than: int) -> bool:
    return _open_jobs(database) < than


def _settle_schedules(database: Database) -> None:
    """Let no further tick come."""

    def pause(session: object) -> None:
        for target in session.scalars(select(Target).where(Target.schedule.is_not(None))):  # type: ignore[attr-defined]
            target.paused_at = clock.now(session)  # type: ignore[arg-type]

    database.run(pause)


def _boot_minus_wall() -> float:
    """Between the two clocks; of many tries the one that was interrupted least."""
    tries = []
    for _ in range(50):
        before = clock.boot_seconds()
        wall = time.time()
        after = clock.boot_seconds()
        tries.append((after - before, (before + after) / 2 - wall))
    return min(tries)[1]


def make_room(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
