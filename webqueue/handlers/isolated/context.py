"""The context of a handler in a process of its own: every verb asks the worker, which has the lease."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from webqueue.errors import LeaseLostError
from webqueue.handlers.isolated.wire import Channel, WireError, pack, unpack, unpack_error
from webqueue.handlers.json_safe import json_safe_dict
from webqueue.handlers.protocol import (
    DocumentDraft,
    JobView,
    Request,
    Response,
    SiteView,
    Stored,
    StoredTimes,
    TargetView,
)
from webqueue.outcomes import Checkpoint


class IsolatedContext:
    """Implements `webqueue.handlers.protocol.Context` at the other end of the wire.

    Calls of several threads wait for each other. A process that the handler forks has no part in it.
    """

    def __init__(self, channel: Channel, start: Mapping[str, Any]) -> None:
        self.params: Any = None
        self.job: JobView = start["job"]
        self.site: SiteView = start["site"]
        self.target: TargetView = start["target"]
        self.force: bool = start["force"]
        self.checkpoint_at_start: Checkpoint = start["checkpoint"]
        self._channel = channel
        self._turn = threading.Lock()
        self._pid = os.getpid()

    def should_stop(self) -> bool:
        return bool(self._ask("should_stop"))

    def known(self, url: str) -> str:
        return str(self._ask("known", url=url))

    def known_all(self, urls: Iterable[str]) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._ask("known_all", urls=list(urls)))

    def stored_times(self, urls: Iterable[str]) -> Mapping[str, StoredTimes]:
        return cast("Mapping[str, StoredTimes]", self._ask("stored_times", urls=list(urls)))

    def recent_unmet(self, since: datetime, limit: int) -> Sequence[str]:
        return cast("Sequence[str]", self._ask("recent_unmet", since=since, limit=limit))

    def last_found_at(self) -> datetime | None:
        return cast("datetime | None", self._ask("last_found_at"))

    def previous_result(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self._ask("previous_result"))

    def now(self) -> datetime:
        return cast("datetime", self._ask("now"))

    def validators(self, url: str) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._ask("validators", url=url))

    def store(self, document: DocumentDraft) -> Stored:
        return cast("Stored", self._ask("store", document=document))

    def seen(self, url: str) -> None:
        self._ask("seen", url=url)

    def missing(self, url: str) -> bool:
        return bool(self._ask("missing", url=url))

    def fetch(self, request: Request) -> Response:
        return cast("Response", self._ask("fetch", request=request))

    def progress(self, current: int | None = None, total: int | None = None, message: str = "") -> None:
        self._tell("progress", current=current, total=total, message=message)

    def page(self, number: int) -> None:
        self._tell("page", number=number)

    def checkpoint(self, page: int, data: Mapping[str, Any] | None = None) -> None:
        self._ask("checkpoint", page=page, data=json_safe_dict(data or {}))

    def keep_page(self, name: str, body: bytes) -> str:
        return str(self._ask("keep_page", name=name, body=body))

    def log(self, message: str, level: str = "info") -> None:
        self._tell("log", message=str(message), level=str(level))

    def _ask(self, verb: str, /, **arguments: Any) -> Any:
        with self._turn:
            self._send({"call": verb, "with": pack(arguments)})
            answer = self._channel.receive()
        if answer is None:
            raise LeaseLostError(self.job.id)
        if "raise" in answer:
            raise unpack_error(answer["raise"])
        if "answer" not in answer:
            raise WireError("The worker sent no answer.")
        return unpack(answer["answer"])

    def _tell(self, verb: str, /, **arguments: Any) -> None:
        with self._turn:
            self._send({"tell": verb, "with": pack(arguments)})

    def _send(self, message: Mapping[str, Any]) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "The context belongs to the process that the worker started; a process forked from it cannot use it."
            )
        if not self._channel.send(message):
            # The worker has let go of this process, and of the job with it.
            raise LeaseLostError(self.job.id)
