"""The ORM's classes of annotated statements are complete before two threads can meet in one (SQLAlchemy 2.1)."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own, where nothing has been deleted yet. While the first thread makes the class of annotated
# statements, a second one uses it: right after it was published, which is before it is complete.
PROGRAM = """
import threading, warnings
from datetime import UTC, datetime
from pathlib import Path
from sqlalchemy.sql import annotation
from webqueue.database import Database
from webqueue.models import Delivery, DeliveryStatus
from sqlalchemy import delete, update

warnings.simplefilter("error")
database = Database("sqlite:///:memory:", instance_path=Path({folder!r}))
Delivery.__table__.create(database.engine)
problems, met = [], []

def run():
    try:
        with database.engine.connect() as connection:
            from sqlalchemy.orm import Session
            with Session(connection) as session:
                session.execute({statement})
    except Exception as error:
        problems.append(f"{{type(error).__name__}}: {{error}}")

class Published(dict):
    def __setitem__(self, cls, made):
        super().__setitem__(cls, made)
        if cls.__name__ == {name!r} and not met:
            met.append(cls)
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

annotation.annotated_classes = Published(annotation.annotated_classes)
run()
assert not problems, problems
assert not met, "it was made by the first statement"
"""


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("Delete", "delete(Delivery).where(Delivery.id.in_([1])).returning(Delivery.id)"),
        ("Update", "update(Delivery).where(Delivery.id == 1).values(attempts=2).returning(Delivery.id)"),
    ],
)
def test_two_threads_may_run_the_first_statement_of_a_kind(
    tmp_path: object, name: str, statement: str
) -> None:
    program = PROGRAM.format(folder=str(tmp_path), name=name, statement=statement)
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-2000:]
