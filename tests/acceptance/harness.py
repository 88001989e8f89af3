"""Real worker processes, signals, and a witness outside the database that tells what they did."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from sqlalchemy import text

from tests.acceptance import worker_program
from tests.acceptance.handlers import WITNESS_VARIABLE
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue.database import Database
from webqueue.database.listener import open_connection

ROOT = Path(__file__).parents[2]
# Each process is forked from one that has imported everything: to import it took a second of every start.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([worker_program.__name__, *worker_program.IMPORTED_LATER])
# Generous: the tests of other people may have the machine as well.
PATIENCE_SEC = 90.0
QUICK: dict[str, float] = {
    "poll_sec": 0.5,
    "sweep_sec": 0.2,
    "watch_sec": 0.1,
    "flush_sec": 0.1,
    "heartbeat_sec": 1.0,
}


OPEN_TRANSACTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND xact_start IS NOT NULL"
)


@dataclass(frozen=True)
class Line:
    """One line of the witness."""

    what: str
    pid: int
    at: float
    job: str = ""
    key: str = ""
    page: int = 0


@dataclass
class Witness:
    """The file that handlers append to; its order is the order of what happened."""

    path: Path

    def lines(self, what: str | None = None, **facts: Any) -> list[Line]:
        """What was written so far, all of it or the lines that match."""
        if not self.path.exists():
            return []
        found = [Line(**json.loads(line)) for line in self.path.read_text().splitlines()]
        return [
            line
            for line in found
            if (what is None or line.what == what)
            and all(getattr(line, name) == value for name, value in facts.items())
        ]

    def wait_for(self, what: str, **facts: Any) -> Line:
        """The first line that matches, as soon as there is one."""
        found = wait_until(
            lambda: self.lines(what, **facts), timeout=PATIENCE_SEC, message=f"the witness of {what} {facts}"
        )
        return found[0]

    def note(self, what: str, pid: int) -> None:
        """Add what the test does to a process."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "pid": pid, "at": 0.0}) + "\n")

    def overlaps(self) -> list[tuple[Line, Line]]:
        """Starts in a key while another job of it still ran. A killed process runs nothing any more."""
        running: dict[str, Line] = {}
        found = []
        for line in self.lines():
            if line.what == "killed":
                running = {key: started for key, started in running.items() if started.pid != line.pid}
            elif line.what == "start":
                if line.key in running:
                    found.append((running[line.key], line))
                running[line.key] = line
            elif line.what == "end" and (line.key in running) and running[line.key].pid == line.pid:
                del running[line.key]
        return found


@dataclass
class WorkerProcess:
    """One running worker program."""

    process: ForkServerProcess
    worker_id: str
    log_path: Path
    witness: Witness
    _asking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ended(self, within_sec: float = 0.0) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        with self._asking:  # the code can be read once, and a server's thread may ask as well as the test
            self.process.join(within_sec)
            return self.process.exitcode

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its log lines; others than JSON are left out."""
        lines = self.log_path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def kill(self) -> None:
        """SIGKILL: the kernel ends it in the middle of whatever it does."""
        self.witness.note("killed", self.pid)
        self._send(signal.SIGKILL)
        assert self.ended(PATIENCE_SEC) is not None

    def terminate(self) -> int:
        """SIGTERM, and its exit code once it has stopped."""
        self._send(signal.SIGTERM)
        code = self.ended(PATIENCE_SEC)
        assert code is not None, "it does not stop"
        return code

    def suspend(self) -> None:
        """SIGSTOP, wherever it is; see also `Arena.suspend`. Afterwards none of its threads runs any more."""
        self._send(signal.SIGSTOP)
        wait_until(lambda: self.ended() is not None or self._has_stopped(), timeout=PATIENCE_SEC)

    def _has_stopped(self) -> bool:
        """Whether every thread has: the signal is only on its way when it is sent, and one may yet take a lock."""
        stats = [task / "stat" for task in Path(f"/proc/{self.pid}/task").iterdir()]
        try:
            return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)
        except (FileNotFoundError, ProcessLookupError):
            return False  # one of them has just ended

    def resume(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self.ended() is None:
            os.kill(self.pid, number)


@dataclass
class Arena:
    """One database, its instance folder, worker processes on it, and the witness."""

    url: str
    instance: Path
    world: World
    witness: Witness
    workers: list[WorkerProcess] = field(default_factory=list)

    def start_worker(
        self, *, threads: int = 2, timing: dict[str, float] | None = None, grace_sec: float = 5.0, **more: Any
    ) -> WorkerProcess:
        """A worker process that is ready for work."""
        worker_id = secrets.token_hex(6)
        log_path = self.instance / f"{worker_id}.log"
        log_path.touch()
        options = worker_program.Options(
            url=self.url,
            instance=more.get("instance", self.instance),
            threads=threads,
            timing={**QUICK, **(timing or {})},
            worker_id=worker_id,
            grace_sec=grace_sec,
            log=log_path,
            environment={**os.environ, WITNESS_VARIABLE: str(self.witness.path)},
        )
        process = _context.Process(target=worker_program.main, args=(options,))
        process.start()
        worker = WorkerProcess(process, worker_id, log_path, self.witness)
        self.workers.append(worker)
        wait_until(
            lambda: self.witness.lines("ready", pid=worker.pid) or worker.ended() is not None,
            timeout=PATIENCE_SEC,
            message="a worker process to be ready",
        )
        assert worker.ended() is None, log_path.read_text()
        return worker

    def suspend(self, worker: WorkerProcess) -> None:
        """SIGSTOP: it is alive, and does nothing.

        Not in the middle of a transaction: its locks would hold the test up as well (on SQLite for ever, on PostgreSQL
        until the server ends the session).
        """

        def suspended_between_transactions() -> bool:
            worker.suspend()
            if self._is_free():
                return True
            worker.resume()
            return False

        wait_until(suspended_between_transactions, timeout=PATIENCE_SEC)

    def _is_free(self) -> bool:
        """Whether nobody holds a lock in the database."""
        database = self.world.database
        if not database.is_sqlite:
            with database.reading() as session:
                return bool(session.execute(text(OPEN_TRANSACTIONS)).scalar_one() == 0)
        connection = open_connection(database, timeout=0.2, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except database.engine.dialect.loaded_dbapi.OperationalError:
            return False
        finally:
            connection.close()
        return True

    def add_target(self, code: str, *, site: str = "example", **kwargs: Any) -> None:
        """A target that runs `tests.acceptance.handlers.steps`."""
        self.world.add_target(
            code, site=site, params={"function": "tests.acceptance.handlers:steps", "kwargs": kwargs}
        )

    def wait_for_end(self, job_id: str) -> Any:
        """The job, once it has its final status."""
        return wait_until(
            lambda: job if (job := self.world.job(job_id)).finished_at is not None else None,
            timeout=PATIENCE_SEC,
            message=f"job {job_id} to end",
        )

    def end_workers(self) -> None:
        """Kill what is left."""
        for worker in self.workers:
            if worker.ended() is None:
                worker.kill()
            worker.process.close()


@contextmanager
def arena_of(url: str, instance: Path, open_database: Callable[[], Database]) -> Iterator[Arena]:
    """An arena with the site "example"; its processes are killed at the end."""
    world = World(open_database())
    world.add_site()
    arena = Arena(url, instance, world, Witness(instance / "witness.jsonl"))
    try:
        yield arena
    finally:
        arena.end_workers()
