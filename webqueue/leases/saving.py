"""A warning when a queue row is saved through the ORM outside the runner, past the guards of the protocol."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.orm import Mapper, object_session

from webqueue import database, logs
from webqueue.leases.model import ModelWithQueue
from webqueue.leases.statements import identity_of, key_text

log = logs.get(__name__)

_in_runner: ContextVar[bool] = ContextVar("webqueue_in_runner", default=False)

# Files that only carry a save on: the caller is the first one outside of them.
_MACHINERY: Final = (
    str(contextlib.__file__),
    str(Path(__file__).parent),
    str(Path(database.__file__).parent),
    str(Path(sqlalchemy.__file__).parent),
    "<",
)
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


@contextmanager
def inside_runner() -> Iterator[None]:
    """Within this block, in this thread, queue rows are saved through the ORM without a warning."""
    token = _in_runner.set(True)
    try:
        yield
    finally:
        _in_runner.reset(token)


@event.listens_for(ModelWithQueue, "before_update", propagate=True)
def _warn_of_save(mapper: Mapper[Any], _connection: object, row: ModelWithQueue) -> None:
    if not row.warn_on_save_outside_runner or _in_runner.get():
        return
    session = object_session(row)
    if session is None or not session.is_modified(row, include_collections=False):
        return
    file, line = _caller()
    log.warning(
        "queue row saved outside the runner",
        model=mapper.class_.__name__,
        key=key_text(identity_of(row)),
        file=file,
        line=line,
    )


def _caller() -> tuple[str, int]:
    for frame, line in traceback.walk_stack(None):
        file = frame.f_code.co_filename
        if not file.startswith(_MACHINERY) and _INSTALLED.isdisjoint(Path(file).parts):
            return file, line
    return "unknown", 0
