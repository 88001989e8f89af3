"""Temporary folders in memory: a commit waits for the disk, and so would most tests, for nothing that they look at."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SHARED_MEMORY: Final = Path("/dev/shm")
MEMORY: Final = Path("/proc/meminfo")
# Several times what a run of all rings leaves there.
NEEDED_BYTES: Final = 4_000_000_000
# Processes are killed in the middle of their commits there, and a commit is as long as the disk makes it.
ON_DISK: Final = "acceptance"


def use_memory_for_files(arguments: Sequence[str]) -> None:
    """Let this process and its children make their temporary folders in memory, where there is plenty of it.

    Nothing is done when `TMPDIR` says another place, or when the tests of the acceptance ring are among those asked for.

    Args:
        arguments: what pytest is to run: files, folders, or tests.
    """
    asked = [Path(argument.partition("::")[0]).resolve() for argument in arguments]
    ring = Path(__file__).parents[1] / ON_DISK
    if "TMPDIR" in os.environ or any(path in {ring, *ring.parents} or ring in path.parents for path in asked):
        return
    if _has_room():
        os.environ["TMPDIR"] = str(SHARED_MEMORY)
        tempfile.tempdir = None  # asked for again


def _has_room() -> bool:
    """Whether there is a file system in memory with room, where also programs may be started (a container's may not)."""
    try:
        there = os.statvfs(SHARED_MEMORY)
        available = re.search(r"^MemAvailable: *(\d+) kB", MEMORY.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return False
    free = min(there.f_bavail * there.f_frsize, 1024 * int(available[1]) if available else 0)
    return (
        free >= NEEDED_BYTES
        and not there.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
        and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
    )
