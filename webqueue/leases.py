"""The queue protocol: `status`, `retry_at`, `modified_at`, and who owns a row (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import String
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr, mapped_column

from webqueue import clock
from webqueue.database import UTCDateTime

RETRY_AT_MAX: Final = datetime(9999, 1, 1, tzinfo=UTC)
ACTIVE_STATE_LEASE_SECONDS: Final = 60


def _database_clock(context: Any) -> datetime:
    return clock.now(context.root_connection)


class DefaultStatusChoices(StrEnum):
    """The states of a queue row, where its model does not replace them."""

    QUEUED = "queued"
    STARTED = "started"
    PAUSED = "paused"
    SEALED = "sealed"


class ModelWithQueue:
    """Mixin of a mapped class whose rows are a durable queue."""

    StatusChoices: ClassVar[type[StrEnum]] = DefaultStatusChoices
    INITIAL_STATE: ClassVar[str] = DefaultStatusChoices.QUEUED
    ACTIVE_STATE: ClassVar[str] = DefaultStatusChoices.STARTED
    FINAL_STATES: ClassVar[tuple[str, ...]] = (DefaultStatusChoices.SEALED,)
    FINAL_OR_ACTIVE_STATES: ClassVar[tuple[str, ...]] = (DefaultStatusChoices.SEALED, DefaultStatusChoices.STARTED)
    OUT_OF_QUEUE_STATES: ClassVar[tuple[str, ...]] = ()
    warn_on_save_outside_runner: ClassVar[bool] = True

    @staticmethod
    def StatusField(  # noqa: N802 - the protocol's name
        *, choices: Iterable[Any] | None = None, max_length: int = 15, **kw: Any
    ) -> MappedColumn[str]:
        kw.setdefault("default", DefaultStatusChoices.QUEUED)
        kw.setdefault("index", True)
        kw.setdefault("nullable", False)
        return mapped_column(String(max_length), **kw)

    @staticmethod
    def RetryAtField(**kw: Any) -> MappedColumn[datetime | None]:  # noqa: N802 - the protocol's name
        kw.setdefault("default", _database_clock)
        kw.setdefault("index", True)
        kw.setdefault("nullable", True)
        return mapped_column(UTCDateTime, **kw)

    if TYPE_CHECKING:
        status: Mapped[str]
        retry_at: Mapped[datetime | None]
    else:

        @declared_attr
        def status(cls) -> Mapped[str]:  # noqa: N805 - SQLAlchemy calls it with the class
            return cls.StatusField(default=cls.INITIAL_STATE)

        @declared_attr
        def retry_at(cls) -> Mapped[datetime | None]:  # noqa: N805
            return cls.RetryAtField()

    modified_at: Mapped[datetime] = mapped_column(
        UTCDateTime, default=_database_clock, onupdate=_database_clock, nullable=False
    )

    @classmethod
    def claim_refusal(cls) -> str | None:
        """Why the claim verbs refuse this model, None when they do not."""
        return None
