"""Which workers of this instance live: a lock that the kernel takes away from a process that ends (DESIGN P5)."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from webqueue import logs
from webqueue.database.sockets import FOLDER
from webqueue.jobs import Life
from webqueue.worker.groups import kill_groups_of

log = logs.get(__name__)

SUFFIX: Final = ".lock"
_UNFINISHED_SUFFIX: Final = ".new"
# A file that is made takes its lock at once; one that lies about unlocked for longer was left by a crash.
_UNFINISHED_FOR_SEC: Final = 60.0


def life_in(instance: Path) -> Callable[[str], Life]:
    """What is known of the workers of an instance, seen by a process that is none itself (P8)."""
    return Liveness.of(instance).life


class Liveness:
    """The lock files in `instance/workers/`, one a worker process, named by its id.

    The file is in this instance and its lock can be got: the process is dead. The lock is held: it lives. No file: it
    is another machine's, and nothing is known.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._locks: dict[str, int] = {}
        _keep_out_of_children(self)

    @classmethod
    def of(cls, instance: Path) -> Liveness:
        """Those of an instance."""
        return cls(instance / FOLDER)

    def enter(self, worker_id: str) -> None:
        """Take the lock of `worker_id`, held until `leave` or the end of this process, however it ends.

        The file gets its name only once it is locked: nobody ever sees the file of a process that is about to live and
        takes it for a dead one's.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.folder / (worker_id + _UNFINISHED_SUFFIX)
        # O_CLOEXEC: a program started by a handler must not hold the lock of a worker that died.
        lock = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lock, f"{os.getpid()}\n".encode())
            unfinished.rename(self._path(worker_id))
        except OSError:
            os.close(lock)
            raise
        self._locks[worker_id] = lock

    def leave(self, worker_id: str) -> None:
        """Give the lock back and remove its file: nothing may be leased by `worker_id` any more."""
        lock = self._locks.pop(worker_id, None)
        if lock is None:
            return
        self._path(worker_id).unlink(missing_ok=True)
        os.close(lock)

    def life(self, worker_id: str) -> Life:
        """What is known about the process `worker_id`.

        Dead means that nothing of it runs any more: the process groups that it has left are killed before this is said.
        """
        if worker_id in self._locks:
            return Life.ALIVE
        try:
            file = os.open(self._path(worker_id), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return Life.UNKNOWN
        try:
            # Shared: two processes that ask at once must not take each other for the owner.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # It left in order, after the file was opened here: it has removed the file before it gave up the lock.
            has_left = os.fstat(file).st_nlink == 0
        except BlockingIOError:
            return Life.ALIVE
        finally:
            os.close(file)  # gives the lock back
        if has_left:
            return Life.UNKNOWN
        kill_groups_of(self.folder, worker_id)
        return Life.DEAD

    def dead_workers(self) -> list[str]:
        """The ids of the workers of this instance that died and whose files still lie here."""
        return [name for name in self._names(SUFFIX) if self.life(name) is Life.DEAD]

    def remove_dead(self, worker_ids: list[str]) -> None:
        """Remove the files of dead workers, after their leases were freed."""
        for worker_id in worker_ids:
            for path in (self._path(worker_id), self.folder / f"{worker_id}.sock"):
                path.unlink(missing_ok=True)
        self._remove_unfinished()

    def forget_in_child(self) -> None:
        """Close the copies of the locks that a forked child got: they are its parent's."""
        for lock in self._locks.values():
            with suppress(OSError):
                os.close(lock)
        self._locks.clear()

    def _remove_unfinished(self) -> None:
        for name in self._names(_UNFINISHED_SUFFIX):
            path = self.folder / (name + _UNFINISHED_SUFFIX)
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _UNFINISHED_FOR_SEC:
                    path.unlink()

    def _names(self, suffix: str) -> list[str]:
        try:
            return sorted(
                path.name.removesuffix(suffix) for path in self.folder.iterdir() if path.suffix == suffix
            )
        except FileNotFoundError:
            return []

    def _path(self, worker_id: str) -> Path:
        return self.folder / (worker_id + SUFFIX)


_all: weakref.WeakSet[Liveness] = weakref.WeakSet()


def _keep_out_of_children(liveness: Liveness) -> None:
    """O_CLOEXEC does nothing for a child that is forked and starts no program (multiprocessing)."""
    _all.add(liveness)


def _after_fork_in_child() -> None:
    for liveness in list(_all):
        liveness.forget_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
