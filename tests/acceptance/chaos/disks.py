"""Disks that fill up, and files that may not be written any more, under processes that run."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

SIZE = 16 * 1024 * 1024


@dataclass(frozen=True)
class Disk:
    """Where a database may lie.

    Attributes:
        folder: for the SQLite file.
        take: takes the room, or the right to write, away; the argument names the processes that run.
        give: gives it back.
        error: what SQLite says meanwhile.
        words: what the web side makes of it.
    """

    folder: Path
    take: Callable[[list[int]], None]
    give: Callable[[list[int]], None]
    error: str
    words: str


@contextmanager
def small_disk(folder: Path, size: int = SIZE) -> Iterator[Disk]:
    """A file system in memory, of 16 MB unless told otherwise, that is full between `take` and `give`; needs the right to mount."""
    folder.mkdir()
    _as_root("mount", "-t", "tmpfs", "-o", f"size={size}", "webqueue-test", str(folder))
    ballast = folder / "ballast"

    def fill(_pids: list[int]) -> None:
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    try:
        yield Disk(
            folder,
            fill,
            lambda _pids: ballast.unlink(),
            "database or disk is full",
            "The disk of the database is full.",
        )
    finally:
        # Lazily: somebody may have a file open still.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def limited_files(folder: Path) -> Iterator[Disk]:
    """Processes that may write no file further than its first 4096 bytes (RLIMIT_FSIZE); needs no rights."""
    folder.mkdir()

    def limit(pids: list[int], size: int) -> None:
        for pid in pids:
            _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    yield Disk(
        folder,
        lambda pids: limit(pids, 4096),
        lambda pids: limit(pids, resource.RLIM_INFINITY),
        "disk I/O error",
        "The database cannot be written.",
    )


@contextmanager
def frozen_files(folder: Path) -> Iterator[Disk]:
    """Files that nobody may write, not even root (the attribute `i` of chattr(1))."""
    folder.mkdir()
    probe = folder / "probe"
    probe.touch()
    _as_root("chattr", "+i", str(probe))
    _as_root("chattr", "-i", str(probe))

    def change(how: str) -> None:
        # Not the index of the log (-shm): SQLite maps it, and a page of a mapped file that cannot be written kills.
        files = [str(folder / f"webqueue.sqlite3{ending}") for ending in ("", "-wal")]
        subprocess.run(["chattr", how, *files], check=True)

    try:
        yield Disk(
            folder,
            lambda _pids: change("+i"),
            lambda _pids: change("-i"),
            "disk I/O error",
            "The database cannot be written.",
        )
    finally:
        with suppress(subprocess.CalledProcessError):
            change("-i")


def _as_root(*command: str) -> None:
    """Run a command that only root may run, on a system that has it; else skip the test."""
    if os.geteuid() != 0 or shutil.which(command[0]) is None:
        pytest.skip(f"needs root and {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")  # a container without the right to
