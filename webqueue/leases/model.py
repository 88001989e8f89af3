"""The mixin of a queue's model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sqlalchemy import Column, Select, String, func, select
from sqlalchemy.orm import (
    Mapped,
    MappedColumn,
    Session,
    aliased,
    declared_attr,
    mapped_column,
    object_session,
)
from sqlalchemy.orm.attributes import instance_state, set_committed_value
from sqlalchemy.orm.exc import ObjectDeletedError

from webqueue import clock, logs
from webqueue.database import UTCDateTime
from webqueue.errors import WebqueueError
from webqueue.leases.statements import (
    column_time,
    database_now,
    due_by,
    filter_text,
    identity_of,
    is_row,
    key_text,
    lease_until,
    mapper_of,
    matches,
    swap,
)
from webqueue.leases.states import (
    ACTIVE_STATE_LEASE_SECONDS,
    RETRY_AT_MAX,
    DefaultStatusChoices,
    derive_states,
    extend_choices,
    paused_state,
)

log = logs.get(__name__)


class ClaimRefusedError(WebqueueError):
    """Rows of this model are not claimed by the verbs of the queue protocol; the text says how they are."""


class NotInSessionError(WebqueueError):
    """The row belongs to no session, so that it cannot be written."""

    def __init__(self, row: object, verb: str) -> None:
        super().__init__(
            f"A {type(row).__name__} that belongs to no session: add or load it before calling {verb}."
        )


class ModelWithQueue:
    """Mixin of a mapped class whose rows are a durable queue.

    A model may replace the states (`StatusChoices` with `INITIAL_STATE`, `ACTIVE_STATE`, `FINAL_STATES`) and
    the columns (`StatusField`, `RetryAtField`). The methods of a row work in its session (`object_session`) and
    never commit.

    Attributes:
        FINAL_OR_ACTIVE_STATES: derived, always.
        RUNNABLE_STATES: what `run_due` hands to a handler; derived (initial and active) when not given.
        OPEN_STATES: derived (all but the final ones) when not given.
        OUT_OF_QUEUE_STATES: unfinished states in which a `retry_at` of NULL is no damage, e.g. an idle rate key.
        warn_on_save_outside_runner: whether an ORM change outside the runner is logged with its caller.
    """

    StatusChoices: ClassVar[type[StrEnum]] = DefaultStatusChoices
    INITIAL_STATE: ClassVar[str] = DefaultStatusChoices.QUEUED
    ACTIVE_STATE: ClassVar[str] = DefaultStatusChoices.STARTED
    FINAL_STATES: ClassVar[tuple[str, ...]] = (DefaultStatusChoices.SEALED,)
    FINAL_OR_ACTIVE_STATES: ClassVar[tuple[str, ...]] = (*FINAL_STATES, ACTIVE_STATE)
    RUNNABLE_STATES: ClassVar[tuple[str, ...]] = (INITIAL_STATE, ACTIVE_STATE)
    OPEN_STATES: ClassVar[tuple[str, ...]] = (INITIAL_STATE, ACTIVE_STATE, DefaultStatusChoices.PAUSED)
    OUT_OF_QUEUE_STATES: ClassVar[tuple[str, ...]] = ()
    # Which groups above were not given, and are thus worked out anew for a subclass.
    derived_groups: ClassVar[frozenset[str]] = frozenset({"RUNNABLE_STATES", "OPEN_STATES"})
    warn_on_save_outside_runner: ClassVar[bool] = True

    @staticmethod
    def StatusField(  # noqa: N802 - the protocol's name
        *, choices: Iterable[str | tuple[str, str]] | None = None, max_length: int = 15, **kw: Any
    ) -> MappedColumn[str]:
        """The column of `status`: indexed, never NULL, queued at first.

        Args:
            choices: the states (an enum, or its `choices`), to check that they fit the column.
            max_length: characters.
            kw: anything else of `mapped_column`, e.g. `default`, `index`.

        Raises:
            ValueError: a state is too long, or the default is none of them.
        """
        kw = {"default": DefaultStatusChoices.QUEUED, "index": True, "nullable": False, **kw}
        states = [choice if isinstance(choice, str) else choice[0] for choice in choices or ()]
        default = [kw["default"]] if isinstance(kw["default"], str) else []
        for state in (*states, *default):
            if len(state) > max_length:
                raise ValueError(f"The status {str(state)!r} has more than {max_length} characters.")
            if states and state not in states:
                raise ValueError(f"The default status {str(state)!r} is none of {', '.join(states)}.")
        return mapped_column(String(max_length), **kw)

    @staticmethod
    def RetryAtField(**kw: Any) -> MappedColumn[datetime | None]:  # noqa: N802 - the protocol's name
        """The column of `retry_at`: indexed, may be NULL, now at first; `kw` is anything of `mapped_column`."""
        kw = {"default": column_time, "index": True, "nullable": True, **kw}
        # Else SQLAlchemy would take an explicit None for "not given", and store the default.
        return mapped_column(UTCDateTime().evaluates_none(), **kw)

    if TYPE_CHECKING:
        status: Mapped[str]
        retry_at: Mapped[datetime | None]
    else:
        # Declared for each model, because the first state is the model's.
        @declared_attr
        def status(cls) -> Mapped[str]:  # noqa: N805 - SQLAlchemy calls it with the class
            return cls.StatusField(choices=cls.StatusChoices, default=cls.INITIAL_STATE)

        @declared_attr
        def retry_at(cls) -> Mapped[datetime | None]:  # noqa: N805 - as above
            return cls.RetryAtField()

    modified_at: Mapped[datetime] = mapped_column(UTCDateTime, default=column_time, onupdate=column_time)

    def __init_subclass__(cls, **kw: Any) -> None:
        derive_states(cls)
        super().__init_subclass__(**kw)

    extend_choices = staticmethod(extend_choices)

    @classmethod
    def claim_refusal(cls) -> str | None:
        """Why the claim verbs refuse this model and what to use instead; None when they do not."""
        return None

    @classmethod
    def refuse_claims(cls) -> None:
        """Raise ClaimRefusedError where the model has a `claim_refusal`."""
        if (reason := cls.claim_refusal()) is not None:
            raise ClaimRefusedError(reason)

    @property
    def STATE(self) -> str:  # noqa: N802 - the protocol's name
        """Another name of `status`."""
        return self.status

    @STATE.setter
    def STATE(self, value: str) -> None:  # noqa: N802 - as above
        self.status = value

    @property
    def RETRY_AT(self) -> datetime | None:  # noqa: N802 - the protocol's name
        """Another name of `retry_at`."""
        return self.retry_at

    @RETRY_AT.setter
    def RETRY_AT(self, value: datetime | None) -> None:  # noqa: N802 - as above
        self.retry_at = value

    @property
    def is_paused(self) -> bool:
        """Whether the row is in the paused state; never, where the states have none."""
        paused = paused_state(type(self))
        return paused is not None and self.status == paused

    def pause(self, save: bool = True) -> bool:
        """Take an unfinished row out of the queue until `resume`.

        Args:
            save: False changes only memory.

        Returns:
            False when the states have no paused, or the row is final, paused already, deleted, or no longer in
            the state that was loaded; memory then shows what the database has.
        """
        paused = paused_state(type(self))
        if paused is None or self._is_gone() or self.status in self.FINAL_STATES or self.is_paused:
            return False
        return self._change(paused, RETRY_AT_MAX, save=save)

    def resume(self, when: datetime | None = None, save: bool = True) -> bool:
        """Put a paused row back into the queue, due at `when` (now when None); False unless it is paused.

        Args:
            when: an aware time.
            save: False changes only memory.
        """
        if self._is_gone() or not self.is_paused:
            return False
        queued = getattr(self.StatusChoices, "QUEUED", self.INITIAL_STATE)
        return self._change(queued, self._now() if when is None else when, save=save)

    def bump_retry_at(self, seconds: float = 10) -> None:
        """Let the row be due `seconds` from now, in memory only."""
        self.retry_at = self._now() + timedelta(seconds=seconds)

    @classmethod
    def get_queue(cls, now: datetime | None = None) -> Select[Self]:
        """The due rows, the oldest first: not the paused ones, those due later, or those without a due time.

        A final row with a due time is among them: it waits for its cleanup.

        Args:
            now: the time to compare with; None is the time of the database when the query runs.
        """
        query = select(cls).where(cls.retry_at <= due_by(now))
        if (paused := paused_state(cls)) is not None:
            query = query.where(cls.status != paused)
        return query.order_by(cls.retry_at, *mapper_of(cls).primary_key)

    @classmethod
    def claim_for_worker(cls, obj: Self, lock_seconds: float = ACTIVE_STATE_LEASE_SECONDS) -> bool:
        """Lease a due row if its `retry_at` is still the one that was loaded: of all who try, one gets True.

        The status is not looked at, which is how final rows get their cleanup. Only `retry_at` and `modified_at`
        are changed in memory: refresh the row before relying on anything else.

        Raises:
            ClaimRefusedError: rows of this model are claimed in another way.
            ValueError: `lock_seconds` is not more than zero.
        """
        cls.refuse_claims()
        session = _session_of(obj, "claim_for_worker")
        if obj._is_gone() or obj.retry_at is None:
            return False
        now = database_now(session, cls)
        values = {"retry_at": lease_until(now, lock_seconds), "modified_at": now}
        if not swap(
            session, cls, identity_of(obj), values, [cls.retry_at == obj.retry_at, cls.retry_at <= now]
        ):
            return False
        for name, value in values.items():
            set_committed_value(obj, name, value)
        return True

    def claim_processing_lock(self, lock_seconds: float = ACTIVE_STATE_LEASE_SECONDS) -> bool:
        """`claim_for_worker` for a row to work on: also False when it is final or has no due time."""
        self.refuse_claims()
        if self._is_gone() or self.status in self.FINAL_STATES or self.retry_at is None:
            return False
        return type(self).claim_for_worker(self, lock_seconds)

    def safe_update(
        self,
        fields: Mapping[str, Any],
        refresh: bool = True,
        extra_filter: Mapping[str, Any] | None = None,
    ) -> bool:
        """Write `fields` in one UPDATE, only where the row matches `extra_filter`.

        Args:
            fields: attribute names and values; `modified_at` is set too.
            refresh: afterwards read the row again, whether written or not. What was changed in memory and is
                neither a field of the queue nor in `fields` stays as it is, still to be flushed.
            extra_filter: attribute names and values; None means IS NULL, a list or tuple means one of them.

        Returns:
            Whether exactly one row was written; False when the filter missed (logged) or the row is deleted.
        """
        session = _session_of(self, "safe_update")
        model = type(self)
        values = {"modified_at": database_now(session, model), **fields}
        guards = [matches(getattr(model, name), value) for name, value in (extra_filter or {}).items()]
        written = swap(session, model, identity_of(self), values, guards)
        if not written and extra_filter:
            self._log_guard_miss(session, extra_filter)
        if refresh:
            self._refresh(session, {"status", "retry_at", *values})
        return written

    def update_and_requeue(self, refresh: bool = True, **fields: Any) -> bool:
        """`safe_update` while the lease is ours: only as long as `retry_at` is what was loaded."""
        if self._is_gone():
            return False
        return self.safe_update(fields, refresh, {"retry_at": self.retry_at})

    @classmethod
    def status_counts(
        cls,
        session: Session,
        query: Select[Self] | None = None,
        statuses: Iterable[str] | None = None,
    ) -> dict[str, int]:
        """Rows by status, in one GROUP BY.

        Args:
            session: where to count.
            query: which rows; None counts the whole table.
            statuses: what to answer for; None means the states of the model, and any other that is found.

        Returns:
            A number for each status, 0 where there is no row.
        """
        rows = aliased(cls, (select(cls) if query is None else query).subquery())
        grouped = select(rows.status, func.count()).group_by(rows.status)
        found = {status: number for status, number in session.execute(grouped)}  # noqa: C416 - rows, not tuples
        if statuses is None:
            return {**{str(status): 0 for status in cls.StatusChoices}, **found}
        return {str(status): found.get(str(status), 0) for status in statuses}

    def _now(self) -> datetime:
        session = object_session(self)
        return clock.local_now() if session is None else database_now(session, type(self))

    def _is_gone(self) -> bool:
        """Whether the row was deleted by somebody else, as far as reading an expired object tells."""
        try:
            _ = self.status
        except ObjectDeletedError:
            return True
        return False

    def _change(self, status: str, retry_at: datetime, *, save: bool) -> bool:
        if save:
            fields = {"status": status, "retry_at": retry_at}
            return self.safe_update(fields, extra_filter={"status": self.status})
        self.status, self.retry_at = status, retry_at
        return True

    def _refresh(self, session: Session, written: Iterable[str]) -> None:
        state = instance_state(self)
        stale = {*state.unmodified, *written} & state.dict.keys()
        attributes = [
            attribute
            for attribute in mapper_of(type(self)).column_attrs
            if attribute.key in stale and isinstance(attribute.columns[0], Column)
        ]
        query = select(*(attribute.class_attribute for attribute in attributes))
        with session.no_autoflush:
            row = session.execute(query.where(*is_row(type(self), identity_of(self)))).one_or_none()
        # A deleted row leaves memory as it was.
        for attribute, value in zip(attributes, row or (), strict=False):
            set_committed_value(self, attribute.key, value)

    def _log_guard_miss(self, session: Session, extra_filter: Mapping[str, Any]) -> None:
        model, identity = type(self), identity_of(self)
        query = select(model.status, model.retry_at).where(*is_row(model, identity))
        with session.no_autoflush:
            current = session.execute(query).one_or_none()
        log.info(
            "SafeUpdateGuardMiss",
            model=model.__name__,
            key=key_text(identity),
            extra_filter={name: filter_text(value) for name, value in extra_filter.items()},
            current_status=None if current is None else str(current.status),
            current_retry_at=None if current is None else str(current.retry_at),
            loaded_status=instance_state(self).dict.get("status"),
        )


def _session_of(row: ModelWithQueue, verb: str) -> Session:
    session = object_session(row)
    if session is None:
        raise NotInSessionError(row, verb)
    if row in session.new:
        session.flush()
    return session
