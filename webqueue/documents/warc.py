"""What servers sent, as WARC files (ISO 28500), for those who keep an archive: an installation's and a target's choice.

Files grow by whole gzip members, so that a process that is killed leaves at most one torn member at the end, which the
next one that opens the file cuts off. A file that is being written ends in `.open`, as other crawlers have it.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from webqueue import __version__, logs
from webqueue.errors import WebqueueError

log = logs.get(__name__)

FOLDER: Final = "warc"
CLOSED: Final = ".warc.gz"
OPEN: Final = ".warc.gz.open"
ROTATE_BYTES: Final = 500_000_000
_CHUNK: Final = 1 << 20
_UNSAFE: Final = re.compile(r"[^a-z0-9_.-]")


@dataclass(frozen=True)
class Exchanged:
    """A request and its whole answer, as they went over the wire, less what HTTP frames them with.

    Attributes:
        at: when the request was sent.
        target: path and query of the request line.
        body: of the answer, still packed as `content-encoding` says, transfer encoding undone.
    """

    url: str
    at: datetime
    method: str
    target: str
    request_headers: Sequence[tuple[str, str]]
    request_body: bytes
    http_version: str
    status: int
    reason: str
    response_headers: Sequence[tuple[str, str]]
    body: bytes


class WarcWriter:
    """Appends the exchanges of one target's runs to its newest file; no two writers share one.

    Args:
        folder: of the instance's WARC files.
        target_code: names the files.
        now: names a new file.
        rotate_bytes: a file of this size is closed, and a new one begun.
    """

    def __init__(
        self, folder: Path, target_code: str, now: Callable[[], datetime], *, rotate_bytes: int = ROTATE_BYTES
    ) -> None:
        self._folder = folder / _UNSAFE.sub("_", target_code)
        self._target_code = target_code
        self._now = now
        self._rotate_bytes = rotate_bytes
        self._file: _OpenFile | None = None
        self._lock = threading.Lock()

    def write(self, exchanged: Exchanged) -> None:
        """Append a request record and its response record.

        Raises:
            WebqueueError: they could not be written; an archive with holes that nobody knows of is none.
        """
        records = _members(exchanged)
        with self._lock:
            try:
                if self._file is None:
                    self._file = self._opened()
                self._file.append(records)
                if self._file.size >= self._rotate_bytes:
                    self._close()
            except OSError as error:
                raise WebqueueError(
                    f"The WARC file of {self._target_code} cannot be written in {self._folder}: {error.strerror}. "
                    "Make room or set its permissions, or turn WEBQUEUE_WARC off."
                ) from error

    def close(self) -> None:
        """Give the file its final name; the next run goes on with it until it is full."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> _OpenFile:
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in (
            *sorted(self._folder.glob(f"*{OPEN}"), reverse=True),
            *sorted(self._folder.glob(f"*{CLOSED}"), reverse=True)[:1],
        ):
            taken = _OpenFile.take(path)
            if taken is not None and taken.size < self._rotate_bytes:
                return taken
            if taken is not None:
                taken.close()
        name = f"{self._folder.name}-{self._now():%Y%m%d%H%M%S}-{secrets.token_hex(4)}"
        return _OpenFile.new(self._folder / f"{name}{OPEN}", _info(f"{name}{CLOSED}"))


class _OpenFile:
    """A file that this process alone writes to: its lock goes with the process, however that ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def new(cls, path: Path, first: bytes) -> _OpenFile:
        made = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640))
        fcntl.flock(made._descriptor, fcntl.LOCK_EX)
        made.append(first)
        return made

    @classmethod
    def take(cls, path: Path) -> _OpenFile | None:
        """An existing file, its torn end cut off; None when another process has it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_still_there = path.stat().st_ino == os.fstat(descriptor).st_ino
        except (BlockingIOError, FileNotFoundError):
            is_still_there = False
        if not is_still_there:
            os.close(descriptor)
            return None
        if path.name.endswith(CLOSED):
            renamed = path.with_name(path.name.removesuffix(CLOSED) + OPEN)
            path.rename(renamed)
            return cls(renamed, descriptor)
        taken = cls(path, descriptor)
        taken._repair()
        return taken

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def append(self, members: bytes) -> None:
        """Append whole members; what a full disk cut off is taken away again, so that the file stays readable."""
        before = self.size
        try:
            view = memoryview(members)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            os.ftruncate(self._descriptor, before)
            raise

    def close(self) -> None:
        final = self._path.with_name(self._path.name.removesuffix(OPEN) + CLOSED)
        self._path.rename(final)
        os.close(self._descriptor)

    def _repair(self) -> None:
        whole = whole_members_end(self._path)
        if whole < self.size:
            log.warning("torn end of a WARC file cut off", file=str(self._path), bytes=self.size - whole)
            os.ftruncate(self._descriptor, whole)


def whole_members_end(path: Path) -> int:
    """Where the last whole gzip member of a file ends, in bytes; what follows was torn."""
    end = 0
    with path.open("rb") as file:
        for position, complete in _members_of(file):
            if not complete:
                break
            end = position
    return end


def _members_of(file: io.BufferedReader) -> Iterator[tuple[int, bool]]:
    """The end of each member, and whether it is whole."""
    position = 0
    data = file.read(_CHUNK)
    while data:
        unpacking = zlib.decompressobj(wbits=31)
        try:
            while not unpacking.eof:
                if not data:
                    yield position, False
                    return
                unpacking.decompress(data)
                position += len(data) - len(unpacking.unused_data)
                data = unpacking.unused_data if unpacking.eof else file.read(_CHUNK)
        except zlib.error:
            yield position, False
            return
        yield position, True
        data = data or file.read(_CHUNK)


def require_warcio() -> None:
    """Raises WebqueueError when the package that writes WARC files is not installed."""
    try:
        import warcio  # noqa: F401 - an extra: only who keeps WARC files needs it
    except ImportError:
        raise WebqueueError(
            "WEBQUEUE_WARC is on, but the package warcio is not installed: pip install 'webqueue[warc]'."
        ) from None


def _writer() -> tuple[Any, io.BytesIO]:
    from warcio.warcwriter import WARCWriter

    class Writer(WARCWriter):  # type: ignore[misc]  # it has no types
        @classmethod
        def _create_temp_file(cls) -> io.BytesIO:
            """Memory instead of a temporary file: the body is there already, and nobody would close the file."""
            return io.BytesIO()

    buffer = io.BytesIO()
    return Writer(buffer, gzip=True, warc_version="1.1"), buffer


def _info(name: str) -> bytes:
    """The first record of a file."""
    writer, buffer = _writer()
    writer.write_record(
        writer.create_warcinfo_record(
            name, {"software": f"webqueue/{__version__}", "format": "WARC File Format 1.1"}
        )
    )
    return buffer.getvalue()


def _members(exchanged: Exchanged) -> bytes:
    from warcio.statusandheaders import StatusAndHeaders

    writer, buffer = _writer()
    at = {"WARC-Date": exchanged.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    request = writer.create_warc_record(
        exchanged.url,
        "request",
        payload=io.BytesIO(exchanged.request_body),
        http_headers=StatusAndHeaders(
            f"{exchanged.method} {exchanged.target} {exchanged.http_version}",
            list(exchanged.request_headers),
            is_http_request=True,
        ),
        warc_headers_dict=dict(at),
    )
    response = writer.create_warc_record(
        exchanged.url,
        "response",
        payload=io.BytesIO(exchanged.body),
        http_headers=StatusAndHeaders(
            f"{exchanged.status} {exchanged.reason}",
            [(_name_of(name), value) for name, value in exchanged.response_headers],
            protocol=exchanged.http_version,
        ),
        warc_headers_dict=dict(at),
    )
    writer.write_request_response_pair(request, response)
    return buffer.getvalue()


def _name_of(header: str) -> str:
    """The body is kept without its chunks, so no reader must look for them."""
    return f"X-Archive-Orig-{header}" if header.lower() == "transfer-encoding" else header
