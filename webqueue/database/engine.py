"""One database: SQLite in the instance folder by default, PostgreSQL for many processes and machines."""

from __future__ import annotations

import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from webqueue import logs
from webqueue.database.sockets import FOLDER, WakeupSockets
from webqueue.database.wakeup import CHANNEL, Wakeup, wakeup_requested

log = logs.get(__name__)
T = TypeVar("T")

# A writer waited up to 18 s behind eight others at synchronous=FULL, so it may wait this long (DESIGN section 5).
BUSY_TIMEOUT_MS: Final = 60_000
# A heartbeat that waits longer than this is of no use any more; the next one is due before the lease ends.
HEARTBEAT_BUSY_TIMEOUT_MS: Final = 5_000
# PostgreSQL: a lock that does not come within this time is an error, which passes.
LOCK_TIMEOUT_MS: Final = 30_000
# PostgreSQL: a process that was frozen, or whose machine is gone, must not hold its row locks for longer: half a
# lease, so that they are free before its jobs are taken over.
IDLE_IN_TRANSACTION_MS: Final = 30_000
# PostgreSQL: serialization failure, deadlock, lock not available, idle in a transaction for too long, and a server
# that goes away or comes up.
_PASSING_STATES: Final = frozenset({"25P03", "40001", "40P01", "55P03", "57P01", "57P02", "57P03"})
_WRITES: Final = "webqueue_writes"


class Database:
    """Engine and transactions of one database; safe to share between threads, not between processes.

    Args:
        url: SQLAlchemy URL; `postgresql://` means psycopg 3.
        instance_path: the instance folder, where the SQLite file and the workers' locks are.
        synchronous: SQLite's `PRAGMA synchronous`.
        pool_size: connections kept for PostgreSQL.
    """

    def __init__(
        self, url: str, *, instance_path: Path, synchronous: str = "FULL", pool_size: int = 10
    ) -> None:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.url = parsed
        self.instance_path = instance_path
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.wakeup = Wakeup()
        # Names this process in what it tells the others, which it need not hear itself.
        self.sender = secrets.token_hex(4)
        self.sockets: WakeupSockets | None = None
        self._writer = threading.Lock()
        self._writing = threading.local()
        self._notifiers: list[Callable[[], None]] = []
        if self.is_sqlite:
            if parsed.database:
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            self.engine = self._sqlite_engine(BUSY_TIMEOUT_MS, synchronous)
            self._heartbeat_engine = self._sqlite_engine(HEARTBEAT_BUSY_TIMEOUT_MS, synchronous)
            self._set_wal()
            self.sockets = WakeupSockets(instance_path / FOLDER)
            self.add_notifier(self.sockets.notify)
        else:
            self.engine = self._postgresql_engine(pool_size, LOCK_TIMEOUT_MS)
            self._heartbeat_engine = self._postgresql_engine(2, HEARTBEAT_BUSY_TIMEOUT_MS)
        # READ COMMITTED would show each statement of a page another moment; a SQLite transaction has one view anyway.
        self.read_engine = (
            self.engine
            if self.is_sqlite
            else self.engine.execution_options(isolation_level="REPEATABLE READ")
        )
        # For a connection whose transaction will write; `transaction` is the usual way to one.
        self.write_engine = self.engine.execution_options(**{_WRITES: True})
        self._heartbeat_write_engine = self._heartbeat_engine.execution_options(**{_WRITES: True})

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()
        self._heartbeat_engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for reading: one consistent view, nothing is written."""
        with Session(self.read_engine, expire_on_commit=False, autoflush=False) as session:
            yield session

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """One short writing transaction: committed at the end of the block, rolled back when it raises.

        On SQLite writers take turns behind one mutex a process, because losers of `BEGIN IMMEDIATE` would sleep in
        the busy handler. A transaction inside another one of the same thread is a mistake and raises.
        """
        if getattr(self._writing, "now", False):
            # On both databases it would wait for itself.
            raise RuntimeError("A transaction is open in this thread already; pass its session on instead.")
        with self._writer if self.is_sqlite else nullcontext():
            self._writing.now = True
            try:
                with self._session(self.write_engine) as session:
                    yield session
            finally:
                self._writing.now = False

    @contextmanager
    def heartbeat(self) -> Iterator[Session]:
        """A writing transaction outside the writer lock, on a connection of its own, that gives up after 5 s."""
        with self._session(self._heartbeat_write_engine) as session:
            yield session

    def run(
        self,
        work: Callable[[Session], T],
        *,
        read_back: Callable[[Session], T | None] | None = None,
        attempts: int = 8,
    ) -> T:
        """Run `work` in a transaction, and the whole of it again when the database says that it may pass.

        Args:
            work: does everything of the transaction; must be repeatable.
            read_back: when the answer to COMMIT got lost, finds out whether it happened: the result, or None. Needed
                where `work` done twice would do harm.
            attempts: transactions tried before the error is raised.

        Raises:
            DBAPIError: the last error, when it did not pass.
        """
        progress = _Progress()
        for attempt in range(1, attempts + 1):
            try:
                if progress.committing and read_back is not None:
                    found = self._read_back(read_back)
                    if found is not None:
                        return found
                progress.committing = False
                with self.transaction() as session:
                    result = work(session)
                    progress.committing = True
            except DBAPIError as error:
                if attempt == attempts or not is_passing(error):
                    raise
                log.warning("transaction retried", attempt=attempt, error=str(error.orig))
                time.sleep(min(2.0, 0.02 * 2**attempt) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries
            else:
                return result
        raise AssertionError("unreachable")

    def add_notifier(self, notify: Callable[[], None]) -> None:
        """Call `notify` after each commit that may have made work due (wakes the other processes on SQLite)."""
        self._notifiers.append(notify)

    def _read_back(self, read_back: Callable[[Session], T | None]) -> T | None:
        with self.reading() as session:
            found = read_back(session)
        if found is not None:
            self.wakeup.announce()  # the lost answer would have done it
        return found

    @contextmanager
    def _session(self, engine: Engine) -> Iterator[Session]:
        with Session(engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                # Takes the write lock: a time that is read before the wait for it would be too early, and a job could
                # seem to have started while its key was still paused.
                session.connection()
            yield session
            wakes = wakeup_requested(session)
            if wakes and not self.is_sqlite:
                # Delivered by the server at commit, never when the transaction is rolled back.
                session.execute(
                    text("SELECT pg_notify(:channel, :sender)"), {"channel": CHANNEL, "sender": self.sender}
                )
            session.commit()
        if wakes:
            self.wakeup.announce()
            for notify in self._notifiers:
                notify()

    def _sqlite_engine(self, busy_timeout_ms: int, synchronous: str) -> Engine:
        # The driver's own transaction handling is switched off: BEGIN is issued below, and says what it is for.
        engine = create_engine(self.url, connect_args={"isolation_level": None, "check_same_thread": False})

        @event.listens_for(engine, "connect")
        def configure(connection: Any, _record: object) -> None:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
            cursor.close()

        @event.listens_for(engine, "handle_error")
        def drop_read_only(context: ExceptionContext) -> None:
            # SQLite opens a file that it may not write for reading, and stays with that when the file may be written
            # again: such connections have to go.
            code = getattr(context.original_exception, "sqlite_errorcode", 0)
            if code & 0xFF == sqlite3.SQLITE_READONLY:
                if (
                    context.connection is not None
                    and context.connection.connection.driver_connection is not None
                ):
                    # It is closed only once the traceback lets go of its statements: until then it would keep the
                    # write lock that BEGIN IMMEDIATE gave it.
                    context.connection.connection.driver_connection.rollback()
                context.is_disconnect = True

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            # A deferred transaction that reads and then writes fails at once, whatever the timeout.
            writes = connection.get_execution_options().get(_WRITES)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _set_wal(self) -> None:
        """Switch to the write-ahead log once; asking each connection would take a lock each time."""
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            raw.close()

    def _postgresql_engine(self, pool_size: int, lock_timeout_ms: int) -> Engine:
        options = {
            "timezone": "UTC",
            "lock_timeout": lock_timeout_ms,
            "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
        }
        return create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            connect_args={
                "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
                "connect_timeout": 10,
            },
        )


class _Progress:
    """Whether a COMMIT was sent whose answer is not known."""

    committing = False


def is_passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _PASSING_STATES or state.startswith("08")
    if not isinstance(error, OperationalError):
        return False
    message = str(error.orig)
    return "database is locked" in message or "connection" in message.lower()
