"""The requests that this machine made today, counted from its evidence; each line is read once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from webqueue.politeness.evidence_files import FOLDER, plain_path


class RequestsOfToday:
    """Counts the lines of today's file (UTC) by rate key, and goes on from where it was; for any number of threads.

    Args:
        instance: the instance folder.
    """

    def __init__(self, instance: Path) -> None:
        self._folder = instance / FOLDER
        self._lock = threading.Lock()
        self._day: date | None = None
        self._offset = 0
        self._counts: Counter[str] = Counter()

    def by_key(self, today: date) -> Mapping[str, int]:
        """How many requests each rate key had today."""
        with self._lock:
            if self._day != today:
                self._day, self._offset, self._counts = today, 0, Counter()
            self._read(plain_path(self._folder, today))
            return dict(self._counts)

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return  # it is being written; the next look has the whole of it
                    self._offset += len(line)
                    key = _key_of(line)
                    if key is not None:
                        self._counts[key] += 1
        except FileNotFoundError:
            return  # no request was made yet


def _key_of(line: bytes) -> str | None:
    """The rate key of a line; None for one that a crash left half written."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    key = found.get("key") if isinstance(found, dict) else None
    return key if isinstance(key, str) else None
