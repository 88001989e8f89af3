"""The wire between a worker and a handler in a process of its own: lines of JSON, and what they may carry.

Nothing is pickled: what comes out of the process is data, whatever its function did to it, and cannot run in the worker.
"""

from __future__ import annotations

import base64
import builtins
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from webqueue.errors import LeaseLostError, WebqueueError
from webqueue.handlers.json_safe import json_safe
from webqueue.handlers.protocol import (
    BlockedError,
    DocumentDraft,
    FetchError,
    HttpOptions,
    JobView,
    Request,
    Response,
    SiteView,
    StopRequested,
    Stored,
    StoredTimes,
    TargetView,
)
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed

# Answered, and not: the part of `Context` that is asked of the worker.
CALLS: Final = frozenset(
    {
        "should_stop", "known", "known_all", "stored_times", "previous_result", "now", "validators", "store", "seen",
        "missing", "recent_unmet", "last_found_at", "fetch", "checkpoint", "keep_page",
    }
)  # fmt: skip
TELLS: Final = frozenset({"progress", "page", "log"})

# A document of 100 MB and the third that base64 adds. A process that never ends its line must not fill the memory.
_LONGEST_LINE: Final = 160_000_000
_CLASSES: Final = {
    cls.__name__: cls
    for cls in (
        Request, Response, DocumentDraft, Stored, StoredTimes, JobView, SiteView, HttpOptions, TargetView, Checkpoint,
        Done, Failed, Blocked, Cancelled,
    )
}  # fmt: skip


class WireError(WebqueueError):
    """What came over the wire is no message."""


class Channel:
    """One end of the wire. Each message is one line."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._lines = ours.makefile("rb", buffering=1 << 16)
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Send a message; False when nobody is there any more."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            with self._sending:
                self._socket.sendall(line)
        except OSError:
            return False
        return True

    def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other end is gone, also in the middle of a line.

        Raises:
            WireError: it is none.
        """
        try:
            line = self._lines.readline(_LONGEST_LINE)
        except OSError:
            return None
        if not line.endswith(b"\n"):
            if len(line) == _LONGEST_LINE:
                raise WireError(f"A message has more than {_LONGEST_LINE} bytes.")
            return None
        try:
            message = json.loads(line)
        except ValueError as error:
            raise WireError(f"What was sent is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise WireError(f"What was sent is no message: {line[:100]!r}")
        return message

    def shut(self) -> None:
        """Let whoever waits here, in whatever thread, see the end; what has arrived can still be received."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it is shut already

    def close(self) -> None:
        """Give the descriptor back."""
        self._lines.close()
        self._socket.close()


def pack(value: Any) -> Any:
    """`value` in terms of JSON, so that `unpack` gives it back; what the wire has no word for becomes text."""
    if isinstance(value, float | str) or value is None:
        return value
    if isinstance(value, list | set | frozenset):
        return [pack(item) for item in value]
    return _pack_object(value) or json_safe(value)


def _pack_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"$": "datetime", "iso": value.isoformat()}
    if isinstance(value, Mapping):
        return {"$": "map", "items": {str(key): pack(item) for key, item in value.items()}}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [pack(item) for item in value]}
    for name, cls in _CLASSES.items():
        if isinstance(value, cls):
            packed = {field.name: pack(getattr(value, field.name)) for field in fields(cls)}
            return {"$": name, "fields": packed}
    return None


def unpack(packed: Any) -> Any:
    """What `pack` was given.

    Raises:
        WireError: it is nothing that `pack` makes.
    """
    if isinstance(packed, list):
        return [unpack(item) for item in packed]
    if not isinstance(packed, dict):
        return packed
    try:
        return _unpack_object(packed)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"What was sent cannot be read: {type(error).__name__}: {error}") from None


def _unpack_object(packed: Mapping[str, Any]) -> Any:
    match packed["$"]:
        case "bytes":
            return base64.b64decode(packed["base64"])
        case "datetime":
            return datetime.fromisoformat(packed["iso"])
        case "map":
            return {key: unpack(item) for key, item in packed["items"].items()}
        case "tuple":
            return tuple(unpack(item) for item in packed["items"])
        case name:
            return _CLASSES[name](**{key: unpack(item) for key, item in packed["fields"].items()})


def pack_error(error: BaseException) -> dict[str, Any]:
    """An exception of a call, so that `unpack_error` gives one that a handler can tell by its class."""
    facts: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, FetchError):
        return {"kind": "FetchError", "with": [error.kind, error.url, str(error), error.status]}
    if isinstance(error, BlockedError):
        return {"kind": "BlockedError", "with": [error.reason, error.url, error.retry_after, error.rate_key]}
    if isinstance(error, StopRequested):
        return {"kind": "StopRequested", "with": []}
    if isinstance(error, LeaseLostError):
        return {"kind": "LeaseLostError", "with": [error.job_id]}
    if isinstance(error, WebqueueError):
        return {"kind": "WebqueueError", "with": [str(error)]}
    return facts


_ERRORS: Final[Mapping[str, Callable[..., Exception]]] = {
    cls.__name__: cls for cls in (FetchError, BlockedError, StopRequested, LeaseLostError, WebqueueError)
}


def unpack_error(facts: Mapping[str, Any]) -> Exception:
    """The exception; one of a class that only the worker has becomes a RuntimeError that names it."""
    kind = str(facts["kind"])
    if "with" in facts:
        return _ERRORS[kind](*facts["with"])
    cls = getattr(builtins, kind, None)
    if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, UnicodeError):
        return cls(facts["message"])
    return RuntimeError(f"{kind}: {facts['message']}")
