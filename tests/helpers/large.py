"""A large installation: rows written past the verbs, for ten thousand runs would take an hour."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert, select, text, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    HOSTILE,
    QUOTED,
    add_site,
    add_target,
    add_worker,
    fill,
    finished_job,
    log_lines,
)
from webqueue import clock, config, jobs
from webqueue.database import Database
from webqueue.models import Job, Process, RateKey, Target
from webqueue.models.rate_keys import RateKeyStatus

KEYS: Final = 40
TARGETS: Final = 300
JOBS: Final = 10_000
QUEUED: Final = 200
STATUSES: Final = ("done", "done", "done", "failed", "cancelled", "skipped", "done", "failed")
# Whose next ticks come first, in minutes from now, whatever hour and day it is: those that tests press or look for.
SOON: Final = {HOSTILE: 5, "gz_notices": 10, "target_000": 20, "target_120": 30}
_BATCH: Final = 10_000


def fill_large(session: Session, count: int) -> None:
    """40 keys, 300 targets, and `count` jobs, the last 200 of them waiting."""
    now = clock.now(session)
    add_worker(session, now)
    for number in range(KEYS):
        add_site(session, f"site_{number:02}", f"http://host{number:02}.example.org/")
    for number in range(TARGETS):
        add_target(
            session, f"target_{number:03}", f"site_{number % KEYS:02}", schedule=f"{number % 60} 3 * * *"
        )
    session.flush()
    rows: list[dict[str, Any]] = []
    for number in range(count):
        queued = number >= count - QUEUED
        target, site = number % TARGETS, number % TARGETS % KEYS
        began = now - timedelta(seconds=(count - number) * 60)
        job_id = f"{number:012x}"
        rows.append(
            {
                "id": job_id,
                "root_id": job_id,
                "site_code": f"site_{site:02}",
                "target_code": f"target_{target:03}",
                "rate_key": f"host{site:02}.example.org",
                "source": "manual",
                "created_by": "ann",
                "status": "queued" if queued else STATUSES[number % len(STATUSES)],
                "from_page": number if queued else 0,
                "due_at": began,
                "retry_at": began if queued else None,
                "enqueued_at": began,
                "started_at": None if queued else began,
                "began_at": None if queued else began,
                "finished_at": None if queued else began + timedelta(seconds=20 + number % 40),
                "error_msg": "HTTP 500"
                if not queued and STATUSES[number % len(STATUSES)] == "failed"
                else None,
            }
        )
        if len(rows) == _BATCH or number == count - 1:
            session.execute(insert(Job), rows)
            rows.clear()
    for key in session.scalars(select(RateKey).order_by(RateKey.key)).all():
        jobs.settle(session, key, now)


def make_large_file(migrated: Path, folder: Path) -> Path:
    """A SQLite file with 40 keys, 300 targets and 10,000 jobs, and beside them what `fill` adds: every state.

    Args:
        migrated: a file with the tables.
        folder: for the new one.
    """
    file = folder / "large.sqlite3"
    shutil.copyfile(migrated, file)
    database = Database(f"sqlite:///{file}", instance_path=folder)
    try:
        database.run(lambda session: fill_large(session, JOBS))
        fill(database)
        database.run(_add_hostile_targets)
    finally:
        database.close()
    connection = sqlite3.connect(file)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return file


def add_past(database: Database, times: int) -> None:
    """Let the jobs that ended have happened so many times before as well, a week earlier each time; SQLite only."""
    columns = [column.name for column in Job.__table__.columns if column.name != "seq"]
    earlier = "strftime('%Y-%m-%d %H:%M:%f000', {}, '-' || (n * 8) || ' days')"
    values = [
        "printf('%06x%06x', n, seq)" if name in {"id", "root_id"} else earlier.format(name)
        if name.endswith("_at") else name
        for name in columns
    ]  # fmt: skip
    with database.transaction() as session:
        session.execute(text("PRAGMA cache_size = -300000"))
        session.execute(
            text(
                f"WITH RECURSIVE past(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM past WHERE n < {times}) "
                f"INSERT INTO jobs ({', '.join(columns)}) SELECT {', '.join(values)} FROM past, jobs "
                "WHERE status NOT IN ('queued', 'running') AND target_code LIKE 'target%' ORDER BY n DESC, seq"
            )
        )


def bring_to_now(session: Session) -> None:
    """Workers live, the key that is shut has just been shut, and the ticks are ahead, however old the file is."""
    now = clock.now(session)
    session.execute(update(Process).values(heartbeat_at=now + timedelta(minutes=10)))
    shop = session.get_one(RateKey, "shop.example.com")
    shop.cooldown_until = now + timedelta(minutes=28)
    jobs.settle(session, shop, now)
    # So long that no key begins to be overdue while a test moves the clock.
    session.execute(
        update(RateKey)
        .where(RateKey.retry_at <= now, RateKey.status == RateKeyStatus.IDLE)
        .values(retry_at=now - timedelta(hours=1))
    )
    for target in session.scalars(select(Target).where(Target.next_tick_at <= now + timedelta(hours=1))):
        target.next_tick_at = now + timedelta(hours=1)
    for code, minutes in SOON.items():
        session.get_one(Target, code).next_tick_at = now + timedelta(minutes=minutes)


def _add_hostile_targets(session: Session) -> None:
    """Targets with names that no form takes: whatever a database holds, pages show it as text."""
    now = clock.now(session)
    for name in (QUOTED, HOSTILE):
        session.add(
            Target(
                code=name, site_code="hostile", handler="python", params={"function": name}, schedule="0 5 * * *",
                next_tick_at=now + timedelta(days=1), fires_at=now + timedelta(days=1),
                created_at=now, changed_at=now,
            )
        )  # fmt: skip
    session.flush()
    # A change and a deletion that can be undone.
    add_target(session, "hostile_target", "hostile", note=HOSTILE * 2, owner=QUOTED)
    add_target(session, "deleted", "hostile", note=HOSTILE)
    config.delete_target(session, "deleted", by=HOSTILE, now=now)
    for minutes, name in enumerate((QUOTED, HOSTILE), 1):
        job = finished_job(
            session, name, ago=timedelta(minutes=minutes), seconds=1, status="failed", error_msg=name
        )
        log_lines(session, job, name)
    finished_job(session, HOSTILE, ago=timedelta(minutes=2), seconds=1, attention=QUOTED)
    jobs.submit(session, QUOTED, by=QUOTED)
    jobs.submit(session, HOSTILE, by=HOSTILE)
