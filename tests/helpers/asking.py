"""Questions to a database, and rows to ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import event, update
from sqlalchemy.orm import Session

from webqueue import jobs, queries
from webqueue.database import Database
from webqueue.models import Job, KeyEvent, RateKey
from webqueue.queries import JobRow

KEY = "www.example.org"


def read(database: Database, question: Callable[[Session], Any]) -> Any:
    """What a question about the database answers."""
    with database.reading() as session:
        return question(session)


def submit(database: Database, target: str = "news", **more: Any) -> str:
    """Queue a run; its id."""
    return database.run(lambda s: jobs.submit(s, target, by="ann", **more)).id


def job_of(database: Database, job_id: str) -> JobRow:
    """A job as pages show it."""
    with database.reading() as session:
        return queries.get_job(session, job_id)


@contextmanager
def counted_statements(database: Database) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("BEGIN", "ROLLBACK")):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def note_stuck(database: Database, job: Job, *, at: datetime) -> None:
    """Note that a worker cannot stop a job."""
    event = KeyEvent(rate_key=job.rate_key, at=at, kind="stuck", message="does not stop", job_id=job.id)
    database.run(lambda s: s.add(event))


def change_key(database: Database, **values: Any) -> None:
    """Change every rate key."""
    database.run(lambda s: s.execute(update(RateKey).values(values)))
