"""The files of an instance that a backup has: originals, kept pages, evidence, exports, WARC files, and settings."""

from __future__ import annotations

import filecmp
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from webqueue import logs
from webqueue.backup.archive import INSTANCE, STORE, ArchiveWriter, BackupError, fits
from webqueue.documents.warc import CLOSED, OPEN
from webqueue.documents.warc import FOLDER as WARC
from webqueue.settings import Settings

log = logs.get(__name__)

SETTINGS_FILE: Final = "webqueue.env"
# What a restoration keeps of what was there has this in its name, with the time, and is in no backup.
REPLACED: Final = ".before-restore-"
_FOLDERS: Final = ("requests", "exports")
_KEPT: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}\.gz")
# They say where an installation is: a copy with the same ones would work on the first one's data.
_OF_THE_PLACE: Final = re.compile(
    r"\s*(export\s+)?WEBQUEUE_(DATABASE_URL|STORE_URL|INSTANCE_PATH)\s*=", re.IGNORECASE
)


def add_files(archive: ArchiveWriter, settings: Settings) -> None:
    """Add everything but the database, which comes first: what it names is then in the store already.

    Files whose names no restoration would take, as an editor's copies, are left out, and named in the log.
    """
    left_out: set[Path] = set()
    _add_store(archive, settings)
    for folder in _FOLDERS:
        # What is packed, renamed or deleted meanwhile is looked for once more.
        for _round in range(2):
            for path in sorted((settings.instance_path / folder).glob("[A-Za-z0-9_]*.jsonl*")):
                if not path.name.endswith(".part") and REPLACED not in path.name:
                    _add_file(archive, f"{INSTANCE}{folder}/{path.name}", path, left_out)
    _add_warc(archive, settings.instance_path / WARC, left_out)
    _add_file(archive, f"{INSTANCE}{SETTINGS_FILE}", settings.instance_path / SETTINGS_FILE, left_out)
    for path in sorted(left_out):
        log.warning("a file is not in the backup: it has no name that webqueue gives", file=str(path))


def put_file(settings: Settings, name: str, content: IO[bytes], *, replaced: str) -> None:
    """Write one member of an archive to where it belongs; it appears when it is whole.

    What the store has already stays: its name is the hash of its content. Any other file that is there, and is
    different, stays under a new name.

    Args:
        replaced: what the new name of a replaced file ends with; begins with `REPLACED`.

    Raises:
        BackupError: there is a file of that new name.
    """
    if name.startswith(STORE):
        _put_in_store(settings, name.removeprefix(STORE), content)
        return
    path = settings.instance_path / name.removeprefix(INSTANCE)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            part.chmod(0o600)
            if path.name == SETTINGS_FILE:
                file.write(_without_places(content.read()))
            else:
                shutil.copyfileobj(content, file)
        if path.name == SETTINGS_FILE and path.exists():
            # The place has settings of its own: those of the backup are laid beside them.
            path = path.with_name(f"{SETTINGS_FILE}.restored")
        if path.exists():
            if filecmp.cmp(part, path, shallow=False):
                return
            put_aside(path, replaced)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def put_aside(path: Path, ending: str) -> Path:
    """Rename a file; its new path.

    Raises:
        BackupError: there is a file of that name. What an earlier restoration has kept is never lost by a later one.
    """
    aside = path.with_name(path.name + ending)
    if aside.exists():
        raise BackupError(
            f"{aside} is there already, and would be replaced. Move it elsewhere, and restore again."
        )
    path.rename(aside)
    return aside


def _without_places(content: bytes) -> bytes:
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    kept = [
        f"# not restored, it is another place's: {line.partition('=')[0].strip()}"
        if _OF_THE_PLACE.match(line)
        else line
        for line in lines
    ]
    return "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape")


def _add_file(archive: ArchiveWriter, name: str, path: Path, left_out: set[Path]) -> None:
    if name in archive.files:
        return
    if not fits(name):
        if path.exists():
            left_out.add(path)
        return
    with suppress(FileNotFoundError), path.open("rb") as file:
        archive.add(name, path.stat().st_size, file)


def _add_warc(archive: ArchiveWriter, folder: Path, left_out: set[Path]) -> None:
    for _round in range(2):
        for path in sorted(folder.glob(f"*/*{CLOSED}*")):
            name = f"{INSTANCE}{folder.name}/{path.parent.name}/{path.name}"
            # A file that was full, or let go, meanwhile has lost its ending: it is there already.
            if path.name.endswith((CLOSED, OPEN)) and f"{name}.open" not in archive.files:
                _add_file(archive, name, path, left_out)


def _store(settings: Settings) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # slow to import

    filesystem, root = url_to_fs(settings.store)
    return filesystem, str(root).rstrip("/")


def _kept_files(filesystem: Any, root: str) -> Iterator[tuple[str, str, int]]:
    for path, facts in sorted(filesystem.find(root, detail=True).items()):
        name = path.removeprefix(root).lstrip("/")
        if _KEPT.fullmatch(name):  # else somebody is just writing it
            yield path, name, int(facts["size"])


def _add_store(archive: ArchiveWriter, settings: Settings) -> None:
    filesystem, root = _store(settings)
    if not filesystem.exists(root):
        return
    for path, name, size in _kept_files(filesystem, root):
        try:
            with filesystem.open(path, "rb") as file:
                archive.add(f"{STORE}{name}", size, file)
        except FileNotFoundError:
            log.info("a kept page was deleted while the backup was made", kept=name)


def _put_in_store(settings: Settings, name: str, content: IO[bytes]) -> None:
    filesystem, root = _store(settings)
    path = f"{root}/{name}"
    if filesystem.exists(path):
        return
    folder, _, own = path.rpartition("/")
    filesystem.makedirs(folder, exist_ok=True)
    unfinished = f"{folder}/.{own}.{secrets.token_hex(8)}.tmp"
    with filesystem.open(unfinished, "wb") as file:
        shutil.copyfileobj(content, file)
    filesystem.mv(unfinished, path)
