"""The runner of a queue: takes what is due, and brings each row to its next state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import ColumnElement, CursorResult, case, select, update
from sqlalchemy.orm import Session

from webqueue import clock, logs
from webqueue.database import Database
from webqueue.leases.lease import Lease
from webqueue.leases.model import ModelWithQueue
from webqueue.leases.saving import inside_runner
from webqueue.leases.statements import Identity, database_now, identity_of, key_text, mapper_of
from webqueue.leases.states import (
    ACTIVE_STATE_LEASE_SECONDS,
    RETRY_AT_MAX,
    paused_state,
    unfinished_states,
)

log = logs.get(__name__)

M = TypeVar("M", bound=ModelWithQueue)
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class RunCounts:
    """What one round of `run_due` came to, in rows.

    Attributes:
        handled: the handler ended, and what it answered was written.
        failed: the handler, the cleanup or `is_alive` raised; it is logged, and the row is due later.
        cleaned: final rows that were cleaned up and left the queue.
        alive: not started, because their work still runs.
        lost: somebody else was faster, or the row was taken over, paused or finished while it was handled.
        repaired: unfinished rows that had no due time.
    """

    handled: int = 0
    failed: int = 0
    cleaned: int = 0
    alive: int = 0
    lost: int = 0
    repaired: int = 0


def run_due(
    model: type[M],
    handle: Callable[[M, Lease], Fields | None],
    *,
    database: Database,
    is_alive: Callable[[M], bool] | None = None,
    cleanup: Callable[[M], None] | None = None,
    lock_seconds: float = ACTIVE_STATE_LEASE_SECONDS,
    failure_delay_seconds: float = ACTIVE_STATE_LEASE_SECONDS,
    limit: int = 100,
    only: ColumnElement[bool] | None = None,
) -> RunCounts:
    """Run what is due, one row after the other: claim it, renew its lease, handle it, write the answer.

    Any number of processes may do this at once. A row is claimed, and becomes active, in one short transaction;
    the handler gets it detached and runs outside of any. Its answer is written only while the lease is ours and
    the row is unfinished: one that was cancelled, paused or taken over meanwhile stays as it is.

    Args:
        model: the queue.
        handle: does the work and returns the fields to write, e.g. `{"status": "sealed"}`. An unfinished row
            without a `retry_at` in them is due again when its lease ends. An exception is logged and puts the row
            back to its initial state, due later.
        database: where the rows are.
        is_alive: asked before a due row is started; True means that its work still runs although its lease
            ended. The row is then not started, and asked about again when the new lease ends.
        cleanup: called with a final row that has a due time, before it leaves the queue.
        lock_seconds: length of a lease.
        failure_delay_seconds: how long a row waits after an exception.
        limit: most rows taken in one round.
        only: a condition on the rows that are taken, such as their kind; None takes all.

    Raises:
        ClaimRefusedError: rows of this model are claimed in another way.
    """
    model.refuse_claims()
    runner = _Runner(model, handle, database, is_alive, cleanup, lock_seconds, failure_delay_seconds, only)
    with inside_runner():
        return runner.run(limit)


@dataclass(frozen=True)
class _Runner(Generic[M]):
    model: type[M]
    handle: Callable[[M, Lease], Fields | None]
    database: Database
    is_alive: Callable[[M], bool] | None
    cleanup: Callable[[M], None] | None
    lock_seconds: float
    failure_delay_seconds: float
    only: ColumnElement[bool] | None

    def run(self, limit: int) -> RunCounts:
        counts = Counter(repaired=self._repair())
        for identity in self._due(limit):
            counts.update(self._run_row(identity))
        return RunCounts(**counts)

    def _repair(self) -> int:
        """Put unfinished rows without a due time back into the queue: nobody would ever look at them again."""
        model = self.model
        states = [state for state in unfinished_states(model) if state not in model.OUT_OF_QUEUE_STATES]
        broken = (model.status.in_(states), model.retry_at.is_(None))
        with self.database.reading() as session:
            if session.execute(select(model.status).where(*broken).limit(1)).first() is None:
                return 0

        def repair(session: Session) -> int:
            now = database_now(session, model)
            due = case((model.status == paused_state(model), RETRY_AT_MAX), else_=now)
            statement = update(model).where(*broken).values(retry_at=due, modified_at=now)
            result = session.execute(statement, execution_options={"synchronize_session": False})
            return cast("CursorResult[Any]", result).rowcount

        repaired = self.database.run(repair)
        log.warning("unfinished queue rows without a due time repaired", model=model.__name__, rows=repaired)
        return repaired

    def _due(self, limit: int) -> list[Identity]:
        model = self.model
        query = model.get_queue().where(model.status.in_((*model.RUNNABLE_STATES, *model.FINAL_STATES)))
        if self.only is not None:
            query = query.where(self.only)
        keys = query.limit(limit).with_only_columns(*mapper_of(model).primary_key)
        with self.database.reading() as session:
            return [tuple(row) for row in session.execute(keys)]

    def _run_row(self, identity: Identity) -> list[str]:
        """Do what a due row needs; the names of the counts that it adds to."""
        sent = clock.boot_seconds()
        row = self.database.run(lambda session: self._claim(session, identity))
        if row is None:
            return ["lost"]
        lease = Lease(
            self.database,
            self.model,
            identity,
            until=cast("datetime", row.retry_at),
            lock_seconds=self.lock_seconds,
            sent=sent,
        )
        try:
            if row.status in self.model.FINAL_STATES:
                return [self._clean(row, lease)]
            if self.is_alive is not None and self.is_alive(row):
                return ["alive"]
        except Exception as error:  # noqa: BLE001 - logged; one row must not keep the others from their turn
            # It is tried again when its lease ends.
            self._log_failure(identity, error)
            return ["failed"]
        return self._handle(row, lease)

    def _claim(self, session: Session, identity: Identity) -> M | None:
        row = session.get(self.model, identity)
        if row is None or not self.model.claim_for_worker(row, self.lock_seconds):
            return None
        # The claim locked the row, so that what is read now stays so; it may have changed since it was loaded.
        session.refresh(row)
        if row.status in self.model.FINAL_STATES:
            return row
        if row.status not in self.model.RUNNABLE_STATES:
            session.rollback()
            return None
        if row.status != self.model.ACTIVE_STATE:
            row.safe_update({"status": self.model.ACTIVE_STATE})
        return row

    def _clean(self, row: M, lease: Lease) -> str:
        if self.cleanup is not None:
            with lease.kept(self.model.FINAL_STATES):
                self.cleanup(row)
        guard = {"retry_at": lease.values, "status": self.model.FINAL_STATES}
        written = self._write(identity_of(row), guard, lambda _now: {"retry_at": None})
        return "lost" if written is None else "cleaned"

    def _handle(self, row: M, lease: Lease) -> list[str]:
        outcome = "handled"
        try:
            with lease.kept(unfinished_states(self.model)):
                fields = self.handle(row, lease) or {}
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(identity_of(row), error)
            outcome, fields = "failed", {"status": self.model.INITIAL_STATE}
        final = fields.get("status") in self.model.FINAL_STATES

        def answer(now: datetime) -> Fields:
            if outcome == "failed":
                return {**fields, "retry_at": now + timedelta(seconds=self.failure_delay_seconds)}
            # Due for its cleanup at once, so that it is not forgotten when this process ends in between.
            return {"retry_at": now if self.cleanup else None, **fields} if final else fields

        guard = {"retry_at": lease.values, "status": unfinished_states(self.model)}
        written = self._write(identity_of(row), guard, answer)
        if written is None:
            return ["lost"]
        if final and self.cleanup is not None and written["retry_at"] is not None:
            return [outcome, *self._run_row(identity_of(row))]
        return [outcome]

    def _write(
        self, identity: Identity, guard: Mapping[str, Any], answer: Callable[[datetime], Fields]
    ) -> Fields | None:
        """Write what `answer` says for the database's time; None when the row is no longer ours."""

        def write(session: Session) -> Fields | None:
            row = session.get(self.model, identity)
            fields = answer(database_now(session, self.model))
            written = row is not None and row.safe_update(fields, refresh=False, extra_filter=guard)
            return fields if written else None

        return self.database.run(write)

    def _log_failure(self, identity: Identity, error: Exception) -> None:
        log.error("queue row failed", exc_info=error, model=self.model.__name__, key=key_text(identity))
