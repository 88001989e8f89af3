"""The evidence: one line of JSON for each request, in daily files of the machine that made it (DESIGN §6).

It answers "prove that you were polite" long afterwards, so it is written where the request is made, before anything is
made of the answer.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from webqueue import logs
from webqueue.masking import masked_text
from webqueue.politeness.evidence_files import FOLDER, SUFFIX, day_of, lines_of, plain_path

MASK = "***"

_log = logs.get(__name__)


def masked_url(url: str) -> str:
    """The URL without what might let somebody in: user and password, and values of parameters named like secrets.

    Evidence and error texts are read by viewers and sent by mail; a URL in them must not carry a password.
    """
    return masked_text(url, MASK)


@dataclass(frozen=True)
class RequestLine:
    """One request as the evidence keeps it.

    Attributes:
        at: when it began (aware).
        key: its rate key.
        url: masked by `masked_url` when it is written.
        status: the HTTP status; None when there was none.
        error: the kind of failure (`FetchError.kind`, or `stopped`); None when there was an answer.
        bytes: of the body, as they came over the wire.
        ms: from the beginning to the end of the request, in milliseconds.
        job: id of the job.
        robots: `allowed`, `off` (the site does not obey), or `file` (the request was for robots.txt itself).
    """

    at: datetime
    key: str
    host: str
    method: str
    url: str
    status: int | None
    error: str | None
    bytes: int
    ms: float
    job: str
    robots: str


def as_shown(line: RequestLine) -> dict[str, Any]:
    """What a page shows of a request: plain JSON, the URL masked."""
    return {
        "at": line.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "method": line.method,
        "url": masked_url(line.url),
        "status": line.status,
        "error": line.error,
        "bytes": line.bytes,
        "ms": round(line.ms),
    }


class EvidenceLog:
    """Appends to and reads `requests/YYYY-MM-DD.jsonl` (days in UTC) below a folder; for any number of threads.

    Each line is one write to a file opened with O_APPEND, so lines of several processes do not mix. A line that cannot
    be written does not stop the crawl, which would punish the wrong one; it is logged, counted in `failures`, and told
    in `problem`.

    Args:
        folder: the instance folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._lock = threading.Lock()
        self._file: tuple[Path, int] | None = None
        self._cut_short = False
        self.failures = 0
        self.problem: str | None = None

    def append(self, line: RequestLine) -> None:
        """Write one line."""
        with self._lock:
            try:
                self._write(self.path(line.at.astimezone(UTC).date()), _encoded(line))
            except OSError as error:
                self.failures += 1
                self.problem = f"The evidence of requests cannot be written to {self._folder}: {error}"
                _log.error("evidence_not_written", job=line.job, rate_key=line.key, problem=self.problem)
            else:
                self.problem = None

    def read(self, day: date, key: str | None = None) -> Iterator[RequestLine]:
        """The lines of a day (UTC) in the order in which they were written, all or those of one rate key.

        A line that a crash or a full disk left half written is skipped and logged.
        """
        for number, text in enumerate(lines_of(self._folder, day), start=1):
            line = _decoded(text)
            if line is None:
                _log.warning("evidence_line_skipped", file=str(self.path(day)), line=number)
            elif key is None or line.key == key:
                yield line

    def days(self) -> list[date]:
        """The days (UTC) that there is evidence of, the oldest first."""
        return sorted({day for path in self._folder.glob(f"*{SUFFIX}*") if (day := day_of(path)) is not None})

    def path(self, day: date) -> Path:
        """The file of a day, as long as it is not compressed."""
        return plain_path(self._folder, day)

    def close(self) -> None:
        """Close the file of the day; a later `append` opens it again."""
        with self._lock:
            self._close()

    def _write(self, path: Path, data: bytes) -> None:
        descriptor = self._descriptor(path)
        if self._cut_short:
            data = b"\n" + data
        written = os.write(descriptor, data)
        self._cut_short = written < len(data)
        if self._cut_short:
            raise OSError(f"only {written} of {len(data)} bytes were taken; the disk may be full")

    def _descriptor(self, path: Path) -> int:
        if self._file is not None and self._file[0] == path and _is_still(path, self._file[1]):
            return self._file[1]
        self._close()
        path.parent.mkdir(parents=True, exist_ok=True)
        # For the owner only: URLs tell what an organisation is interested in.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file = (path, descriptor)
        return descriptor

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file[1])
            self._file = None


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one that the path names: somebody may have moved or deleted it meanwhile."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _encoded(line: RequestLine) -> bytes:
    values = dataclasses.asdict(line)
    values["at"] = line.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    values["url"] = masked_url(line.url)
    # ASCII only: a lone surrogate in a URL could not be encoded otherwise.
    return json.dumps(values, separators=(",", ":")).encode("ascii") + b"\n"


def _decoded(text: str) -> RequestLine | None:
    try:
        values = json.loads(text)
        values["at"] = datetime.fromisoformat(values["at"])
        known = {field.name for field in dataclasses.fields(RequestLine)}
        return RequestLine(**{name: value for name, value in values.items() if name in known})
    except (ValueError, TypeError, KeyError):
        return None
