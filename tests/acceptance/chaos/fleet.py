"""The processes of a chaos: started in an instant from one that has imported everything, killed, stopped, continued."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self

from tests.acceptance.chaos import process
from tests.acceptance.chaos.process import Options
from tests.acceptance.chaos.witness import Witness
from tests.helpers.waiting import wait_until
from webqueue.worker import Timing

PATIENCE_SEC = 60.0
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        process.__name__,
        "tests.acceptance.chaos.handlers",
        "webqueue.handlers.crawl",
        "webqueue.handlers.python",
        "psycopg",
    ]
)


@dataclass
class Member:
    """One running process."""

    process: ForkServerProcess
    options: Options
    witness: Witness
    suspended: bool = False

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    def kill(self) -> None:
        """SIGKILL: the kernel ends it in the middle of whatever it does."""
        self.process.kill()
        self.process.join(PATIENCE_SEC)
        # Only now is it sure that it writes nothing more.
        self.witness.note("killed", pid=self.pid)

    def suspend(self) -> None:
        """SIGSTOP: it is alive, and does nothing."""
        self.witness.note("stopped", pid=self.pid)
        self.signal(signal.SIGSTOP)
        self.suspended = True

    def resume(self) -> None:
        """SIGCONT."""
        self.witness.note("continued", pid=self.pid)
        self.signal(signal.SIGCONT)
        self.suspended = False

    def terminate(self) -> None:
        """SIGTERM. Returns at once; see `reaped`."""
        self.process.terminate()

    def reaped(self, timeout: float = 0.0) -> bool:
        """Whether it has ended within so many seconds; then `exit_code` tells how."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            return False
        self.witness.note("killed", pid=self.pid)
        return True

    @property
    def exit_code(self) -> int | None:
        return self.process.exitcode

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_until_ready(self) -> None:
        """Wait until it has started; an error tells its log."""
        wait_until(
            lambda: not self.alive or any(line.pid == self.pid for line in self.witness.lines()),
            timeout=PATIENCE_SEC,
            message="a process to be ready",
        )
        assert self.alive, self.options.log.read_text()


class Fleet:
    """All processes, and the folders that make them members of one machine or another.

    Args:
        url: of the database.
        folder: for instance folders and logs.
        witness: told of everything that is done to a process.
        timing: of the workers.
        environment: settings of the processes.
    """

    def __init__(
        self, url: str, folder: Path, witness: Witness, *, timing: Timing, environment: dict[str, str]
    ) -> None:
        self._folder = folder
        self._witness = witness
        self._options = Options(
            url=url,
            instance=folder,
            witness=witness.path,
            log=folder,
            timing=timing,
            environment=environment,
        )
        self.members: list[Member] = []
        self.started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            if member.alive:
                with suppress(ProcessLookupError):
                    member.process.kill()
            member.process.join(PATIENCE_SEC)

    def start(self, machine: str, *, role: str = "worker", threads: int = 4, **more: Any) -> Member:
        """Start a process on the machine of this name. Returns at once.

        To be called from the main thread: what it forks from ends with the thread that started it.
        """
        self.started += 1
        instance = self._folder / machine
        instance.mkdir(exist_ok=True)
        options = replace(
            self._options,
            instance=instance,
            log=self._folder / f"{machine}-{self.started}.log",
            role=role,
            threads=threads,
            worker_id=secrets.token_hex(6),
            **more,
        )
        started = _context.Process(target=process.main, args=(options,), daemon=True)
        started.start()
        member = Member(started, options, self._witness)
        self.members.append(member)
        return member

    def logged(self) -> Iterator[dict[str, Any]]:
        """The log lines of all processes, living and dead; others than JSON have `text` only."""
        for path in sorted(self._folder.glob("*.log")):
            for text in path.read_text(errors="replace").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    line = {"text": text}
                yield {**line, "file": path.name}
