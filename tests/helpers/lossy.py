"""A connection to PostgreSQL that breaks at a COMMIT: before the server gets it, or before its answer arrives."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from sqlalchemy import make_url


class LossyProxy:
    """Passes everything on, and cuts the connection at the next COMMIT once `cut` says how.

    Args:
        url: SQLAlchemy URL of the database behind it.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._server = (str(parsed.host), int(parsed.port or 5432))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = parsed.set(
            host="127.0.0.1", port=self._listener.getsockname()[1], query={"sslmode": "disable"}
        ).render_as_string(hide_password=False)
        self._cut: str | None = None
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A blocked accept is not woken by close alone.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self, when: str) -> None:
        """Cut once: `before` the next COMMIT reaches the server, or `after` it, so that only the answer is lost."""
        self._cut = when

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                server = socket.create_connection(self._server)
                pair = _Pair(client, server)
                threading.Thread(target=self._pass_on, args=(pair,), daemon=True).start()
                threading.Thread(target=self._answer, args=(pair,), daemon=True).start()

    def _pass_on(self, pair: _Pair) -> None:
        with suppress(OSError):
            while data := pair.client.recv(65_536):
                if b"COMMIT\0" in data and self._cut is not None:
                    when, self._cut = self._cut, None
                    self.cuts += 1
                    if when == "before":
                        break
                    pair.swallows = True
                pair.server.sendall(data)
        pair.close()

    def _answer(self, pair: _Pair) -> None:
        with suppress(OSError):
            # The answer to COMMIT has arrived: so it was done, and the client never hears of it.
            while (data := pair.server.recv(65_536)) and not pair.swallows:
                pair.client.sendall(data)
        pair.close()


class _Pair:
    """The two ends of one connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.swallows = False

    def close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
