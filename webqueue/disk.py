"""How much room the disks have that an instance writes to.

Crawls stop while there is room left, so that the database can go on: a database that cannot write loses nothing, but
nobody can cancel, pause or log in either.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from webqueue.sentences import stored
from webqueue.settings import Settings

MIB: Final = 1024 * 1024
# A disk that was low is not low any more when it has a tenth more than it needs: else crawls would start, fill the
# last megabyte, stop, and start again.
_TENTH: Final = 10


@dataclass(frozen=True)
class Disk:
    """One file system that the instance writes to; bytes.

    Attributes:
        folder: on it; names it for people.
        free: what this process may still write.
        needed: below this crawls stop.
    """

    folder: Path
    free: int
    total: int
    needed: int

    @property
    def is_low(self) -> bool:
        """Whether crawls have to stop."""
        return self.free < self.needed

    @property
    def has_room_again(self) -> bool:
        """Whether crawls may go on after they had to stop."""
        return self.free >= self.needed + self.needed // _TENTH

    def words(self) -> str:
        """How it stands, for people."""
        return stored(
            "%(folder)s has %(free)s MB free of %(total)s MB; crawls need %(needed)s MB",
            folder=self.folder,
            free=f"{self.free // MIB:,}",
            total=f"{self.total // MIB:,}",
            needed=f"{-(-self.needed // MIB):,}",
        )


def look(settings: Settings) -> list[Disk]:
    """The disks of the instance folder, the SQLite file, and the store where that is a folder; each once.

    Raises:
        OSError: one cannot be asked.
    """
    folders = [settings.instance_path]
    url = make_url(settings.url)
    if url.get_backend_name() == "sqlite" and url.database:
        folders.append(Path(url.database).parent)
    if (store := _folder_of(settings.store)) is not None:
        folders.append(store)
    found: dict[int, Disk] = {}
    for folder in folders:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        device = there.stat().st_dev
        if device not in found:
            usage = shutil.disk_usage(there)
            needed = max(settings.disk_free_mb * MIB, int(usage.total * settings.disk_free_percent / 100))
            found[device] = Disk(folder, usage.free, usage.total, needed)
    return list(found.values())


def _folder_of(store: str) -> Path | None:
    """The folder that a store of fsspec is, whether written as a path or as file://…; None where it is none."""
    from fsspec.core import strip_protocol  # slow to import
    from fsspec.utils import get_protocol

    # By the names that fsspec has for a folder: without one it takes a path for "file".
    return Path(strip_protocol(store)) if get_protocol(store) in {"file", "local"} else None


def sync_folder(folder: Path) -> None:
    """Make a renamed file last: without it a power cut may bring back what was there, or nothing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
