"""Column types that mean the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, TypeDecorator
from sqlalchemy import Text as PlainText
from sqlalchemy.dialects.postgresql import JSONB

# PostgreSQL stores no NUL in a text, and neither database a lone surrogate: crawled pages contain both.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class UTCDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored in UTC.

    SQLite's DateTime drops the offset, and a raw binding writes another text form than SQLAlchemy's, so that
    comparisons go wrong: every time is bound through this type (DESIGN section 5, SQLite traps).
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise TypeError(f"A time without a zone would be ambiguous: {value!r}")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class Text(TypeDecorator[str]):
    """Text from anywhere: what no database can store is replaced by U+FFFD, nothing else is touched."""

    impl = PlainText
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class JSONData(TypeDecorator[Any]):
    """JSON (JSONB on PostgreSQL) whose texts are storable."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return _storable_data(value)


def storable(value: str) -> str:
    """`value` with every character replaced that a database cannot store."""
    return _UNSTORABLE.sub(_REPLACEMENT, value)


def _storable_data(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): _storable_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable_data(item) for item in value]
    return value
