"""The statements of the queue protocol: the guarded UPDATE of one row, and the time it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import sqlalchemy
from sqlalchemy import ColumnElement, CursorResult, bindparam, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Mapper, Session
from sqlalchemy.orm.attributes import instance_state
from sqlalchemy.sql.functions import FunctionElement

from webqueue import clock
from webqueue.database import UTCDateTime

if TYPE_CHECKING:
    from webqueue.leases.model import ModelWithQueue

Identity = tuple[Any, ...]
_SEVERAL: Final = (list, tuple, set, frozenset)


class _DatabaseTime(FunctionElement[datetime]):
    """The database's time within a statement. Its argument is this machine's, which is SQLite's as well."""

    type = UTCDateTime()
    inherit_cache = True
    name = "database_time"


@compiles(_DatabaseTime)
def _time_of_this_machine(element: _DatabaseTime, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.clauses, **kw))


@compiles(_DatabaseTime, "postgresql")
def _time_of_the_server(_element: _DatabaseTime, _compiler: Any, **_kw: Any) -> str:
    # clock_timestamp() is volatile, so that a comparison with it could not use an index. This one can.
    return "statement_timestamp()"


def due_by(now: datetime | None) -> ColumnElement[datetime]:
    """What `retry_at` of a due row is not later than: `now`, or the database's time when the query runs."""
    now = now or clock.replacement()
    if now is not None:
        return bindparam("now", now, UTCDateTime, unique=True)
    return _DatabaseTime(bindparam("now", callable_=clock.local_now, type_=UTCDateTime, unique=True))


def column_time(context: Any) -> datetime:
    """Default of a column: the database's time."""
    return clock.now(context.root_connection)


def lease_until(now: datetime, lock_seconds: float) -> datetime:
    """The end of a lease that begins `now`.

    Raises:
        ValueError: it would not be later than `now`; the swap would change nothing, and everybody would win it.
    """
    until = now + timedelta(seconds=lock_seconds)
    if until <= now:
        raise ValueError(f"lock_seconds must be more than zero, not {lock_seconds!r}.")
    return until


def mapper_of(model: type[ModelWithQueue]) -> Mapper[Any]:
    return cast("Mapper[Any]", sqlalchemy.inspect(model))


def identity_of(row: ModelWithQueue) -> Identity:
    """The primary key of a row that is, or was, in the database."""
    return cast("Identity", instance_state(row).identity)


def key_text(identity: Identity) -> str:
    """A primary key for log lines."""
    return ", ".join(str(part) for part in identity)


def is_row(model: type[ModelWithQueue], identity: Identity) -> list[ColumnElement[bool]]:
    return [column == value for column, value in zip(mapper_of(model).primary_key, identity, strict=True)]


def matches(attribute: Any, value: object) -> ColumnElement[bool]:
    """The attribute has the value (None: is NULL), or one of them if it is a list, tuple or set."""
    if isinstance(value, _SEVERAL):
        return cast("ColumnElement[bool]", attribute.in_(list(value)))
    return cast("ColumnElement[bool]", attribute == value)


def filter_text(value: object) -> str:
    """The value of a filter for log lines."""
    return " or ".join(str(one) for one in value) if isinstance(value, _SEVERAL) else str(value)


def database_now(session: Session, model: type[ModelWithQueue]) -> datetime:
    """The time of the database that holds the rows of `model`."""
    return clock.now(session.connection(bind_arguments={"mapper": mapper_of(model)}))


def swap(
    session: Session,
    model: type[ModelWithQueue],
    identity: Identity,
    values: Mapping[str, Any],
    conditions: Iterable[ColumnElement[bool]],
) -> bool:
    """One UPDATE of one row; True when the row met the conditions.

    Nothing is flushed before it: an attribute changed in memory must not be written unguarded on the way.
    """
    statement = update(model).where(*is_row(model, identity), *conditions).values(**values)
    with session.no_autoflush:
        result = session.execute(statement, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", result).rowcount == 1
