"""The declarative base, and the small table of stored settings and flags."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import MetaData, String, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from webqueue.database import JSONData, UTCDateTime

# Names of constraints are the same on both databases, so that migrations can name them.
NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
CODE_LENGTH = 64
KEY_LENGTH = 255


class Base(DeclarativeBase):
    """Every table of webqueue."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UTCDateTime}


# The name of the one stored flag under which nothing is claimed.
PAUSED_ALL = "paused_all"


class StoredSetting(Base):
    """A setting or flag that every process reads: `PAUSED_ALL`, `session_secret`, ..."""

    __tablename__ = "settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[Any] = mapped_column(JSONData)
    changed_at: Mapped[datetime]
    changed_by: Mapped[str] = mapped_column(String(128), default="")

    @classmethod
    def read(cls, session: Session, name: str) -> Any:
        """What is stored under a name now, whatever the session has loaded before; None when nothing is."""
        return session.scalar(select(cls.value).where(cls.name == name))

    @classmethod
    def put(cls, session: Session, name: str, value: Any, *, at: datetime, by: str = "") -> None:
        """Store `value` under a name, in the place of what stands there.

        Args:
            session: a writing transaction; it holds the turn of the name (`take_turn`) where others may write it too.
            value: what JSON can hold.
            at: when it changed.
            by: who changed it.
        """
        anew = select(cls).where(cls.name == name).execution_options(populate_existing=True)
        row = session.scalars(anew).one_or_none()
        if row is None:
            session.add(cls(name=name, value=value, changed_at=at, changed_by=by))
        else:
            row.value, row.changed_at, row.changed_by = value, at, by
