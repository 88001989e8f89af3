"""The archive: a gzipped tar whose last member, the manifest, says what the others have to be.

The manifest comes last because checksums are known only when everything is written; an archive that was cut has none.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from webqueue.errors import WebqueueError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SQLITE_MEMBER: Final = "database.sqlite3"
POSTGRESQL_MEMBER: Final = "database.pgdump"
STORE: Final = "store/"
INSTANCE: Final = "instance/"
# Nothing else is ever written to disk, so that no archive can name a file outside of the instance.
_ALLOWED: Final = re.compile(
    r"database\.(sqlite3|pgdump)"
    r"|store/[0-9a-f]{2}/[0-9a-f]{64}\.gz"
    r"|instance/(requests|exports)/[A-Za-z0-9_][A-Za-z0-9_.-]*"
    r"|instance/warc/[a-z0-9_-][a-z0-9_.-]*/[a-z0-9_-][A-Za-z0-9_.-]*"
    r"|instance/webqueue\.env"
)
# Originals are compressed already, and texts shrink nearly as much as by a slower level.
_LEVEL: Final = 3
_PIECE: Final = 1 << 20


class BackupError(WebqueueError):
    """A backup cannot be made, or an archive cannot be restored here."""


@dataclass(frozen=True)
class Manifest:
    """What an archive says of itself.

    Attributes:
        version: of the webqueue that wrote it.
        made_at: ISO 8601, UTC.
        engine: `sqlite` or `postgresql`.
        revision: of the tables.
        counts: rows of each table.
        files: of every member but this one, its bytes and its SHA-256.
    """

    version: str
    made_at: str
    engine: str
    revision: str
    counts: Mapping[str, int]
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The member's content."""
        files = [
            {"name": name, "bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()
        ]
        facts = {
            "format": FORMAT,
            "version": self.version,
            "made_at": self.made_at,
            "engine": self.engine,
            "revision": self.revision,
            "counts": dict(self.counts),
            "files": files,
        }
        return json.dumps(facts, indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Manifest:
        """Read it.

        Raises:
            BackupError: it is none, or of a later format.
        """
        try:
            facts: dict[str, Any] = json.loads(content)
            if facts["format"] != FORMAT:
                raise BackupError(
                    f"The archive has the format {facts['format']}; this version reads {FORMAT}. Install the "
                    "webqueue that wrote it, or a later one."
                )
            return cls(
                version=str(facts["version"]),
                made_at=str(facts["made_at"]),
                engine=str(facts["engine"]),
                revision=str(facts["revision"]),
                counts={str(name): int(count) for name, count in facts["counts"].items()},
                files={str(one["name"]): (int(one["bytes"]), str(one["sha256"])) for one in facts["files"]},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError(f"The archive's {MANIFEST} cannot be read: {error!r}.") from None


class ArchiveWriter:
    """Writes members one after the other and remembers their checksums.

    Args:
        file: where the archive goes; it is neither synced nor closed here.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=file, mode="w:gz", compresslevel=_LEVEL)  # noqa: SIM115 - see `close`
        self.files: dict[str, tuple[int, str]] = {}

    def add(self, name: str, size: int, stream: IO[bytes]) -> None:
        """Add the first `size` bytes of a stream; what is appended to a file meanwhile belongs to the next backup.

        Raises:
            BackupError: it became shorter meanwhile, or no restoration would take a member of that name (`fits`).
        """
        if not fits(name):
            raise BackupError(f"A backup cannot have a member {name!r}.")
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
        hashed = _Hashed(stream)
        try:
            self._tar.addfile(entry, hashed)
        except OSError as error:
            if hashed.bytes < size and error.errno is None:
                raise BackupError(f"{name} became shorter while it was read.") from error
            raise
        self.files[name] = (size, hashed.hexdigest)

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest, and end the archive."""
        content = manifest.to_json()
        entry = tarfile.TarInfo(MANIFEST)
        entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
        self._tar.addfile(entry, io.BytesIO(content))
        self._tar.close()


class _Hashed:
    """A stream whose bytes are hashed as they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self._hash.update(piece)
        self.bytes += len(piece)
        return piece

    @property
    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def fits(name: str) -> bool:
    """Whether an archive may have a member of that name; one with another is refused as a whole."""
    return _ALLOWED.fullmatch(name) is not None


def verify(path: Path) -> Manifest:
    """Read a whole archive, write nothing, and compare everything with its manifest.

    Raises:
        BackupError: it is cut, damaged, or no backup of webqueue.
    """
    found: dict[str, tuple[int, str]] = {}
    manifest: Manifest | None = None
    with reading(path) as members:
        for name, stream in members:
            if manifest is not None:
                raise BackupError(f"{path} has {name} behind its manifest: it was changed.")
            if name == MANIFEST:
                manifest = Manifest.from_json(stream.read())
                continue
            if name in found:
                raise BackupError(f"{path} has {name} twice: it was changed.")
            hashed = _Hashed(stream)
            while hashed.read(_PIECE):
                pass
            found[name] = (hashed.bytes, hashed.hexdigest)
    if manifest is None:
        raise BackupError(f"{path} has no {MANIFEST}: it is cut, or no backup of webqueue.")
    for name in sorted(found.keys() | manifest.files.keys()):
        if found.get(name) != tuple(manifest.files.get(name, ())):
            raise BackupError(f"{path} is damaged: {name} is not what {MANIFEST} says. Use another backup.")
    return manifest


@contextmanager
def reading(path: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """The members of an archive in their order, each with its content.

    Raises:
        BackupError: it is cut or damaged, or has a member that no backup has.
    """
    try:
        # tarfile's own decompression does not notice a cut end.
        with gzip.open(path) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            yield _members(path, tar, packed)
    except FileNotFoundError:
        raise BackupError(f"There is no file {path}.") from None
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise BackupError(f"{path} is cut or damaged: {error}. Use another backup.") from None
    except OSError as error:
        if error.errno is not None:  # the disk's own errors, of what is read and of what is written
            raise
        raise BackupError(f"{path} is cut or damaged: {error}. Use another backup.") from None


def _members(path: Path, tar: tarfile.TarFile, packed: gzip.GzipFile) -> Iterator[tuple[str, IO[bytes]]]:
    for entry in tar:
        stream = tar.extractfile(entry) if entry.isreg() else None
        if stream is None or (entry.name != MANIFEST and not fits(entry.name)):
            raise BackupError(f"{path} has a member {entry.name!r} that no backup has. Nothing was changed.")
        yield entry.name, stream
    while packed.read(_PIECE):  # to the checksum at its end
        pass
