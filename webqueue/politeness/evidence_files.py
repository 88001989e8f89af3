"""The daily files of the evidence: plain while the day lasts, compressed after it, deleted after 13 months."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final

from webqueue import logs

FOLDER: Final = "requests"
SUFFIX: Final = ".jsonl"
PACKED: Final = ".jsonl.gz"
MONTHS_KEPT: Final = 13
_UNFINISHED: Final = ".jsonl.gz.part"

_log = logs.get(__name__)


def plain_path(folder: Path, day: date) -> Path:
    """The file that is written to."""
    return folder / f"{day.isoformat()}{SUFFIX}"


def packed_path(folder: Path, day: date) -> Path:
    """The compressed file."""
    return folder / f"{day.isoformat()}{PACKED}"


def day_of(path: Path) -> date | None:
    """The day of an evidence file; None for any other file."""
    for suffix in (SUFFIX, PACKED):
        with suppress(ValueError):
            return date.fromisoformat(path.name.removesuffix(suffix))
    return None


def lines_of(folder: Path, day: date) -> Iterator[str]:
    """The lines of a day, from whichever of its files there are.

    There are two when a line came late, or when a crash ended the compression: then each line is given once.
    """
    packed, plain = packed_path(folder, day), plain_path(folder, day)
    if not plain.exists():
        yield from _packed_lines(packed)
        return
    seen: set[str] = set()
    for text in _packed_lines(packed):
        seen.add(text)
        yield text
    try:
        with plain.open(encoding="utf-8", errors="replace") as file:
            yield from (text for text in file if text not in seen)
    except FileNotFoundError:  # compressed in this moment
        yield from (text for text in _packed_lines(packed) if text not in seen)


def days_to_pack(folder: Path, before: date) -> list[date]:
    """The days before `before` that have a plain file, the oldest first."""
    days = (day_of(path) for path in folder.glob(f"*{SUFFIX}"))
    return sorted(day for day in days if day is not None and day < before)


def pack(folder: Path, day: date) -> Path:
    """Compress a day that is over. A crash in the middle leaves the plain file as it was."""
    unfinished = folder / f"{day.isoformat()}{_UNFINISHED}"
    # For the owner only, as the plain file.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with gzip.open(raw, "wt", encoding="utf-8", newline="") as file:
            for text in lines_of(folder, day):
                file.write(text if text.endswith("\n") else text + "\n")
        raw.flush()
        os.fsync(raw.fileno())
    packed = packed_path(folder, day)
    unfinished.replace(packed)
    plain_path(folder, day).unlink(missing_ok=True)
    return packed


def forget_before(folder: Path, first: date) -> list[date]:
    """Delete the files of days before `first`; returns the days."""
    forgotten = set()
    for path in folder.glob(f"*{SUFFIX}*"):
        day = day_of(path)
        if day is not None and day < first:
            path.unlink(missing_ok=True)
            forgotten.add(day)
    return sorted(forgotten)


def first_kept(today: date) -> date:
    """The oldest day whose evidence is kept: the first of the month, 13 months ago."""
    months = today.year * 12 + today.month - 1 - MONTHS_KEPT
    return date(months // 12, months % 12 + 1, 1)


def _packed_lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            yield from file
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error) as error:
        _log.error("evidence_file_damaged", file=str(path), problem=str(error))
