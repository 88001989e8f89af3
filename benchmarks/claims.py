"""What a claim costs while another key has 1,000 or 100,000 jobs waiting: `python -m benchmarks.claims`.

The two tables are asked in turns, so that whatever else the machine does meets both alike. The deep key is
paused while the other one's job is claimed, as blocked as a key can be; a claim of the deep key itself follows.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from tests.helpers.postgres import PostgresServer
from tests.helpers.requirements import MissingRequirementError
from tests.helpers.world import World
from webqueue import clock, jobs, migrations
from webqueue.database import Database
from webqueue.models import Job

SHALLOW, DEEP = 1_000, 100_000
ROUNDS = 150
BATCH = 2_000
ALLOWED_RATIO = 1.2


@dataclass
class Table:
    """A database with one deep key, which is paused, and one shallow key."""

    world: World
    seconds: list[float] = field(default_factory=list)
    deep_seconds: list[float] = field(default_factory=list)

    def round(self) -> None:
        """Claim one job of the shallow key, then one of the deep key, and finish both."""
        self.world.submit("shallow", source="schedule")
        self.seconds.append(self._claim("shallow.test"))
        self.world.database.run(lambda session: jobs.resume_key(session, "deep.test", by="benchmark"))
        self.deep_seconds.append(self._claim("deep.test"))
        self.world.database.run(lambda session: jobs.pause_key(session, "deep.test", by="benchmark"))

    def _claim(self, key: str) -> float:
        began = time.perf_counter()
        [claimed] = self.world.claim("benchmark", 1)
        seconds = time.perf_counter() - began
        assert claimed.lease.rate_key == key
        self.world.finish(claimed)
        return seconds


def fill(database: Database, waiting: int) -> Table:
    """A table with `waiting` jobs in one key, as its statistics know."""
    world = World(database)
    for name in ("deep", "shallow"):
        world.add_site(name, f"http://{name}.test/")
        world.add_target(name, name)
    world.submit("deep", source="schedule")
    for start in range(1, waiting, BATCH):
        with database.transaction() as session:
            add_waiting(session, range(start, min(waiting, start + BATCH)))
    with database.transaction() as session:
        jobs.pause_key(session, "deep.test", by="benchmark")
        session.execute(text("ANALYZE"))
    return Table(world)


def add_waiting(session: Session, numbers: Sequence[int]) -> None:
    now = clock.now(session)

    def row(number: int) -> dict[str, Any]:
        due = now + timedelta(microseconds=number % BATCH)
        return {
            "id": f"{number:012x}",
            "root_id": f"{number:012x}",
            "site_code": "deep",
            "target_code": "deep",
            "rate_key": "deep.test",
            "source": "schedule",
            "due_at": due,
            "retry_at": due,
            "enqueued_at": now,
        }

    session.execute(insert(Job), [row(number) for number in numbers])


@contextmanager
def databases(engine: str, folder: Path) -> Iterator[list[Database]]:
    """Two empty, migrated databases of one engine."""
    with ExitStack() as stack:
        if engine == "postgresql":
            server = stack.enter_context(PostgresServer(durable=True))
            urls = [server.create_database(empty=True) for _ in range(2)]
        else:
            urls = [f"sqlite:///{folder / f'{number}.sqlite3'}" for number in range(2)]
        opened = [Database(url, instance_path=folder) for url in urls]
        for database in opened:
            stack.callback(database.close)
            migrations.upgrade(database)
        yield opened


def measure(engine: str, folder: Path) -> bool:
    """Print the figures of one engine; whether the ratio is within bounds."""
    with databases(engine, folder) as (one, other):
        tables = {SHALLOW: fill(one, SHALLOW), DEEP: fill(other, DEEP)}
        for number in range(ROUNDS):
            # Each goes first every other time.
            for waiting in sorted(tables, reverse=bool(number % 2)):
                tables[waiting].round()
    medians = {waiting: statistics.median(table.seconds) for waiting, table in tables.items()}
    deep = {waiting: statistics.median(table.deep_seconds) for waiting, table in tables.items()}
    ratio, deep_ratio = medians[DEEP] / medians[SHALLOW], deep[DEEP] / deep[SHALLOW]
    for what, figures, quotient in (("another key", medians, ratio), ("the deep key", deep, deep_ratio)):
        sys.stdout.write(
            f"{engine:10}  claim of {what:12}  {figures[SHALLOW] * 1e3:6.2f} ms with {SHALLOW:,} waiting, "
            f"{figures[DEEP] * 1e3:6.2f} ms with {DEEP:,}: ratio {quotient:.2f}\n"
        )
    return ratio <= ALLOWED_RATIO


def main() -> None:
    """Measure both engines; exit code 1 when a deep key slows a claim of another one."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    fine = True
    for engine in ("sqlite", "postgresql"):
        with tempfile.TemporaryDirectory(prefix="webqueue-bench-") as folder:
            try:
                fine &= measure(engine, Path(folder))
            except MissingRequirementError as error:
                sys.stdout.write(f"{engine}: not measured: {error}\n")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
