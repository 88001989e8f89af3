"""An installation as its operator has it: an instance folder, the command `webqueue`, and its running server."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import undefer

from tests.helpers.waiting import wait_until
from webqueue import access, clock, config, queries
from webqueue.database import Database
from webqueue.models import Document, Job

# The script that a user has, of the environment that runs the tests.
COMMAND = Path(sys.executable).with_name("webqueue")
# Generous: the tests of other people may have the machine as well.
PATIENCE_SEC = 60.0
_ADDRESS = re.compile(r"http://[0-9.]+:[0-9]+")


@dataclass(frozen=True)
class Answer:
    """What the API said."""

    status: int
    data: Any

    @property
    def job(self) -> dict[str, Any]:
        """The job in it."""
        found: dict[str, Any] = self.data["job"]
        return found


@dataclass
class Served:
    """One process of `webqueue serve` or `webqueue demo` that answers.

    Attributes:
        url: the address that it printed.
        output: its standard output; `log` is its standard error.
    """

    process: subprocess.Popen[bytes]
    url: str
    output: Path
    log: Path
    token: str = ""

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """One request of the JSON API; `path` is that below /api/v1/."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_SEC)
        try:
            connection.request(
                method,
                f"/api/v1/{path}",
                body=None if body is None else json.dumps(body),
                headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return Answer(answer.status, json.loads(answer.read()))
        finally:
            connection.close()

    def run(self, target: str, **options: Any) -> str:
        """Press "Run now"; the job's id."""
        answer = self.ask("POST", f"targets/{target}/run", options)
        assert answer.status == 202, answer
        return str(answer.job["id"])

    def kill(self) -> None:
        """SIGKILL: the kernel ends it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """SIGTERM, and its exit code once it has stopped."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SEC)

    @property
    def peak_memory(self) -> int:
        """The most memory that it had at once, in bytes (VmHWM of proc(5))."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None, status
        return int(found[1]) * 1024


@dataclass
class Installation:
    """One instance folder and the processes on it; leaving the block kills what is left of them.

    Args:
        instance: the instance folder.
        more: environment variables besides those of the tests.
    """

    instance: Path
    more: dict[str, str] = field(default_factory=dict)
    served: list[Served] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _database: Database | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for served in self.served:
            if served.process.poll() is None:
                served.process.kill()
            served.process.wait()
        self._stack.close()

    @property
    def environment(self) -> dict[str, str]:
        """Of every process."""
        return {
            **os.environ,
            "WEBQUEUE_INSTANCE_PATH": str(self.instance),
            "WEBQUEUE_ALLOW_PRIVATE_ADDRESSES": "1",
            **self.more,
        }

    @property
    def database(self) -> Database:
        """Its database, opened in the test's process beside the others."""
        if self._database is None:
            url = self.more.get("WEBQUEUE_DATABASE_URL", f"sqlite:///{self.instance / 'webqueue.sqlite3'}")
            self._database = Database(url, instance_path=self.instance)
            self._stack.callback(self._database.close)
        return self._database

    def command(
        self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE_SEC
    ) -> subprocess.CompletedProcess[str]:
        """Run `webqueue ARGUMENTS` as a process of its own, to its end."""
        return subprocess.run(
            [COMMAND, *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=timeout,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `webqueue ARGUMENTS`; the test ends it."""
        return subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def serve(self, *options: str, role: str = "serve") -> Served:
        """Start the server on a free port, and wait until it says that it is there."""
        number = len(self.served)
        output, log = (self.instance / f"{role}-{number}.{ending}" for ending in ("out", "err"))
        self.instance.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as out, log.open("wb") as err:
            process = subprocess.Popen(
                [COMMAND, role, "--port", "0", *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.environment,
            )
        served = Served(process, "", output, log)
        self.served.append(served)

        def address() -> str:
            assert process.poll() is None, log.read_text()
            lines = output.read_text().splitlines(keepends=True)
            found = _ADDRESS.search("".join(line for line in lines if line.endswith("\n")))
            return found[0] if found else ""

        served.url = wait_until(address, timeout=PATIENCE_SEC, message=f"{role} to say where it is")
        if role == "serve":
            served.token = self.token()
        return served

    def token(self, role: str = "admin") -> str:
        """A new token of the API."""
        name = f"{role}-{time.monotonic_ns()}"
        return self.database.run(
            lambda session: access.add_token(
                session, name, access.Role(role), None, by="test", now=clock.now(session)
            )
        )

    def describe(self, text: str) -> None:
        """Import a file."""
        self.database.run(
            lambda session: config.import_file(
                session, text, by="test", now=clock.now(session), dry_run=False
            )
        )

    def job(self, job_id: str) -> queries.JobRow:
        """A job as everybody sees it."""
        with self.database.reading() as session:
            return queries.get_job(session, job_id)

    def jobs(self) -> list[Job]:
        """All jobs, the first one first."""
        with self.database.reading() as session:
            return list(session.scalars(select(Job).order_by(Job.seq)))

    def documents(self, target: str | None = None) -> list[Document]:
        """Every stored document, with its text."""
        statement = select(Document).options(undefer(Document.text)).order_by(Document.id)
        if target is not None:
            statement = statement.where(Document.target_code == target)
        with self.database.reading() as session:
            return list(session.scalars(statement))

    def wait_for_end(self, job_id: str, timeout: float = PATIENCE_SEC) -> queries.JobRow:
        """The job, once it has its final status."""

        def ended() -> queries.JobRow | None:
            for served in self.served:
                assert served.process.poll() in {None, 0, -signal.SIGKILL}, served.log.read_text()
            row = self.job(job_id)
            return row if row.finished_at is not None else None

        row = wait_until(ended, timeout=timeout, message=f"job {job_id} to end", every=0.1)
        assert row is not None
        return row


def site_yaml(code: str, base_url: str, **more: Any) -> dict[str, Any]:
    """A site of the import file."""
    return {"code": code, "name": code.title(), "base_url": f"{base_url}/", "adapter": "list", **more}


def target_yaml(code: str, site: str, params: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A target of the import file, by default quick, and not tried again when it fails."""
    return {
        "code": code,
        "site": site,
        "handler": "crawl",
        "interval_sec": 0.02,
        "retry": {"times": 0, "wait_sec": 1},
        "params": {"item_selector": "ul.list a", **params},
        **more,
    }


def file_of(
    sites: list[dict[str, Any]], targets: list[dict[str, Any]], rate_groups: Sequence[dict[str, Any]] = ()
) -> str:
    """An import file; JSON is YAML."""
    groups = {"rate_groups": list(rate_groups)} if rate_groups else {}
    return json.dumps({**groups, "sites": sites, "targets": targets})


def copy_of(template: Path, instance: Path) -> Path:
    """An instance folder with a migrated SQLite file, which takes a millisecond instead of a hundred."""
    instance.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, instance / "webqueue.sqlite3")
    return instance
