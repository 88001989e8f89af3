"""How much of everything a chaos has, and where its seed comes from."""

from __future__ import annotations

import os
import random
import secrets
from dataclasses import dataclass, replace
from typing import Final, Self

from webqueue.worker import Timing

PREFIX: Final = "CHAOS_"


@dataclass(frozen=True)
class Plan:
    """One chaos.

    Attributes:
        seed: decides what is submitted, what every job does, and which faults come in which order.
        jobs: submitted; retries come on top.
        keys: rate keys, each with a site and a target.
        processes: worker processes at a time.
        threads: of each.
        kills: SIGKILLs of workers.
        stops: suspensions of workers for longer than a lease.
        pauses: suspensions of workers for less than a lease.
        terms: SIGTERMs of workers.
        restarts: of the database server, half of them by SIGKILL; none on SQLite.
        operations: cancels, pauses, resumes, lifts, moves to the front, retries.
        schedulers: processes, killed now and then.
        backlog: submitted and not yet ended jobs at most; more wait for their submission.
        lease_sec: length of a lease.
        seconds: after so long nothing more is submitted, and every fault has been done; 0 = as long as it takes.
    """

    seed: int
    jobs: int = 300
    keys: int = 20
    processes: int = 3
    threads: int = 4
    kills: int = 4
    stops: int = 2
    pauses: int = 2
    terms: int = 2
    restarts: int = 1
    operations: int = 90
    schedulers: int = 0
    backlog: int = 150
    lease_sec: float = 4.0
    seconds: float = 0.0

    @classmethod
    def long(cls) -> Self:
        """The figures that the promises are proven with (`make chaos`)."""
        return cls(
            seed=new_seed(),
            jobs=20_000,
            keys=200,
            processes=4,
            kills=200,
            stops=50,
            pauses=50,
            terms=30,
            restarts=10,
            operations=3_000,
            schedulers=2,
            backlog=2_000,
            lease_sec=8.0,
        )

    def from_environment(self) -> Self:
        """The same, with what variables like `CHAOS_JOBS` and `CHAOS_SEED` say."""
        given = {
            name: type(getattr(self, name))(os.environ[PREFIX + name.upper()])
            for name in self.__dataclass_fields__
            if PREFIX + name.upper() in os.environ
        }
        return replace(self, **given)

    @property
    def timing(self) -> Timing:
        """Everything in proportion to the lease, as in production."""
        return Timing(
            lease_sec=self.lease_sec,
            heartbeat_sec=self.lease_sec / 4,
            margin_sec=self.lease_sec / 6,
            poll_sec=1.0,
            sweep_sec=1.0,
            watch_sec=0.3,
            flush_sec=0.5,
        )

    def dice(self, purpose: str) -> random.Random:
        """Random numbers that only the seed and the purpose decide."""
        return random.Random(f"{self.seed} {purpose}")


def new_seed() -> int:
    """A seed that nobody has seen, unless `CHAOS_SEED` says one."""
    return int(os.environ.get(PREFIX + "SEED", secrets.randbelow(10**9)))
