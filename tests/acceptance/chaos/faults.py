"""The faults of a chaos: which, in which order, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.acceptance.chaos.fleet import Fleet, Member
from tests.acceptance.chaos.plan import Plan
from tests.acceptance.chaos.witness import Witness
from tests.helpers.postgres import PostgresServer
from webqueue import clock

# Two workers share a machine, so that each sees the other's lock; the others are alone on theirs.
SHARED_MACHINE = "machine-shared"
_LOOK_SEC = 0.02
LONGEST_STOP_SEC = 60.0


@dataclass(frozen=True)
class Fault:
    """What happens when so many of the jobs have ended (0 to 1)."""

    kind: str
    when: float


def faults_of(plan: Plan) -> list[Fault]:
    """The faults in their order, spread over the first nine tenths of the run."""
    dice = plan.dice("faults")
    kinds = (
        ["kill"] * plan.kills
        + ["stop"] * plan.stops
        + ["pause"] * plan.pauses
        + ["term"] * plan.terms
        + ["restart"] * plan.restarts
    )
    if plan.schedulers:
        kinds += ["kill_scheduler"] * (plan.kills // 20)
    dice.shuffle(kinds)
    return [
        Fault(kind, 0.03 + 0.87 * (place + dice.random()) / len(kinds)) for place, kind in enumerate(kinds)
    ]


class Faults:
    """Does the faults, from the main thread: what it starts ends with the thread that started it.

    Args:
        fleet: the processes.
        plan: says which faults.
        witness: told of what is done to the database.
        server: the PostgreSQL server; None on SQLite, which has none.
        progress: how much of the run is done, 0 to 1.
    """

    def __init__(
        self,
        fleet: Fleet,
        plan: Plan,
        witness: Witness,
        server: PostgresServer | None,
        progress: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._plan = plan
        self._witness = witness
        self._server = server
        self._progress = progress
        self._dice = plan.dice("victims")
        self._machines = 0
        self._workers: list[Member] = []
        self._schedulers: list[Member] = []
        self._sleeping: dict[int, tuple[Member, float]] = {}
        # They stop in order, which may need a database that somebody suspended holds: nobody waits for them.
        self._leaving: list[Member] = []
        self.done: dict[str, int] = {}

    def start(self) -> None:
        """Start the processes, and wait until all are ready."""
        self._workers = [
            self._worker(SHARED_MACHINE if number < 2 else self._new_machine())
            for number in range(self._plan.processes)
        ]
        self._schedulers = [self._scheduler() for _ in range(self._plan.schedulers)]
        for member in [*self._workers, *self._schedulers]:
            member.wait_until_ready()

    def run(self, ended: threading.Event) -> None:
        """Do every fault in its time; then wake whoever sleeps."""
        for fault in faults_of(self._plan):
            if fault.kind == "restart" and self._server is None:
                continue
            while self._progress() < fault.when and not ended.is_set():
                self._wake_some(clock.boot_seconds())
                ended.wait(_LOOK_SEC)
            if ended.is_set():
                break
            self._do(fault.kind)
            self.done[fault.kind] = self.done.get(fault.kind, 0) + 1
        while self._sleeping:
            self._wake_some(clock.boot_seconds())
            ended.wait(_LOOK_SEC)

    def end(self) -> dict[str, int | None]:
        """SIGTERM to everybody; the exit codes of all who had one, by log file."""
        for member in [*self._workers, *self._schedulers]:
            member.terminate()
            self._leaving.append(member)
        codes = {}
        for member in self._leaving:
            if not member.reaped(LONGEST_STOP_SEC):
                member.kill()
            codes[member.options.log.name] = member.exit_code
        return codes

    def _do(self, kind: str) -> None:
        match kind:
            case "kill":
                victim = self._awake()
                victim.kill()
                self._replace(victim)
            case "term":
                victim = self._awake()
                victim.terminate()
                self._leaving.append(victim)
                self._replace(victim)
            case "stop":
                self._suspend(self._plan.lease_sec * self._dice.uniform(1.15, 1.6))
            case "pause":
                self._suspend(self._plan.lease_sec * self._dice.uniform(0.05, 0.5))
            case "kill_scheduler":
                self._schedulers.pop(0).kill()
                self._schedulers.append(self._scheduler())
            case "restart":
                self._restart()

    def _restart(self) -> None:
        assert self._server is not None
        self._witness.note("database_down")
        if self._dice.random() < 0.5:
            self._server.kill()
            self._server.start()
        else:
            self._server.restart()
        self._witness.note("database_up")

    def _suspend(self, seconds: float) -> None:
        victim = self._awake()
        victim.suspend()
        self._sleeping[victim.pid] = (victim, clock.boot_seconds() + seconds)

    def _wake_some(self, now: float) -> None:
        for pid, (member, wakes_at) in list(self._sleeping.items()):
            if wakes_at <= now:
                member.resume()
                del self._sleeping[pid]

    def _awake(self) -> Member:
        """A worker that is not suspended; at least one other stays awake, too."""
        while len(awake := [one for one in self._workers if not one.suspended]) < 2:
            self._wake_some(clock.boot_seconds())
            threading.Event().wait(_LOOK_SEC)
        return self._dice.choice(awake)

    def _replace(self, gone: Member) -> None:
        """Start another one: on the same machine, or on a new one, while the old machine never comes back."""
        self._workers.remove(gone)
        machine = gone.options.instance.name
        if machine != SHARED_MACHINE and self._dice.random() < 0.5:
            machine = self._new_machine()
        self._workers.append(self._worker(machine))

    def _worker(self, machine: str) -> Member:
        return self._fleet.start(machine, threads=self._plan.threads)

    def _scheduler(self) -> Member:
        return self._fleet.start("machine-of-schedulers", role="scheduler")

    def _new_machine(self) -> str:
        self._machines += 1
        return f"machine-{self._machines}"
