"""The file of a target's chunks: always whole, always the present state, every chunk once."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from webqueue import logs
from webqueue.deliveries.chunks import key_of_chunk
from webqueue.disk import sync_folder

log = logs.get(__name__)
FOLDER: Final = "exports"


class FileBusyError(Exception):
    """Another delivery of the same target writes the file."""


def path_of(instance: Path, target_code: str) -> Path:
    """Where a target's chunks are."""
    return instance / FOLDER / f"{target_code}.jsonl"


def covered_until(path: Path) -> datetime | None:
    """Until when the file has every change, from the beginning on; None when that is not known."""
    try:
        until, *marks = _note_of(path).read_text(encoding="ascii").split()
        # Somebody else may have put another file there, as a restored backup does: the note is not of that.
        return datetime.fromisoformat(until) if marks == _marks_of(path) else None
    except (FileNotFoundError, ValueError):
        return None


def note_covered(path: Path, until: datetime) -> None:
    """Note that a file that was whole has every change until then, too, because there was none.

    Raises:
        FileBusyError: somebody else is at it.
        OSError: it cannot be written.
    """
    if path.exists():
        with _alone(path):
            _note(path, _later(until, covered_until(path)))


def replace_documents(path: Path, keys: AbstractSet[str], lines: Iterable[bytes], *, until: datetime) -> int:
    """Put the chunks of some documents into the file, in place of those that it has of them.

    The file is written anew beside the old one and takes its place in one step, so that a reader, and a crash at any
    moment, meets the old or the new one. A new one is its owner's alone, as all that crawls found; whom somebody has let read it
    since, may go on. Appending would be cheaper, but a crash between writing and noting it would
    double lines, and chunks of changed documents would stay beside their successors.

    Args:
        path: of the file; its folder is made.
        keys: of the documents, as `chunks.document_key` makes them.
        lines: their chunks.
        until: until when the file has every change then.

    Returns:
        How many lines were written of these documents.

    Raises:
        FileBusyError: somebody else is at it.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        before = covered_until(path)
        part = path.with_name(f".{path.name}.part")
        written = 0
        with _written(part, like=path) as file:
            file.writelines(_others(path, keys))
            for line in lines:
                file.write(line)
                written += 1
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)
        # After the file: a crash in between makes the next delivery put in again what is there.
        _note(path, _later(until, before))
        return written


def _written(part: Path, *, like: Path) -> IO[bytes]:
    """The unfinished file, for writing, to be read by whoever may read the file that it replaces."""
    mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, mode)  # one that a crash left behind has another
    return os.fdopen(descriptor, "wb")


def _note_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.until")


def _marks_of(path: Path) -> list[str]:
    """By what a file is told from another one in its place."""
    found = path.stat()
    return [str(found.st_size), str(found.st_mtime_ns)]


def _later(until: datetime, before: datetime | None) -> datetime:
    """What was delivered late takes nothing away."""
    return until if before is None else max(until, before)


def _note(path: Path, until: datetime) -> None:
    """The note is beside the file, since every line in it is a chunk to its readers."""
    part = path.with_name(f".{path.name}.until.part")
    with part.open("w", encoding="ascii") as file:
        file.write(" ".join([until.isoformat(), *_marks_of(path)]))
        file.flush()
        os.fsync(file.fileno())
    part.replace(_note_of(path))
    sync_folder(path.parent)


def _others(path: Path, keys: AbstractSet[str]) -> Iterator[bytes]:
    """The lines of the file that belong to other documents."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                key = key_of_chunk(json.loads(line)["id"])
            except (ValueError, KeyError, TypeError, AttributeError):
                log.warning("line of an export that is not ours was left out", file=str(path))
                continue
            if key not in keys:
                yield line if line.endswith(b"\n") else line + b"\n"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileBusyError from None
        yield
    finally:
        os.close(descriptor)
