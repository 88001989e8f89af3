"""Wake-ups between the processes of one instance on SQLite: datagrams to sockets under `instance/workers/`."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from webqueue import logs

log = logs.get(__name__)

# Of an instance: the sockets and the lock files of its processes.
FOLDER: Final = "workers"
SUFFIX: Final = ".sock"
# Longer paths do not fit into a socket's address; the data version, asked for each 500 ms, has to do then.
LONGEST_PATH: Final = 107


class WakeupSockets:
    """The sockets of one instance folder. A datagram says only "look again" and who says so.

    Args:
        folder: `FOLDER` of the instance, with the lock files of the same processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # What this process sends it has told its own threads already.
        self._sender = secrets.token_bytes(8)

    def notify(self) -> None:
        """Send a datagram to every other process. Never waits and never raises: it is a hint, sent after a commit."""
        try:
            names = [path for path in self.folder.iterdir() if path.suffix == SUFFIX]
        except FileNotFoundError:
            return  # nobody listens
        except OSError as error:
            # They look each 500 ms in any case.
            log.warning(
                "no wake-up sent: the sockets cannot be listed", path=str(self.folder), error=str(error)
            )
            return
        if not names:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            for path in names:
                self._send(sender, path)

    def listen(self, name: str) -> socket.socket | None:
        """Bind the socket `name`; None where the path is too long for one."""
        path = self._path(name)
        if len(str(path).encode()) > LONGEST_PATH:
            log.info("no wake-up socket: its path is too long", path=str(path), longest=LONGEST_PATH)
            return None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            receiver.bind(str(path))
        except OSError:
            receiver.close()
            raise
        return receiver

    def woken(self, receiver: socket.socket) -> bool:
        """Read every datagram that waits; True when another process sent one."""
        woken = False
        with suppress(BlockingIOError):
            while True:
                woken |= receiver.recv(64) != self._sender
        return woken

    def remove(self, name: str) -> None:
        """Remove the socket `name`, if there is one."""
        self._path(name).unlink(missing_ok=True)

    def _send(self, sender: socket.socket, path: Path) -> None:
        try:
            sender.sendto(self._sender, str(path))
        except ConnectionRefusedError:
            # Bound once, and nobody has it open any more: its process was killed.
            with suppress(OSError):
                path.unlink()
        except OSError as error:
            # Gone meanwhile, or full: then a hint is waiting to be read already.
            log.debug("wake-up not sent", socket=path.name, error=str(error))

    def _path(self, name: str) -> Path:
        return self.folder / (name + SUFFIX)
