"""Hears that another process made work due, and wakes the threads of this one (DESIGN section 5, wake-up).

All of it is a hint: what is missed here is found by the next poll of the table.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from webqueue import logs
from webqueue.database.engine import Database
from webqueue.database.wakeup import CHANNEL
from webqueue.loops import Loop

log = logs.get(__name__)

# Asking each 50 ms cost 0.28 CPU seconds a minute (DESIGN section 5).
DATA_VERSION_SEC: Final = 0.5
# How long a blocking read of notifications lasts, and so how long a stop may take.
NOTIFY_WAIT_SEC: Final = 0.5


class Listener:
    """Announces to `database.wakeup` what the other processes commit.

    Args:
        database: the database listened to.
        name: unique among the processes of the instance; names the socket.
        on_wakeup: called instead of `database.wakeup.announce`.
    """

    def __init__(self, database: Database, name: str, *, on_wakeup: Callable[[], None] | None = None) -> None:
        announce = on_wakeup or database.wakeup.announce
        self._ear: _SocketEar | _NotificationEar = (
            _SocketEar(database, name, announce)
            if database.is_sqlite
            else _NotificationEar(database, announce)
        )
        self._loop = Loop("listener", self._ear.listen, on_stop=self._ear.interrupt)

    @property
    def problem(self) -> str | None:
        """Why wake-ups do not arrive at present; None when they do."""
        return self._loop.problem

    def start(self) -> None:
        """Begin to listen."""
        self._ear.open()
        self._loop.start()

    def stop(self) -> None:
        """Stop listening, and close what it was done with."""
        if not self._loop.running:
            return
        self._loop.stop()
        if self._loop.join(5):
            self._ear.close()


class _NotificationEar:
    """PostgreSQL: LISTEN on a connection of its own in autocommit mode, made again whenever it breaks."""

    def __init__(self, database: Database, announce: Callable[[], None]) -> None:
        self._database = database
        self._announce = announce
        self._connection: Any = None

    def open(self) -> None:
        """Nothing to do: the connection is made by the loop, which tries again when the server is away."""

    def listen(self) -> float:
        if self._connection is None:
            self._connection = self._connect()
            self._announce()  # whatever was sent before the connection stood is lost
        try:
            for notification in self._connection.notifies(timeout=NOTIFY_WAIT_SEC):
                if notification.payload != self._database.sender:
                    self._announce()
        except Exception:
            self.close()
            raise
        return 0

    def interrupt(self) -> None:
        """Nothing to do: a read ends within half a second, and closing a connection in use is not safe."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Any:
        connection = open_connection(
            self._database, autocommit=True, connect_timeout=10, keepalives_idle=30, keepalives_interval=10
        )
        try:
            connection.execute(f"LISTEN {CHANNEL}")
        except Exception:
            connection.close()
            raise
        return connection


class _SocketEar:
    """SQLite: a datagram socket, and `PRAGMA data_version` behind it, which changes when others have committed."""

    def __init__(self, database: Database, name: str, announce: Callable[[], None]) -> None:
        self._database = database
        self._name = name
        self._announce = announce
        self._receiver: socket.socket | None = None
        self._stop_reader = self._stop_writer = -1
        self._connection: Any = None
        self._seen = 0

    def open(self) -> None:
        self._stop_reader, self._stop_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        assert self._database.sockets is not None, "a SQLite database has sockets"
        try:
            self._receiver = self._database.sockets.listen(self._name)
        except OSError as error:
            log.warning("no wake-up socket", folder=str(self._database.sockets.folder), error=str(error))
        self._connection = open_connection(self._database, check_same_thread=False, isolation_level=None)
        self._seen = self._data_version()

    def listen(self) -> float:
        ears = [self._stop_reader] + ([self._receiver.fileno()] if self._receiver is not None else [])
        select.select(ears, [], [], DATA_VERSION_SEC)
        told = self._receiver is not None and self._sockets_woken()
        version = self._data_version()
        if told or version != self._seen:
            self._seen = version
            self._announce()
        return 0

    def interrupt(self) -> None:
        os.write(self._stop_writer, b".")

    def close(self) -> None:
        if self._receiver is not None and self._database.sockets is not None:
            self._receiver.close()
            self._database.sockets.remove(self._name)
        self._connection.close()
        os.close(self._stop_reader)
        os.close(self._stop_writer)

    def _sockets_woken(self) -> bool:
        assert self._database.sockets is not None
        assert self._receiver is not None
        return self._database.sockets.woken(self._receiver)

    def _data_version(self) -> int:
        with closing(self._connection.execute("PRAGMA data_version")) as cursor:
            return int(cursor.fetchone()[0])


def open_connection(database: Database, **options: Any) -> Any:
    """A connection of the driver, outside SQLAlchemy's pool, with the database's own address."""
    arguments, parameters = database.engine.dialect.create_connect_args(database.url)
    return database.engine.dialect.loaded_dbapi.connect(*arguments, **{**parameters, **options})
